"""Topics and records by a client that is not ours (confluent-kafka), so that tests have an independent opinion."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.waiting import wait_for

_WAIT_SECONDS = 30.0
Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a client sees it; `offset` is None until it is written."""

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    partition: int = 0
    offset: int | None = None


def records(count: int, *, size: int = 100, partition: int = 0, start: int = 0) -> list[Record]:
    """Different records with keys, values of about `size` bytes, headers and rising timestamps of the year 2024."""
    return [
        Record(
            key=b"key-%d" % number,
            value=(b"value-%d-" % number).ljust(size, b"."),
            headers=(("number", b"%d" % number), ("empty", b""), ("absent", None)),
            timestamp_ms=1_704_067_200_000 + number * 1000,
            partition=partition,
        )
        for number in range(start, start + count)
    ]


def aged(count: int, *, age: float, size: int = 1_000, partition: int = 0) -> list[Record]:
    """Records without keys, the first of which is so many seconds old, and each other a millisecond younger."""
    began = int((time.time() - age) * 1000)
    return [Record(value=b"v" * size, timestamp_ms=began + number, partition=partition) for number in range(count)]


def values(found: Iterable[Record]) -> list[bytes | None]:
    """What the records hold."""
    return [record.value for record in found]


#: Cluster and address -> its admin client; the last one used comes last.
_admins: dict[tuple[str, str], AdminClient] = {}
_MOST_ADMINS = 6


def admin(cluster: KafkaCluster) -> AdminClient:
    """Return the cluster's admin client: a new one would connect and ask for the versions of all requests again."""
    key = (cluster.cluster_id, cluster.bootstrap_servers)
    # One whose cluster has ended would log that again and again.
    client = _admins.pop(key, None) or AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    _admins[key] = client
    for oldest in list(_admins)[:-_MOST_ADMINS]:
        del _admins[oldest]
    return client


def create_topic(
    cluster: KafkaCluster,
    name: str,
    *,
    partitions: int = 1,
    copies: int | None = None,
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic and wait until every partition has a leader."""
    client = admin(cluster)
    # Records of the builders are years old: the default retention of a week would delete them.
    settings = {"retention.ms": "-1", **(configs or {})}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=copies or cluster.brokers, config=settings)
    client.create_topics([topic])[name].result(timeout=_WAIT_SECONDS)
    _wait_for_leaders(client, name, partitions)


def add_partitions(cluster: KafkaCluster, name: str, count: int) -> None:
    """Raise a topic to a number of partitions and wait until every one has a leader."""
    client = admin(cluster)
    client.create_partitions([NewPartitions(name, count)])[name].result(timeout=_WAIT_SECONDS)
    _wait_for_leaders(client, name, count)


def _wait_for_leaders(client: AdminClient, topic: str, partitions: int) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not _led(client, topic, partitions):
        assert time.monotonic() < deadline, f"topic {topic} has no leaders"
        time.sleep(0.05)
        # librdkafka remembers how many partitions it was told of, too early, and asks for no others.
        client.describe_topics(TopicCollection([topic]))[topic].exception(timeout=_WAIT_SECONDS)


def _led(client: AdminClient, topic: str, partitions: int) -> bool:
    """Whether the leader of every partition answers as such: metadata name it before it has taken over."""
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    asked = {TopicPartition(topic, number): latest for number in range(partitions)}
    answers = client.list_offsets(asked, request_timeout=_WAIT_SECONDS)
    return all(answer.exception() is None for answer in answers.values())


def leaders(cluster: KafkaCluster, topic: str, partitions: int = 1) -> dict[int, int]:
    """Return the broker that leads each partition, once the broker that is asked has heard of the topic."""
    client = admin(cluster)
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        known = client.list_topics(topic, timeout=_WAIT_SECONDS).topics[topic].partitions
        if len(known) >= partitions and all(each.leader >= 0 for each in known.values()):
            return {number: each.leader for number, each in known.items()}
        assert time.monotonic() < deadline, f"topic {topic} has no leaders"
        time.sleep(0.05)


def delete_topic(cluster: KafkaCluster, name: str) -> None:
    """Delete a topic and wait until the broker knows it no more.

    The controller answers before brokers have heard of it, and until then they take records for the topic: long enough
    to be met by a copy if a hundred partitions are deleted at that moment.
    """
    client = admin(cluster)
    client.delete_topics([name])[name].result(timeout=_WAIT_SECONDS)
    wait_for(lambda: name not in client.list_topics(timeout=_WAIT_SECONDS).topics, why=f"topic {name} is still there")


def delete_topics(cluster: KafkaCluster, containing: str = "") -> None:
    """Delete the topics whose names contain a text, but not Kafka's own; nothing if the cluster does not run."""
    if not cluster.running_nodes:
        return
    client = admin(cluster)
    topics = client.list_topics(timeout=_WAIT_SECONDS).topics
    if names := [name for name in topics if containing in name and not name.startswith("__")]:
        for deleted in client.delete_topics(names).values():
            error = deleted.exception(timeout=_WAIT_SECONDS)
            # Somebody else was faster.
            if error is not None and error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise error


def topic_names(cluster: KafkaCluster) -> set[str]:
    """All topics but Kafka's own."""
    return {name for name in admin(cluster).list_topics(timeout=_WAIT_SECONDS).topics if not name.startswith("__")}


def partition_count(cluster: KafkaCluster, topic: str) -> int:
    """How many partitions a topic has."""
    return len(admin(cluster).list_topics(topic, timeout=_WAIT_SECONDS).topics[topic].partitions)


def own_configs(cluster: KafkaCluster, topic: str) -> dict[str, str]:
    """The configs that are set on the topic itself."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    # A future lives as long as its client.
    client = admin(cluster)
    entries: Any = client.describe_configs([resource])[resource].result(timeout=_WAIT_SECONDS)
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name: entry.value for name, entry in entries.items() if entry.source == own}


def set_config(cluster: KafkaCluster, topic: str, name: str, value: str) -> None:
    """Set one config of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(cluster)
    client.incremental_alter_configs([resource])[resource].result(timeout=_WAIT_SECONDS)


def produce(cluster: KafkaCluster, topic: str, written: Iterable[Record], **settings: Any) -> list[Record]:
    """Write records in their order; returns them with their offsets. Keyword settings have `_` for `.`."""
    producer = _fresh_producer(cluster, {name.replace("_", "."): value for name, value in settings.items()})
    sent: list[Record] = []
    offsets: dict[int, int] = {}
    problems: list[KafkaError] = []

    def send(number: int, record: Record) -> None:
        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offsets[number] = message.offset()
            else:
                problems.append(error)

        more: dict[str, Any] = {} if record.timestamp_ms is None else {"timestamp": record.timestamp_ms}
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            headers=list(record.headers),
            partition=record.partition,
            on_delivery=delivered,
            **more,
        )

    for number, record in enumerate(written):
        sent.append(record)
        send(number, record)
        producer.poll(0)
    left = producer.flush(_WAIT_SECONDS)
    if problems:
        raise KafkaException(problems[0])
    assert left == 0, f"{left} records were not acknowledged"
    return [replace(record, offset=offsets[number]) for number, record in enumerate(sent)]


#: Cluster, address and settings -> a producer that nobody has used; the newest come last.
_ready: dict[tuple[object, ...], Producer] = {}
_MOST_READY = 6


def _fresh_producer(cluster: KafkaCluster, settings: Mapping[str, Any]) -> Producer:
    """Give an idempotent producer of its own to each caller.

    A new one asks for its producer id half a second after its start (rdkafka_idempotence.c). So the next one is started
    when one is taken.
    """
    key = (cluster.cluster_id, cluster.bootstrap_servers, *settings.items())
    of_cluster = {"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}

    def new() -> Producer:
        # One that is left over when its cluster has ended would log that again and again.
        return Producer({**of_cluster, "log_level": 0, **settings})

    taken = _ready.pop(key, None) or new()
    _ready[key] = new()
    for oldest in list(_ready)[:-_MOST_READY]:
        del _ready[oldest]
    return taken


def transaction(cluster: KafkaCluster, topic: str, values: list[bytes], *, commit: bool, **options: Any) -> None:
    """Write values in one transaction and end it; options as in `open_transaction`."""
    producer = open_transaction(cluster, topic, values, **options)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def open_transaction(
    cluster: KafkaCluster,
    topic: str,
    values: list[bytes],
    *,
    name: str | None = None,
    partition: int = 0,
    key: bytes | None = None,
) -> Producer:
    """Write values in a transaction; returns its producer, which ends it.

    Args:
        name: the transactional id; default one of the topic.
        key: of all records.
    """
    name = name or f"tests-{topic}"
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": name, "log_level": 3})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value, key=key, partition=partition)
    producer.flush(30)
    return producer


def delete_records(cluster: KafkaCluster, topic: str, *, before: int, partition: int = 0) -> None:
    """Delete the records of a partition before an offset."""
    client, place = admin(cluster), TopicPartition(topic, partition, before)
    client.delete_records([place])[place].result(timeout=_WAIT_SECONDS)


def watermarks(cluster: KafkaCluster, topic: str, partition: int = 0) -> tuple[int, int]:
    """First offset and high watermark of a partition."""
    reader = _consumer(cluster, "read_uncommitted")
    try:
        low, high = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=_WAIT_SECONDS)
        return low, high
    finally:
        reader.close()


def consume(
    cluster: KafkaCluster,
    topic: str,
    *,
    partitions: Sequence[int] | None = None,
    isolation: str = "read_committed",
    timeout_seconds: float = _WAIT_SECONDS,
) -> list[Record]:
    """Everything that stands in a topic now, by partition and offset.

    With `read_committed` the end is the last stable offset, so an open transaction's records are left out.
    """
    reader = _consumer(cluster, isolation)
    try:
        numbers = partitions
        if numbers is None:
            numbers = sorted(reader.list_topics(topic, timeout=_WAIT_SECONDS).topics[topic].partitions)
        assigned = [TopicPartition(topic, number, 0) for number in numbers]
        for place in assigned:
            place.offset = reader.get_watermark_offsets(place, timeout=_WAIT_SECONDS)[0]
        reader.assign(assigned)
        return sorted(_read_to_end(reader, set(numbers), timeout_seconds), key=lambda r: (r.partition, r.offset))
    finally:
        reader.close()


def _read_to_end(reader: Consumer, open_partitions: set[int], timeout_seconds: float) -> Iterable[Record]:
    deadline = time.monotonic() + timeout_seconds
    while open_partitions:
        assert time.monotonic() < deadline, f"partitions {sorted(open_partitions)} were not read to their end"
        message = reader.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            yield _record(message)
        elif error.code() == KafkaError._PARTITION_EOF:
            open_partitions.discard(message.partition())
        else:
            raise KafkaException(error)


def _record(message: Any) -> Record:
    return Record(
        value=message.value(),
        key=message.key(),
        headers=tuple(message.headers() or ()),
        timestamp_ms=message.timestamp()[1],
        partition=message.partition(),
        offset=message.offset(),
    )


def _consumer(cluster: KafkaCluster, isolation: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "tests",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            # The end of a partition is reported after the wait.
            "fetch.wait.max.ms": 10,
            "log_level": 3,
        }
    )
