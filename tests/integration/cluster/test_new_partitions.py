"""Partitions in the moment after they were made: their leaders are announced, and do not know it yet."""

from __future__ import annotations

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetSpec, TopicSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair


def test_given_a_thousand_partitions_that_were_just_made_when_their_ends_are_asked_for_then_all_are_told(
    kafka_pair: KafkaPair, topic_name: str
) -> None:
    with ClusterAdmin(Connection("A", (kafka_pair.source.bootstrap_servers,))) as admin:
        assert admin.create_topics([TopicSpec(topic_name, 1_000, 1)]) == {topic_name: None}

        ends = admin.list_offsets([TopicPartition(topic_name, number) for number in range(1_000)], OffsetSpec.LATEST)

    assert {end.offset if end.error is None else str(end.error) for end in ends.values()} == {0}
