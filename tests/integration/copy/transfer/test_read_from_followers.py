"""Copying from the replicas in the reader's own rack (KIP-392), of brokers that select them by rack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair, start_together
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, consume, create_topic, produce, records

_HERE = 2
_RECORDS = 1_000


@pytest.fixture(scope="module")
def racks(kafka_jars: Path, brokers_folder: Path) -> Iterator[KafkaPair]:
    """A source with a broker in each of three racks, and any target."""
    source = KafkaCluster(
        "racks",
        directory=brokers_folder / "racks",
        brokers=3,
        jars=kafka_jars,
        overrides={
            **FAST_HOUSEKEEPING,
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
        },
        racks=["r1", "r2", "r3"],
    )
    target = KafkaCluster(
        "racks-target", directory=brokers_folder / "racks-target", jars=kafka_jars, overrides=FAST_HOUSEKEEPING
    )
    with start_together(source, target):
        yield KafkaPair(source, target)


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Bytes of records that each broker of the source has sent."""
    read: Counter[int] = Counter()
    fetch = RawClient.fetch

    async def counted(
        client: RawClient, node: int, partitions: Sequence[FetchRequestPartition], **more: Any
    ) -> list[FetchedPartition]:
        answers = await fetch(client, node, partitions, **more)
        # Internal topics are read from their leaders.
        read[node] += sum(len(answer.records) for answer in answers if not answer.topic.endswith(".internal"))
        return answers

    monkeypatch.setattr(RawClient, "fetch", counted)
    return read


def filled(pair: KafkaPair, topic: str) -> list[Record]:
    """A partition led by each broker."""
    create_topic(pair.source, topic, partitions=3, copies=3)
    return [
        record
        for partition in range(3)
        for record in produce(
            pair.source, topic, records(_RECORDS, size=500, partition=partition), batch_size=9_000, acks="all"
        )
    ]


def flow_in_rack(folder: Path, pair: KafkaPair, topic: str) -> Flow:
    settings = {
        "A.consumer.client.rack": f"r{_HERE}",
        "mirror.fetch.max.bytes": "65536",
        "offset-syncs.topic.replication.factor": "3",
        # It takes the controller nine seconds alone to see that a broker is dead.
        "mirror.retry.max.seconds": "60",
    }
    return pair_flow(folder, pair, topics=topic, settings=settings)


def test_given_a_rack_then_partitions_are_read_from_the_replica_there_wherever_their_leaders_are(
    racks: KafkaPair, topic_name: str, tmp_path: Path, read_bytes: Counter[int]
) -> None:
    filled(racks, topic_name)

    report = flow_in_rack(tmp_path, racks, topic_name).run()

    assert report.errors == ()
    assert +read_bytes == Counter({_HERE: read_bytes.total()})
    assert read_bytes.total() >= report.bytes
    assert consume(racks.target, f"A.{topic_name}") == consume(racks.source, topic_name)


def test_given_a_follower_that_dies_while_it_is_read_then_the_leaders_give_the_rest(
    racks: KafkaPair, topic_name: str, tmp_path: Path, read_bytes: Counter[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(racks, topic_name)
    fetch = RawClient.fetch

    async def deadly(
        client: RawClient, node: int, partitions: Sequence[FetchRequestPartition], **more: Any
    ) -> list[FetchedPartition]:
        if read_bytes[_HERE] > 300_000 and _HERE in racks.source.running_nodes:
            racks.source.kill(_HERE)
        return await fetch(client, node, partitions, **more)

    monkeypatch.setattr(RawClient, "fetch", deadly)

    report = flow_in_rack(tmp_path, racks, topic_name).run()

    assert report.errors == ()
    assert _HERE not in racks.source.running_nodes
    assert read_bytes[_HERE] < report.bytes < read_bytes.total() + 1
    assert report.records == 3 * _RECORDS
    assert consume(racks.target, f"A.{topic_name}") == consume(racks.source, topic_name)
