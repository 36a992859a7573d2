"""Partitions in the moment after they were made: their leaders are announced, and do not know it yet."""

from __future__ import annotations

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetSpec, TopicSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.topology.names import TopicPartition
from tests.support.mirrored_topic import MirroredTopic


def test_given_a_thousand_partitions_that_were_just_made_when_their_ends_are_asked_for_then_all_are_told(
    mirrored: MirroredTopic,
) -> None:
    with ClusterAdmin(Connection("A", (mirrored.source.bootstrap_servers,))) as admin:
        assert admin.create_topics([TopicSpec(mirrored.name, 1_000, 1)]) == {mirrored.name: None}

        ends = admin.list_offsets([TopicPartition(mirrored.name, number) for number in range(1_000)], OffsetSpec.LATEST)

    assert {end.offset if end.error is None else str(end.error) for end in ends.values()} == {0}
