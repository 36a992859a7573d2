"""The requests that are encoded by hand or by aiokafka's semi-internal modules, held against a real broker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop
from aiokafka.protocol.metadata import MetadataRequest
from confluent_kafka import TopicPartition as ConfluentPartition

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.fields import encode_topic_id
from mirror_lib.cluster.raw import brokers as broker_connections
from mirror_lib.cluster.raw.client import FetchRequestPartition, ProducedPartition, RawClient, open_clients
from mirror_lib.cluster.raw.connection import Buffer, DataConnection
from mirror_lib.cluster.raw.handshake import SILENCE, shake_hands
from mirror_lib.errors import BrokerUnreachableError, TopicMissingError
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.ports import free_ports
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.kafka import admin, consume, create_topic, produce, records
from tests.support.mirrored_topic import MirroredTopic
from tests.support.records.record_batches import SourceRecord, assembler, fed, ready

T = TypeVar("T")


def connection(servers: str) -> Connection:
    return Connection("A", tuple(servers.split(",")))


def asked(cluster: KafkaCluster, question: Callable[[RawClient], Awaitable[T]]) -> T:
    """Ask one cluster something inside an event loop."""

    async def scene() -> T:
        async with open_clients(connection(cluster.bootstrap_servers)) as (client,):
            return await question(client)

    return asyncio.run(scene())


def leader_of(client: RawClient, topic: str, partition: int = 0) -> int:
    return client.leader(TopicPartition(topic, partition))


def test_given_one_who_gives_up_while_it_is_found_how_far_a_broker_is_then_the_connection_is_closed(
    kafka_pair: KafkaPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[DataConnection] = []

    async def never(connection: DataConnection) -> float:
        made.append(connection)
        await asyncio.Event().wait()
        return 0.0

    monkeypatch.setattr(broker_connections, "measure_round_trip", never)

    async def scene(client: RawClient) -> None:
        connecting = asyncio.ensure_future(client.connect(client.brokers()[0]))
        while not made:
            await asyncio.sleep(0.01)
        connecting.cancel()
        await asyncio.wait([connecting])

    asked(kafka_pair.source, scene)

    assert not made[0].open


def test_leaders_are_found_and_unknown_topics_are_told_and_not_created(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)

    async def scene(client: RawClient) -> None:
        failed = await client.refresh_leaders([mirrored.name, f"{mirrored.name}-absent"])
        assert failed == {f"{mirrored.name}-absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert client.leader(TopicPartition(mirrored.name, 1)) in client.brokers()
        assert client.leader(TopicPartition(f"{mirrored.name}-absent", 0)) is None

    asked(mirrored.source, scene)


def test_fetch_returns_bytes_watermarks_and_errors_of_each_partition(mirrored: MirroredTopic) -> None:
    mirrored.create(records(40), partitions=2)

    async def scene(client: RawClient) -> None:
        await client.refresh_leaders([mirrored.name])
        wanted = [
            FetchRequestPartition(mirrored.name, 0, 0, 1 << 20),
            FetchRequestPartition(mirrored.name, 1, 7, 1 << 20),
        ]
        answers = await client.fetch(
            leader_of(client, mirrored.name), wanted, max_bytes=1 << 20, max_wait_ms=100, read_committed=False
        )
        first, second = sorted(answers, key=lambda answer: answer.partition)
        assert (first.topic, first.error_code, first.high_watermark, first.log_start) == (mirrored.name, 0, 40, 0)
        assert first.last_stable_offset == 40
        assert sum(each.count for each in fed(assembler(end=40), first.records)) == 40
        assert second.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert len(second.records) == 0

    asked(mirrored.source, scene)


def test_produce_appends_once_however_often_it_is_sent(mirrored: MirroredTopic) -> None:
    create_topic(mirrored.target, mirrored.name, partitions=2)

    async def scene(client: RawClient) -> None:
        await client.refresh_leaders([mirrored.name])
        identity = await client.producers.init_producer_id(f"tests-{mirrored.name}", deadline=time.monotonic() + 30)
        held = {"producer_id": identity.producer_id, "epoch": identity.epoch}
        payload = ready(SourceRecord(0, key=b"k"), SourceRecord(1), sequence=0, **held)
        node = leader_of(client, mirrored.name)
        for _ in range(2):
            answers = await client.produce(node, [(mirrored.name, 0, payload)], timeout_ms=10_000)
            assert answers == [ProducedPartition(mirrored.name, 0, 0, 0, 0)]
        later = ready(SourceRecord(5), sequence=9, **held)
        (answer,) = await client.produce(node, [(mirrored.name, 0, later)], timeout_ms=10_000)
        assert answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    asked(mirrored.target, scene)
    assert [(record.key, record.value) for record in consume(mirrored.target, mirrored.name)] == [
        (b"k", b"value"),
        (None, b"value"),
    ]


def test_a_topic_that_was_created_again_is_another_one_to_who_names_it_by_its_id(mirrored: MirroredTopic) -> None:
    create_topic(mirrored.target, mirrored.name, configs={"cleanup.policy": "compact"})
    absent = f"{mirrored.name}-absent"

    async def scene(client: RawClient) -> None:
        await client.refresh_leaders([mirrored.name])
        node = leader_of(client, mirrored.name)
        await client.connect(node)
        assert client.produces_by_id(node)
        known = await client.topic_ids([mirrored.name, absent])
        assert known == await client.topic_ids([mirrored.name, absent], node=node)
        assert known[absent] == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        identity = known[mirrored.name].topic_id
        assert identity is not None
        ids = {mirrored.name: encode_topic_id(identity)}
        keyed, keyless = ready(SourceRecord(0, key=b"k")), ready(SourceRecord(0))

        async def send(payload: Buffer, topic_ids: dict[str, bytes]) -> ProducedPartition:
            batches = [(mirrored.name, 0, payload)]
            connection = client.connection(node)
            (answer,) = await client.produce(
                node, batches, timeout_ms=9_000, connection=connection, topic_ids=topic_ids
            )
            return answer

        assert await send(keyed, ids) == ProducedPartition(mirrored.name, 0, 0, 0, 0)
        # The answer then says of each record what is wrong with it.
        assert (await send(keyless, ids)).error_code == ErrorCode.INVALID_RECORD
        assert (await send(keyed, {mirrored.name: b"\1" * 16})).error_code == ErrorCode.UNKNOWN_TOPIC_ID
        # Over a connection that is not made yet.
        (answer,) = await client.produce(node, [(mirrored.name, 0, keyed)], timeout_ms=9_000, slot=1, topic_ids=ids)
        assert answer.base_offset == 1

    asked(mirrored.target, scene)


def test_a_broker_that_restarts_forgets_the_producers_of_old_records(
    kafka_jars: Path, cluster_folder: Path, topic_name: str
) -> None:
    # It drops those whose newest timestamp, the record's own, is older than `producer.id.expiration.ms` (a day); of the
    # others it remembers the last batch only, and of a producer that it does not know it takes any sequence. Why a
    # writer sends its first batch alone, and looks at the log before it sends a batch again.
    topics = old, new = f"{topic_name}-old", f"{topic_name}-new"
    times = {old: 1_600_000_000_000, new: int(time.time() * 1000)}

    async def send(client: RawClient, topic: str, sequence: int) -> tuple[int, int]:
        await client.refresh_leaders([topic])
        payload = ready(SourceRecord(0, timestamp=times[topic]), producer_id=identity, epoch=0, sequence=sequence)
        (answer,) = await client.produce(leader_of(client, topic), [(topic, 0, payload)], timeout_ms=9_000)
        return answer.error_code, answer.base_offset

    async def sequences(client: RawClient, wanted: Sequence[int]) -> dict[str, list[tuple[int, int]]]:
        return {topic: [await send(client, topic, sequence) for sequence in wanted] for topic in topics}

    identity = 4711
    with KafkaCluster("forgetful", directory=cluster_folder, jars=kafka_jars) as cluster:
        for topic in topics:
            create_topic(cluster, topic)
        before = asked(cluster, lambda client: sequences(client, [0, 1]))
        cluster.restart(cluster.node_ids[0])
        after = asked(cluster, lambda client: sequences(client, [1, 0]))

    assert before == {topic: [(0, 0), (0, 1)] for topic in topics}
    # The same batches again: known is only the last one, and only where it is new.
    assert after[new] == [(0, 1), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert after[old] == [(0, 2), (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]


def test_log_sizes_count_the_bytes_on_disk(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=2)
    mirrored.produce(records(100, size=1_000), compression_type="none")

    sizes = asked(mirrored.source, lambda client: client.log_sizes([mirrored.name]))

    assert sizes[TopicPartition(mirrored.name, 0)] > 100_000
    assert sizes[TopicPartition(mirrored.name, 1)] == 0


def test_the_first_local_offset_is_the_log_start_where_there_is_no_remote_storage(mirrored: MirroredTopic) -> None:
    topics = [mirrored.name, mirrored.name.ljust(127, "x"), mirrored.name.ljust(249, "x")]
    for topic in topics:
        create_topic(mirrored.source, topic, partitions=2)
        produce(mirrored.source, topic, records(20))
    request = [ConfluentPartition(topic, 0, 7) for topic in topics]
    client = admin(mirrored.source)
    for done in client.delete_records(request).values():
        done.result(30)

    async def scene(client: RawClient) -> list[int | None]:
        await client.refresh_leaders(topics)
        found = [
            await client.local_log_start(leader_of(client, topic), TopicPartition(topic, partition))
            for topic in topics
            for partition in (0, 1)
        ]
        with pytest.raises(TopicMissingError):
            await client.local_log_start(leader_of(client, mirrored.name), TopicPartition(mirrored.name, 5))
        return found

    assert asked(mirrored.source, scene) == [7, 0] * 3


def test_the_end_of_a_log_is_told_with_what_is_replicated(mirrored: MirroredTopic) -> None:
    mirrored.create(records(20, partition=1), partitions=2)

    async def scene(client: RawClient) -> list[tuple[int, int]]:
        await client.refresh_leaders([mirrored.name])
        node = leader_of(client, mirrored.name)
        with pytest.raises(TopicMissingError):
            await client.log_ends(node, TopicPartition(mirrored.name, 5))
        return [await client.log_ends(node, TopicPartition(mirrored.name, partition)) for partition in (0, 1)]

    assert asked(mirrored.source, scene) == [(0, 0), (20, 20)]


def test_records_that_are_not_replicated_are_at_the_end_of_the_log_only(
    three_brokers: KafkaCluster, topic_name: str
) -> None:
    configs = {"min.insync.replicas": "3"}
    create_topic(three_brokers, topic_name, copies=3, configs=configs)

    async def scene(client: RawClient) -> list[tuple[int, int]]:
        await client.refresh_leaders([topic_name])
        node = leader_of(client, topic_name)
        three_brokers.kill(next(other for other in three_brokers.node_ids if other != node))
        payload = ready(SourceRecord(0), SourceRecord(1))
        # The followers are still taken to be in sync, so the leader appends and waits for them.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await client.produce(node, [(topic_name, 0, payload)], timeout_ms=5_000)
        return [await client.log_ends(node, TopicPartition(topic_name, 0))]

    assert asked(three_brokers, scene) == [(0, 2)]


def test_a_broker_that_nobody_runs_is_unreachable() -> None:
    servers = f"127.0.0.1:{free_ports(1)[0]}"

    async def scene() -> None:
        async with open_clients(connection(servers)):
            pass

    with pytest.raises(BrokerUnreachableError, match=servers) as caught:
        asyncio.run(scene())
    assert caught.value.where.cluster == "A"


def test_given_a_connection_that_has_died_under_uvloop_when_a_request_is_sent_then_the_broker_counts_as_silent(
    kafka_pair: KafkaPair,
) -> None:
    """uvloop's transports raise RuntimeError there, and asyncio's do not."""
    host, port = kafka_pair.source.bootstrap_servers.split(",")[0].split(":")

    async def scene() -> None:
        handshake = await shake_hands(connection(kafka_pair.source.bootstrap_servers), host, int(port))
        transport = handshake._writer.transport
        transport.abort()
        # The handle is closed in the next turn of the loop, and the reader learns of it one later.
        await asyncio.sleep(0)
        request = MetadataRequest([], allow_auto_topic_creation=False)
        with pytest.raises(SILENCE):
            await handshake.send(request)
        handshake.close()

    uvloop.run(scene())
