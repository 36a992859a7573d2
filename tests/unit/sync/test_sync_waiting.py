"""Waiting for new topics: patience is for a cluster that stands still, not for one that has much to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import PartitionDescription, TopicDescription
from mirror_lib.sync.topics.waiting import wait_until_visible

_PATIENCE = 0.15


class _Admin:
    """A cluster on which one more topic is ready each time that it is asked, until none is any more."""

    cluster = "target"

    def __init__(self, ready_at_most: int) -> None:
        self._ready = 0
        self._most = ready_at_most

    def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        self._ready = min(self._ready + 1, self._most)
        leader = {name: 0 if int(name) < self._ready else None for name in names}
        return {name: _described(name, leader[name]) for name in names}


def _described(name: str, leader: int | None) -> TopicDescription:
    partition = PartitionDescription(partition=0, leader=leader, leader_host=None, replicas=(0,), isr=(0,))
    return TopicDescription(name=name, topic_id=None, partitions=(partition,))


def _topics(count: int) -> dict[str, int]:
    return {f"{number:02}": 1 for number in range(count)}


def test_given_a_cluster_that_gets_on_when_all_take_longer_than_patience_then_they_are_waited_for() -> None:
    # The pauses between looks grow to 0.2 s, so these take more than a second.
    admin = cast("ClusterAdmin", _Admin(ready_at_most=8))

    late = wait_until_visible(admin, _topics(8), seconds=_PATIENCE)

    assert late == {}


def test_given_a_cluster_that_stands_still_when_waited_for_then_what_is_missing_is_named() -> None:
    admin = cast("ClusterAdmin", _Admin(ready_at_most=2))

    late = wait_until_visible(admin, _topics(4), seconds=_PATIENCE)

    assert sorted(late) == ["02", "03"]
    assert late["02"].where.topic == "02"
