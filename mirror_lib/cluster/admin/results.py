"""Converts confluent-kafka's results of administrative requests; splits requests into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not marked so for type checkers
    ConfigSource,
    ListOffsetsResultInfo,
)

from mirror_lib.cluster.admin.model import (
    ConfigEntry,
    ConfigOrigin,
    OffsetFact,
    PartitionDescription,
    PerTopic,
    TopicConfigs,
    TopicDescription,
)
from mirror_lib.errors import MirrorError
from mirror_lib.topology.names import TopicPartition

_Item = TypeVar("_Item")

_ORIGINS = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.value: ConfigOrigin.TOPIC,
    ConfigSource.DYNAMIC_BROKER_CONFIG.value: ConfigOrigin.BROKER,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value: ConfigOrigin.CLUSTER,
    ConfigSource.STATIC_BROKER_CONFIG.value: ConfigOrigin.BROKER_FILE,
    ConfigSource.DEFAULT_CONFIG.value: ConfigOrigin.DEFAULT,
}
#: The topic id in responses of Kafka before 2.8.
_NO_TOPIC_ID = ("", "AAAAAAAAAAAAAAAAAAAAAA")
_URL_SAFE = str.maketrans("+/", "-_")


def batches(
    items: Sequence[_Item], limit: int, weight: Callable[[_Item], int] = lambda _: 1
) -> Iterator[Sequence[_Item]]:
    """The items in order, in parts with a total weight of at most `limit`; a heavier item is a part of its own."""
    batch: list[_Item] = []
    total = 0
    for item in items:
        size = weight(item)
        if batch and total + size > limit:
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def per_topic(responses: Mapping[str, Any]) -> PerTopic[Any]:
    """Separate results from errors."""
    errors = {topic: response for topic, response in responses.items() if isinstance(response, MirrorError)}
    found = {topic: response for topic, response in responses.items() if topic not in errors}
    return PerTopic(found, errors)


def no_answer(native: Any) -> bool:
    """True if librdkafka reports success without an offset (it then returns `OFFSET_INVALID`).

    -1 is a result: no record is at or after the requested time.
    """
    return isinstance(native, ListOffsetsResultInfo) and native.offset < -1


def offset_fact(response: Any) -> OffsetFact:
    """An offset, or the error that was stored in its place."""
    if isinstance(response, MirrorError):
        return OffsetFact(-1, error=response)
    return OffsetFact(response.offset, response.leader_epoch)


def assignment(native: Any) -> frozenset[TopicPartition]:
    """The partitions of all members of a group from DescribeConsumerGroups."""
    return frozenset(
        TopicPartition(each.topic, each.partition)
        for member in native.members
        if member.assignment is not None
        for each in member.assignment.topic_partitions
    )


def description(native: Any) -> TopicDescription:
    """A topic from DescribeTopics."""
    # librdkafka writes plain Base64, Java's `Uuid` the URL-safe alphabet.
    topic_id = str(native.topic_id).translate(_URL_SAFE)
    return TopicDescription(
        name=native.name,
        topic_id=None if topic_id in _NO_TOPIC_ID else topic_id,
        partitions=tuple(sorted(map(_partition, native.partitions), key=lambda partition: partition.partition)),
        is_internal=bool(native.is_internal),
    )


def _partition(info: Any) -> PartitionDescription:
    leader = info.leader if info.leader is not None and info.leader.id >= 0 else None
    replicas, isr = tuple([node.id for node in info.replicas]), tuple([node.id for node in info.isr])
    return PartitionDescription(
        partition=info.id,
        leader=None if leader is None else leader.id,
        leader_host=None if leader is None else leader.host,
        replicas=replicas,
        # They are nearly always equal: keep one object.
        isr=replicas if isr == replicas else isr,
    )


def configs(topic: str, native: Mapping[str, Any]) -> TopicConfigs:
    """A topic's configs from DescribeConfigs."""
    return TopicConfigs(
        topic,
        {
            name: ConfigEntry(
                name=name,
                value=entry.value,
                origin=_ORIGINS.get(int(getattr(entry.source, "value", entry.source)), ConfigOrigin.OTHER),
                read_only=entry.is_read_only,
                sensitive=entry.is_sensitive,
            )
            for name, entry in native.items()
        },
    )
