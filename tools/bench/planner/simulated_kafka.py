"""Kafka clusters of any size that respond at once, in place of both native clients: requests are counted.

The code above librdkafka and aiokafka is the project's and runs unchanged: `ClusterAdmin`, the position store, the
planner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

from confluent_kafka import OFFSET_BEGINNING
from confluent_kafka.admin import ListOffsetsResultInfo  # type: ignore[attr-defined]  # public, but not marked so

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.kept_records import Kept
from mirror_lib.cluster.topics.position_format import ClusterPair, Position, PositionKeys, PositionState, encode_value
from mirror_lib.cluster.topics.reader import TopicContent
from mirror_lib.cluster.topics.records import TopicRecord
from mirror_lib.topology.names import TopicPartition

#: As many as a Kafka 4.3 topic has.
_CONFIGS = 34
_POSITION_PARTITIONS = 25
_NODE_COUNT = 12
_REPLICAS = 3


class SimulatedLog(NamedTuple):
    """One partition."""

    end: int
    bytes: int
    #: The offset copied last; None: nothing yet.
    position: int | None


TARGET_ID = "target"


@dataclass(frozen=True, slots=True)
class SimulatedCluster:
    """A cluster's topics and logs."""

    topics: Mapping[str, int]
    logs: Mapping[TopicPartition, SimulatedLog]
    #: Requests by name, over all brokers.
    requests: Counter[str]
    #: The cluster's own id.
    cluster_id: str = "source"

    def leader(self, partition: TopicPartition) -> int:
        """Return the leader; partitions are spread evenly over the brokers."""
        return (hash(partition.topic) + partition.partition) % _NODE_COUNT


class _NativeAdmin:
    """The used methods of confluent-kafka's `AdminClient`, with a future for every topic or partition."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._nodes = [SimpleNamespace(id=number, host="localhost", port=9092, rack=None) for number in range(12)]

    def poll(self, _: float) -> int:
        return 0

    def describe_cluster(self, **_: Any) -> Future[Any]:
        self._cluster.requests["DescribeCluster"] += 1
        return _done(SimpleNamespace(cluster_id=self._cluster.cluster_id, nodes=self._nodes))

    def list_topics(self, **_: Any) -> Any:
        self._cluster.requests["Metadata"] += 1
        return SimpleNamespace(topics=dict.fromkeys(self._cluster.topics))

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        self._cluster.requests["DescribeTopicPartitions"] += 1
        return {name: _done(self._described(name)) for name in wanted.topic_names}

    def describe_configs(self, resources: Sequence[Any], **_: Any) -> dict[Any, Future[Any]]:
        self._cluster.requests["DescribeConfigs"] += 1
        return {resource: _done(_configs()) for resource in resources}

    def list_offsets(self, wanted: Mapping[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        leaders = {self._cluster.leader(TopicPartition(each.topic, each.partition)) for each in wanted}
        self._cluster.requests["Metadata"] += 1
        self._cluster.requests["ListOffsets"] += len(leaders)
        return {each: _done(self._offset(each, spec)) for each, spec in wanted.items()}

    def _offset(self, native: Any, spec: Any) -> Any:
        log = self._cluster.logs[TopicPartition(native.topic, native.partition)]
        # librdkafka's numbers for the earliest and the latest offset.
        offset = 0 if spec._value == OFFSET_BEGINNING else log.end  # noqa: SLF001
        return ListOffsetsResultInfo(offset, -1, 0)

    def _described(self, name: str) -> Any:
        partitions = [
            SimpleNamespace(
                id=number,
                leader=self._nodes[self._cluster.leader(TopicPartition(name, number))],
                replicas=self._nodes[:_REPLICAS],
                isr=self._nodes[:_REPLICAS],
            )
            for number in range(self._cluster.topics[name])
        ]
        return SimpleNamespace(name=name, topic_id="abcdefghijklmnopqrstuw", is_internal=False, partitions=partitions)


class _NativePartitions:
    """The methods of the raw client that a plan uses."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    async def log_sizes(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        names = set(topics)
        self._cluster.requests["DescribeLogDirs"] += _NODE_COUNT
        return {partition: log.bytes for partition, log in self._cluster.logs.items() if partition.topic in names}

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        self._cluster.requests["Metadata"] += 1
        self._cluster.requests["OffsetForLeaderEpoch"] += len({self._cluster.leader(each) for each in epochs})
        return {partition: self._cluster.logs[partition].end for partition in epochs}


def _done(answer: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(answer)
    return future


def _configs() -> dict[str, Any]:
    names = [f"config.{number}" for number in range(_CONFIGS - 2)]
    values = dict.fromkeys(names, "1") | {"max.message.bytes": "1048588", "cleanup.policy": "delete"}
    return {
        name: SimpleNamespace(value=value, source=5, is_read_only=False, is_sensitive=False)
        for name, value in values.items()
    }


def position_records(source: SimulatedCluster, alias: str) -> list[TopicRecord]:
    """Return the position topic after runs: an open and a closed record of each copied partition, with their bytes."""
    keys = PositionKeys(alias)
    records = []
    for number, (partition, log) in enumerate(source.logs.items()):
        if log.position is None:
            continue
        for state in (PositionState.OPEN, PositionState.CLOSED):
            position = Position(
                topic=partition.topic,
                partition=partition.partition,
                offset=log.position,
                target_offset=log.position + 1,
                state=state,
                producer_id=number,
                epoch=0,
                run_id="3f1c7a52-6f0e-4d0e-9a53-0d5f0f6b7c11",
                topic_id="abcdefghijklmnopqrstuw",
                leader_epoch=0,
                claim=1,
                target_topic=f"{alias}.{partition.topic}",
                target_topic_id="abcdefghijklmnopqrstuw",
                clusters=ClusterPair(source.cluster_id, TARGET_ID),
            )
            records.append(
                TopicRecord(number % _POSITION_PARTITIONS, number, keys.encode(partition), encode_value(position))
            )
    return records


@contextmanager
def simulated(source: SimulatedCluster, target: SimulatedCluster, positions: Sequence[TopicRecord]) -> Iterator[None]:
    """A context in which clients of cluster `A` reach the source, all others the target."""

    class Reader:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def read(self, _: Mapping[int, int], kept: Kept, **__: Any) -> TopicContent:
            target.requests["Fetch"] += _POSITION_PARTITIONS
            for each in positions:
                kept.add(each)
            return TopicContent(tuple(kept), dict.fromkeys(range(_POSITION_PARTITIONS), 0))

        def close(self) -> None:
            pass

    class Writer(Reader):
        def start(self) -> None:
            pass

    def admin(options: Mapping[str, Any]) -> _NativeAdmin:
        return _NativeAdmin(source if options["bootstrap.servers"].endswith(":1") else target)

    @asynccontextmanager
    async def clients(*_: Connection) -> AsyncIterator[tuple[_NativePartitions]]:
        yield (_NativePartitions(source),)

    with ExitStack() as stack:
        stack.enter_context(patch("mirror_lib.cluster.admin.requests.AdminClient", admin))
        stack.enter_context(patch("mirror_lib.cluster.topics.position_store.SmallTopicReader", Reader))
        stack.enter_context(patch("mirror_lib.cluster.topics.position_store.SmallTopicWriter", Writer))
        stack.enter_context(patch("mirror_lib.planning.source_logs.open_clients", clients))
        yield
