"""Real clusters and an ordinary client (confluent-kafka) for all writing and reading of the model itself."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import (
    OFFSET_STORED,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from mirror_lib.features.demo.broker import KafkaCluster

#: Compaction, retention and producer expiration within seconds; Kafka decides what expires, and when.
_FAST = {
    "log.initial.task.delay.ms": "500",
    "log.cleaner.backoff.ms": "1000",
    "log.retention.check.interval.ms": "1000",
    "producer.id.expiration.check.interval.ms": "2000",
    "group.initial.rebalance.delay.ms": "0",
}
_SECONDS = 30.0
#: A deletion written by an operator's decision copies no record: its header, and its id here.
_DELETION, WRITTEN_DELETION = "mirror.deletion", "written-deletion"
#: The cleaner removes old values within about a second, and deletions two seconds after it has processed them.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "2000",
}


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as a client reads it."""

    offset: int
    #: Its identity: the model gives every record its own number.
    id: str
    #: Of everything else: timestamp, key, value, headers.
    digest: str
    key: bytes | None
    deletes: bool


class Cluster:
    """One cluster through an ordinary client; its broker can be restored from a copy of its disk."""

    def __init__(self, name: str, folder: Path) -> None:
        """The cluster of this name in this folder, running or not."""
        self._broker = KafkaCluster(name, directory=folder / name, overrides=_FAST, heap_megabytes=256)
        self._former: list[AdminClient] = []
        self._connect()

    def _connect(self) -> None:
        # A client that has seen a former life of the broker waits for its coordinators; to end it with a request that
        # is still waiting has crashed librdkafka.
        self.servers = self._broker.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        self._former.append(self.admin)

    def start(self) -> None:
        """Start the broker if it does not run; its address may have changed."""
        self._broker.start()
        self._connect()

    @property
    def is_running(self) -> bool:
        """True if its broker runs."""
        return bool(self._broker.running_nodes)

    def kill(self) -> None:
        """Kill the broker."""
        self._broker.kill_all()

    def keep_disk(self, copy: Path) -> None:
        """Stop the broker, copy its disk, and start it again."""
        self._broker.stop()
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._broker.data_folders[0], copy)
        self.start()

    def put_disk(self, copy: Path) -> None:
        """Put a copy of the broker's disk in its place.

        As many restarts in both histories: the leader epochs of both are the same.
        """
        self._broker.kill_all()
        (data,) = self._broker.data_folders
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        self.start()

    def cluster_id(self) -> str:
        """Return the cluster's own id."""
        return str(self.admin.describe_cluster().result(timeout=_SECONDS).cluster_id)

    def create(self, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic without retention, and wait until it can be used."""
        wanted = {"retention.ms": "-1", **(configs or {})}
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=wanted)
        self._again(lambda: self.admin.create_topics([new])[topic].result(timeout=_SECONDS))
        self._wait(lambda: len(self.partitions(topic)) == partitions, f"topic {topic}")

    def delete(self, topic: str) -> None:
        """Delete a topic and wait until it is not listed any more."""
        self.admin.delete_topics([topic])[topic].result(timeout=_SECONDS)
        self._wait(lambda: not self.partitions(topic), f"the end of topic {topic}")

    def forget(self, topics: Collection[str], groups: Collection[str]) -> None:
        """Delete topics and groups whose names are not used again, and wait only for the responses."""
        asked: list[Any] = []
        if topics:
            asked += self.admin.delete_topics(list(topics)).values()
        # A cluster that has never had a group has no coordinator that could respond.
        listed = self.admin.list_consumer_groups().result(timeout=_SECONDS).valid
        if present := [each.group_id for each in listed if each.group_id in groups]:
            asked += self.admin.delete_consumer_groups(present).values()
        for each in asked:
            with suppress(KafkaException):
                each.result(timeout=_SECONDS)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(timeout=_SECONDS)
        self._wait(lambda: len(self.partitions(topic)) == partitions, f"partitions of {topic}")

    def trim(self, topic: str, partition: int, before: int) -> None:
        """Delete records."""
        place = TopicPartition(topic, partition, before)
        self.admin.delete_records([place])[place].result(timeout=_SECONDS)

    def expire(self, topic: str, hours: int, seconds: float) -> None:
        """Let retention delete older records, if whole segments are old, and wait for it at most this long."""
        before = self.starts(topic)
        self._set(topic, "retention.ms", str(hours * 3_600_000))
        deadline = time.monotonic() + seconds
        while self.starts(topic) == before and time.monotonic() < deadline:
            time.sleep(0.2)
        self._set(topic, "retention.ms", "-1")

    def _set(self, topic: str, name: str, value: str) -> None:
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self.admin.incremental_alter_configs([resource])[resource].result(timeout=_SECONDS)

    def ends(self, topic: str) -> dict[int, int]:
        """Return the log end offsets of a topic."""
        return {number: high for number, (_, high, _) in self.read(topic, self._from_end(topic)).items()}

    def starts(self, topic: str) -> dict[int, int]:
        """Return the log start offsets of a topic."""
        return {number: low for number, (low, _, _) in self.read(topic, self._from_end(topic)).items()}

    def _from_end(self, topic: str) -> dict[int, int]:
        return dict.fromkeys(self.partitions(topic), 1 << 60)

    def topics(self, prefix: str) -> list[str]:
        """Return topics with a prefix."""
        return [name for name in self.admin.list_topics(timeout=_SECONDS).topics if name.startswith(prefix)]

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic that have a leader; none if there is no such topic."""
        found = self.admin.list_topics(timeout=_SECONDS).topics.get(topic)
        return sorted(number for number, each in found.partitions.items() if each.leader >= 0) if found else []

    def topic_id(self, topic: str) -> str | None:
        """Return the id of a topic; None if there is none."""
        from confluent_kafka import TopicCollection

        asked = self.admin.describe_topics(TopicCollection([topic]))[topic]
        try:
            return str(asked.result(timeout=_SECONDS).topic_id)
        except KafkaException:
            return None

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return a group's committed offsets, by partition.

        Not by `AdminClient.list_consumer_group_offsets`: that ends the process if the broker is not the coordinator yet
        (librdkafka 2.16, `rd_kafka_cgrp_op` without a group; confluent-kafka-javascript#374).
        """
        topics = self.admin.list_topics(timeout=_SECONDS).topics
        places = [TopicPartition(name, number) for name, each in topics.items() for number in each.partitions]
        reader = self._reader(group, "error", "read_committed")
        try:
            found = self._again(lambda: reader.committed(places, timeout=_SECONDS))
        finally:
            reader.close()
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def commit(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit an offset of a group without members."""
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, partition, offset)])
        self._again(lambda: self.admin.alter_consumer_group_offsets([wanted])[group].result(timeout=_SECONDS))

    def read(self, topic: str, starts: Mapping[int, int]) -> dict[int, tuple[int, int, list[Seen]]]:
        """Read a topic: partition -> log start, log end, and the records from the given offsets on."""
        reader = self._reader("model-reader", "earliest", "read_uncommitted")
        try:
            found: dict[int, tuple[int, int, list[Seen]]] = {}
            assigned = []
            for number, start in starts.items():
                low, high = self._watermarks(reader, TopicPartition(topic, number))
                found[number] = (low, high, [])
                if max(low, start) < high:
                    assigned.append(TopicPartition(topic, number, max(low, start)))
            for (_, number), records in _read_to_the_end(reader, assigned).items():
                found[number][2].extend(records)
            return found
        finally:
            reader.close()

    def read_as(self, group: str, places: Iterable[tuple[str, int]], reset: str) -> dict[tuple[str, int], list[Seen]]:
        """Read what a consumer of a group gets that starts now, to the log ends; it joins no group and commits nothing.

        Args:
            reset: its `auto.offset.reset`, for partitions without a committed offset.
        """
        reader = self._reader(group, reset, "read_committed")
        try:
            return _read_to_the_end(reader, [TopicPartition(*place, OFFSET_STORED) for place in places])
        finally:
            reader.close()

    def _reader(self, group: str, reset: str, isolation: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "auto.offset.reset": reset,
                "fetch.wait.max.ms": 5,
                "log_level": 0,
            }
        )

    def _watermarks(self, reader: Consumer, place: TopicPartition) -> tuple[int, int]:
        # A broker may be named as the leader of a new partition before it knows that.
        return self._again(lambda: reader.get_watermark_offsets(place, timeout=_SECONDS))

    @staticmethod
    def _again(work: Callable[[], T]) -> T:
        """Retry: a broker may still be busy with the earlier topic or group of the same name."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                return work()
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    @staticmethod
    def _wait(until: Any, what: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not until():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come")
            time.sleep(0.05)


def _read_to_the_end(reader: Consumer, assigned: list[TopicPartition]) -> dict[tuple[str, int], list[Seen]]:
    found: dict[tuple[str, int], list[Seen]] = {(each.topic, each.partition): [] for each in assigned}
    open_ones = set(found)
    reader.assign(assigned)
    deadline = time.monotonic() + _SECONDS
    while open_ones:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{sorted(open_ones)} were not read to their ends")
        message = reader.poll(0.2)
        if message is None:
            continue
        error, place = message.error(), (str(message.topic()), message.partition() or 0)
        if error is None:
            found[place].append(_seen(message))
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            open_ones.discard(place)
    return found


def _seen(message: Any) -> Seen:
    headers = message.headers() or []
    names = dict(headers)
    number = WRITTEN_DELETION.encode() if _DELETION in names else names.get("model-id") or b""
    parts = repr((message.timestamp()[1], message.key(), message.value(), headers))
    digest = hashlib.sha1(parts.encode()).hexdigest()[:12]
    return Seen(message.offset(), number.decode(), digest, message.key(), message.value() is None)


def produce(
    cluster: Cluster,
    topic: str,
    partition: int,
    ids: Iterable[str],
    *,
    timestamp_ms: int,
    codec: str = "none",
    batch: int = 1000,
    keyed: bool = False,
) -> None:
    """Write a record for each id.

    Args:
        keyed: all records have a key, as compacted topics require.
    """
    settings = {**_settings(cluster), "compression.type": codec, "batch.num.messages": batch}
    _write(Producer(settings), topic, partition, ids, timestamp_ms=timestamp_ms, keyed=keyed)


class Transaction:
    """An open transaction with records; with its own transactional id, so that it stays open when others begin."""

    def __init__(self, cluster: Cluster, topic: str, partition: int, ids: Sequence[str], timestamp_ms: int) -> None:
        settings = {**_settings(cluster), "transactional.id": f"model-{ids[0]}", "transaction.timeout.ms": "600000"}
        self.ids = ids
        self._producer = Producer(settings)
        self._producer.init_transactions(_SECONDS)
        self._producer.begin_transaction()
        _write(self._producer, topic, partition, ids, timestamp_ms=timestamp_ms, keyed=False)

    def end(self, *, commit: bool) -> None:
        """Commit or abort it."""
        (self._producer.commit_transaction if commit else self._producer.abort_transaction)(_SECONDS)


def _settings(cluster: Cluster) -> dict[str, Any]:
    return {"bootstrap.servers": cluster.servers, "linger.ms": 20, "log_level": 0, "acks": "all"}


def _write(
    producer: Producer, topic: str, partition: int, ids: Iterable[str], *, timestamp_ms: int, keyed: bool
) -> None:
    problems = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            problems.append(error)

    for number, each in enumerate(ids):
        producer.produce(
            topic,
            partition=partition,
            key=None if number % 5 == 4 and not keyed else f"key-{number % 7}".encode(),
            value=None if number % 6 == 5 else each.encode() * (1 + number % 40),
            headers=[("model-id", each.encode()), ("empty", b""), ("absent", None)],
            timestamp=timestamp_ms + number,
            on_delivery=delivered,
        )
    if producer.flush(_SECONDS) or problems:
        raise TimeoutError(f"the model could not write to {topic}: {problems}")


def clusters_of(folder: Path) -> tuple[Cluster, Cluster, Cluster]:
    """Return source, target and a cluster that can replace the target."""
    return Cluster("source", folder), Cluster("target", folder), Cluster("spare", folder)


@contextmanager
def clusters(folder: Path) -> Iterator[tuple[Cluster, Cluster, Cluster]]:
    """Start source and target in a folder, the third when it is needed; kill all at the end."""
    source, target, _ = found = clusters_of(folder)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Cluster.start, (source, target)))
        yield found
    finally:
        for each in found:
            each.kill()
