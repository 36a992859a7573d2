"""Two data centres, each with a file that calls its own cluster A and the other one B."""

from __future__ import annotations

import pytest

from mirror_lib.errors import ConfigurationError
from tests.support.flows import make_flow
from tests.support.kafka import admin, records
from tests.support.mirrored_topic import MirroredTopic


def test_given_swapped_clusters_under_the_same_aliases_then_the_second_flow_is_refused(mirrored: MirroredTopic) -> None:
    mirrored.create(records(5))
    here, there = mirrored.source.bootstrap_servers, mirrored.target.bootstrap_servers
    for name in ("here", "there"):
        (mirrored.folder / name).mkdir()
    first = make_flow(mirrored.folder / "here", here, there, topics=f".*{mirrored.name}")
    second = make_flow(mirrored.folder / "there", there, here, topics=f".*{mirrored.name}")
    assert first.run().records == 5

    with pytest.raises(ConfigurationError, match=rf"A\.{mirrored.name}\. That cluster is B of this file"):
        second.sync_topics()
    with pytest.raises(ConfigurationError, match="That cluster is B of this file"):
        second.run(sync=False)
    assert f"A.{mirrored.remote}" not in admin(mirrored.source).list_topics(timeout=10).topics
