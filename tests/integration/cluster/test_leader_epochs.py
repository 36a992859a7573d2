"""OffsetForLeaderEpoch and offsets of times, held against a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.errors import MirrorError, TopicMissingError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import start_together
from tests.support.connections import connection_of
from tests.support.kafka import create_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic

#: Of the first record of `records`: 2024-01-01T00:00:00Z.
FIRST = 1_704_067_200_000


def connection(cluster: KafkaCluster) -> Connection:
    return connection_of(cluster.bootstrap_servers, request_timeout_ms="3000")


def epoch_ends(
    cluster: KafkaCluster, epochs: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, int | MirrorError]:
    async def ask() -> Mapping[TopicPartition, int | MirrorError]:
        async with open_clients(connection(cluster)) as (client,):
            return await client.epoch_ends(epochs)

    return asyncio.run(ask())


def test_the_current_epoch_ends_with_the_log_and_an_unknown_one_nowhere(mirrored: MirroredTopic) -> None:
    mirrored.create([*records(10), *records(4, partition=1)], partitions=3)
    first, second, third = (TopicPartition(mirrored.name, number) for number in range(3))
    absent = TopicPartition(f"{mirrored.name}-absent", 0)

    found = epoch_ends(mirrored.source, {first: 0, second: 7, third: 0, absent: 0})

    assert (found[first], found[second], found[third]) == (10, -1, 0)
    assert isinstance(found[absent], TopicMissingError)


def test_a_former_epoch_ends_where_the_next_began_and_a_leader_that_is_away_is_told(
    kafka_jars: Path, topic_name: str, cluster_folder: Path
) -> None:
    cluster = KafkaCluster("epochs", directory=cluster_folder / "epochs", brokers=2, jars=kafka_jars)
    with start_together(cluster):
        create_topic(cluster, topic_name, partitions=6, copies=1)
        places = [TopicPartition(topic_name, number) for number in range(6)]
        for place in places:
            produce(cluster, topic_name, records(10, partition=place.partition))
        _, other = cluster.node_ids
        cluster.restart(other)
        cluster.wait_ready()
        for place in places:
            produce(cluster, topic_name, records(5, start=10, partition=place.partition))

        ends = epoch_ends(cluster, dict.fromkeys(places, 0))

        # The partitions of the broker that was away have another leader epoch since; those of the other do not.
        assert set(ends.values()) == {10, 15}
        moved = {place for place, end in ends.items() if end == 10}
        cluster.kill(other)
        away = epoch_ends(cluster, dict.fromkeys(places, 0))
        for place in places:
            answer = away[place]
            if place in moved:
                assert isinstance(answer, MirrorError)
                assert answer.retriable, answer
            else:
                assert answer == 15


def test_a_time_has_the_offset_of_the_first_record_that_is_not_older(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=5)
    for partition in range(4):
        mirrored.produce(records(10, partition=partition))
    places = [TopicPartition(mirrored.name, number) for number in range(5)]
    absent = TopicPartition(f"{mirrored.name}-absent", 0)

    with ClusterAdmin(connection(mirrored.source)) as admin:
        times = dict(zip(places, (0, FIRST + 3_000, FIRST + 3_001, FIRST + 9_001, FIRST), strict=True))
        found = admin.offsets_at({**times, absent: 0})

    assert [found[place].offset for place in places] == [0, 3, 4, -1, -1]
    assert {found[place].error for place in places} == {None}
    assert isinstance(found[absent].error, TopicMissingError)
