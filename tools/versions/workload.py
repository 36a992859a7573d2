"""Operations of producers, consumers and administrators on both clusters, by an independent client (librdkafka)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

_WAIT_SECONDS = 60.0
_FIRST_TIMESTAMP_MS = 1_704_067_200_000
#: `none` last: it is librdkafka's default.
CODECS = ("gzip", "snappy", "lz4", "zstd", "none")


class Record(NamedTuple):
    """The content of a record without its offset, which differs in copies."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


def admin(servers: str) -> AdminClient:
    """Return an admin client; the caller has to keep it until its futures are done."""
    return AdminClient({"bootstrap.servers": servers, "log_level": 3})


def create_topic(servers: str, topic: str, *, partitions: int, configs: Mapping[str, str]) -> None:
    """Create a topic and wait until every partition has a leader."""
    client = admin(servers)
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(configs))
    client.create_topics([new])[topic].result(timeout=_WAIT_SECONDS)

    def led() -> bool:
        found = client.list_topics(topic, timeout=_WAIT_SECONDS).topics[topic]
        return len(found.partitions) == partitions and all(each.leader >= 0 for each in found.partitions.values())

    eventually(led, f"topic {topic} has no leaders")


def produce(
    servers: str, topic: str, count: int, *, partitions: int, codec: str = "none", headers: bool = True
) -> None:
    """Write records with and without keys, some of them tombstones, all partitions in turn."""
    producer = Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 20, "log_level": 3, "acks": "all"}
    )
    for number in range(count):
        producer.produce(
            topic,
            key=None if number % 5 == 0 else b"key-%d" % number,
            value=None if number % 7 == 3 and number % 5 else b"%s-%d-" % (codec.encode(), number) + b"." * 200,
            headers=[("number", b"%d" % number), ("empty", None)] if headers else None,
            partition=number % partitions,
            timestamp=_FIRST_TIMESTAMP_MS + number,
        )
    _flush(producer)


def produce_documents(servers: str, topic: str, documents: Iterable[Mapping[str, Any]], *, partitions: int) -> None:
    """Write JSON documents with keys, all partitions in turn."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "log_level": 3, "acks": "all"})
    for number, document in enumerate(documents):
        value = json.dumps(document).encode()
        producer.produce(topic, key=b"key-%d" % number, value=value, partition=number % partitions)
    _flush(producer)


def produce_transaction(servers: str, topic: str, values: Iterable[bytes], *, commit: bool) -> None:
    """Write values to partition 0 in a transaction, and end it."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"versions-{topic}", "log_level": 3})
    producer.init_transactions(_WAIT_SECONDS)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value=value, partition=0)
    _flush(producer)
    if commit:
        producer.commit_transaction(_WAIT_SECONDS)
    else:
        producer.abort_transaction(_WAIT_SECONDS)


def consume(servers: str, topic: str) -> list[Record]:
    """Return all committed records of a topic, by partition and offset.

    Raises:
        AssertionError: the topic is not read to its end in time.
    """
    return sorted((_record(message) for message in _messages(servers, topic)), key=lambda record: record.partition)


def consume_offsets(servers: str, topic: str) -> list[tuple[int, bytes | None]]:
    """Return the offset and the value of each committed record of a topic of one partition.

    Raises:
        AssertionError: the topic is not read to its end in time.
    """
    return [(message.offset(), message.value()) for message in _messages(servers, topic)]


def _messages(servers: str, topic: str) -> list[Any]:
    reader = _reader(servers)
    try:
        partitions = sorted(reader.list_topics(topic, timeout=_WAIT_SECONDS).topics[topic].partitions)
        reader.assign([TopicPartition(topic, number, 0) for number in partitions])
        unfinished, found = set(partitions), list[Any]()
        deadline = time.monotonic() + _WAIT_SECONDS
        while unfinished:
            if time.monotonic() > deadline:
                raise AssertionError(f"partitions {sorted(unfinished)} of {topic} were not read to their end")
            message = reader.poll(0.5)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  # the client has no other name for it
                unfinished.discard(message.partition())
            else:
                raise KafkaException(error)
        return found
    finally:
        reader.close()


def end_offset(servers: str, topic: str, partition: int) -> int:
    """Return the offset after the last record."""
    reader = _reader(servers)
    try:
        _, high = reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=_WAIT_SECONDS)
        return int(high)
    finally:
        reader.close()


def commit(servers: str, group: str, topic: str, partition: int, offset: int) -> None:
    """Commit for a group without members, like a consumer that has left."""
    client = admin(servers)
    request = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition, offset)])
    client.alter_consumer_group_offsets([request])[group].result(timeout=_WAIT_SECONDS)


def committed(servers: str, group: str) -> dict[tuple[str, int], int]:
    """Return a group's committed offsets."""
    client = admin(servers)
    answer = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group]
    return {
        (place.topic, place.partition): place.offset for place in answer.result(timeout=_WAIT_SECONDS).topic_partitions
    }


def set_config(servers: str, topic: str, name: str, value: str) -> None:
    """Set one config of a topic."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(servers)
    client.incremental_alter_configs([resource])[resource].result(timeout=_WAIT_SECONDS)


def config(servers: str, topic: str, name: str) -> str | None:
    """Return the effective value; None if the cluster has no such config."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(servers)
    found = client.describe_configs([resource])[resource].result(timeout=_WAIT_SECONDS)
    return found[name].value if name in found else None


def grant(servers: str, topic: str, principal: str, operation: str) -> None:
    """Allow an operation on a topic."""
    acl = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        principal,
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )
    client = admin(servers)
    client.create_acls([acl])[acl].result(timeout=_WAIT_SECONDS)
    eventually(lambda: (principal, operation) in grants(servers, topic), f"the ACL of {topic} does not show")


def grants(servers: str, topic: str) -> set[tuple[str, str]]:
    """Return principal and operation of all grants on a topic by its name."""
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        anything,
        anything,
        AclOperation.ANY,
        AclPermissionType.ALLOW,
    )
    client = admin(servers)
    found = client.describe_acls(every).result(timeout=_WAIT_SECONDS)
    return {(acl.principal, acl.operation.name) for acl in found}


def eventually(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait for a condition: changes accepted by a controller reach brokers a moment later.

    Raises:
        AssertionError: it did not become true.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(otherwise)
        time.sleep(0.1)


def _reader(servers: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "versions-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 3,
        }
    )


def _record(message: Any) -> Record:
    headers = tuple(message.headers() or ())
    return Record(message.partition(), message.key(), message.value(), headers, message.timestamp()[1])


def _flush(producer: Producer) -> None:
    left = producer.flush(_WAIT_SECONDS)
    if left:
        raise AssertionError(f"{left} records were not acknowledged")
