"""Positions of topics that the source does not have, or does not show."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_lib.cluster.admin.client import PerTopic
from mirror_lib.config.first_start import EARLIEST
from mirror_lib.config.loader import load
from mirror_lib.errors import AuthorizationError, ConfigurationError, TopicMissingError
from mirror_lib.features.repair.set_positions import plan_changes
from tests.support.flow_files import write_flow


def test_a_topic_of_the_flow_that_the_source_does_not_return_is_refused(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    flow = load(write_flow(tmp_path, "A->B.topics = orders.*")).flow("A->B")
    described: PerTopic[Any] = PerTopic({}, {})
    clusters: Any = SimpleNamespace(source_admin=SimpleNamespace(describe_topics=lambda _: described))
    for error, kind, text in (
        (TopicMissingError("no."), ConfigurationError, "cluster A has no topic 'orders-eu'"),
        (AuthorizationError("not allowed."), AuthorizationError, "not allowed"),
    ):
        with subtests.test(kind=kind):
            described.errors["orders-eu"] = error

            with pytest.raises(kind, match=text):
                plan_changes(flow, clusters, "orders-eu", (), EARLIEST, run_id="run")
