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

FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = orders.*
"""


def test_a_topic_of_the_flow_that_the_source_does_not_return_is_refused(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    path = tmp_path / "m.properties"
    path.write_text(FILE)
    described: PerTopic[Any] = PerTopic({}, {})
    clusters: Any = SimpleNamespace(source_admin=SimpleNamespace(describe_topics=lambda _: described))
    for error, kind, text in (
        (TopicMissingError("no."), ConfigurationError, "cluster A has no topic 'orders-eu'"),
        (AuthorizationError("not allowed."), AuthorizationError, "not allowed"),
    ):
        with subtests.test(kind=kind):
            described.errors["orders-eu"] = error

            with pytest.raises(kind, match=text):
                plan_changes(load(path).flow("A->B"), clusters, "orders-eu", (), EARLIEST, run_id="run")
