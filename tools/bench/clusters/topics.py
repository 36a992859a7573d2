"""The few topic operations of the comparison, by an ordinary client that shares no code with the copiers."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from tools.bench.clusters.end_offsets import EndOffsets
from tools.bench.clusters.window import Look
from tools.bench.errors import BenchError

_TIMEOUT = 30.0
_KEPT = {"retention.ms": "-1"}
_EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
#: Errors of a broker for a partition that is just being created.
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - its public name
)
#: Suffix of a log's folder after the topic, and of a folder that is to be removed (`LocalLog.logDeleteDirName`).
_PARTITION, _TO_BE_REMOVED = re.compile(r"-\d+$"), "-delete"
#: Polling interval before the first record has arrived.
_LOOK_SECONDS = 0.02
#: Limits of the interval during a copy: at its end, which only polling detects, and far from it. Each poll uses CPU of
#: the brokers and of the copier.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
#: Number of polls in the rest of a copy.
_LOOKS_LEFT = 4
#: A copy without progress for this time is stuck.
STALL_SECONDS = 90.0


def pause(looks: Sequence[Look], expected: int) -> float:
    """Return the seconds until the next look: the nearer the end, the sooner, by the average rate so far.

    Args:
        looks: so far; all but the first saw records.
        expected: records at the end.
    """
    if len(looks) < 2 or looks[-1].records <= looks[1].records:
        return _LOOK_SECONDS
    rate = (looks[-1].records - looks[1].records) / (looks[-1].at - looks[1].at)
    left = (expected - looks[-1].records) / rate
    return min(max(left / _LOOKS_LEFT, _SHORTEST_PAUSE), _LONGEST_PAUSE)


class Ends(Protocol):
    """Returns the end of a topic."""

    def total(self) -> int:
        """Return the sum of the end offsets of all partitions."""

    def close(self) -> None:
        """Release its resources."""


class Topics:
    """Topics of one cluster."""

    def __init__(self, bootstrap_servers: str, data_folders: Sequence[Path] = ()) -> None:
        """Args:
        bootstrap_servers: of the cluster.
        data_folders: of all its brokers, as far as they are on this machine.
        """
        self.bootstrap_servers = bootstrap_servers
        self._data_folders = tuple(data_folders)
        self._deleted: set[str] = set()
        # Errors are raised; while the brokers stop, librdkafka would print that they are unreachable.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def names(self) -> set[str]:
        """All topics."""
        return set(self._admin.list_topics(timeout=_TIMEOUT).topics)

    def create(self, name: str, partitions: int) -> None:
        """Create a topic with one replica that keeps records of any age, and wait until it can be written."""
        self._admin.create_topics([NewTopic(name, partitions, 1, config=_KEPT)])[name].result(_TIMEOUT)
        self.wait_until_led(name, partitions)

    def wait_until_led(self, name: str, partitions: int) -> None:
        """Wait until the leader of every partition responds as such: metadata name it before it has taken over."""
        self._until(lambda: self._total(name, partitions) is not None, f"{name} got no leaders")

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics and wait until they are gone; missing ones are not an error."""
        wanted = set(names) & self.names()
        if not wanted:
            return
        for future in self._admin.delete_topics(sorted(wanted)).values():
            future.result(_TIMEOUT)
        self._deleted |= wanted
        self._until(lambda: not wanted & self.names(), f"{', '.join(sorted(wanted))} could not be deleted")

    def wait_removed(self) -> None:
        """Wait until the brokers have removed the files of topics that were deleted here.

        Brokers respond first, then rename the folders (to `<topic>-<partition>.<id>-delete`), and remove them later:
        gigabytes, during the next measurement.
        """
        self._until(lambda: not self._to_be_removed(), "the files of deleted topics were not removed")
        self._deleted.clear()

    def records(self, topic: str, partitions: int) -> int:
        """Return end offsets minus log starts, summed."""
        return sum(self.records_by_partition(topic, partitions))

    def records_by_partition(self, topic: str, partitions: int) -> list[int]:
        """Return end offsets minus log starts."""
        ends = self._offsets(topic, partitions, _LATEST)
        starts = self._offsets(topic, partitions, _EARLIEST)
        return [end - start for end, start in zip(ends, starts, strict=True)]

    def watch(
        self,
        topic: str,
        partitions: int,
        *,
        expected: int,
        cpu_seconds: Callable[[], float],
        still_running: Callable[[], None],
        start_seconds: float,
    ) -> list[Look]:
        """Poll a topic's end offsets until they reach `expected`.

        Args:
            topic: may not exist yet.
            cpu_seconds: returns the CPU of the copier so far.
            still_running: raises if the copier has ended.
            start_seconds: maximum time to the arrival of the first record.

        Raises:
            BenchError: the copy did not begin, or stalled.
        """
        looks: list[Look] = []
        changed, allowed = time.monotonic(), start_seconds
        ends: Ends | None = None
        with ExitStack() as stack:
            while True:
                began = time.monotonic()
                used = cpu_seconds()
                if looks and ends is None:
                    ends = stack.enter_context(closing(self._ends(topic, partitions)))
                total = ends.total() if ends is not None else self._total(topic, partitions)
                if total is not None:
                    looks.append(Look(time.monotonic(), total, used))
                    if total >= expected:
                        return looks
                    if total > 0 and (len(looks) < 2 or total != looks[-2].records):
                        changed, allowed = looks[-1].at, STALL_SECONDS
                    elif total == 0:
                        # Only the last look before the first record matters.
                        del looks[:-1]
                if time.monotonic() - changed > allowed:
                    seen = looks[-1].records if looks else 0
                    raise BenchError(f"{topic} has {seen} of {expected} records, without progress for {allowed:.0f} s.")
                still_running()
                time.sleep(max(pause(looks, expected) - (time.monotonic() - began), 0.001))

    def _ends(self, topic: str, partitions: int) -> Ends:
        """Return a cheap way to read the end of a topic that exists completely."""
        return EndOffsets(self.bootstrap_servers, topic, partitions)

    def _total(self, topic: str, partitions: int) -> int | None:
        """Return the sum of the end offsets, None as long as the topic does not exist completely."""
        if topic not in self.names():
            return None
        try:
            return sum(self._offsets(topic, partitions, _LATEST))
        except BenchError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() in _NOT_YET:
                return None
            raise

    def _offsets(self, topic: str, partitions: int, spec: Any) -> list[int]:
        wanted = {TopicPartition(topic, partition): spec for partition in range(partitions)}
        try:
            answers = self._admin.list_offsets(wanted, request_timeout=_TIMEOUT)
            return [int(answer.result(_TIMEOUT).offset) for answer in answers.values()]
        except KafkaException as error:
            raise BenchError(f"the offsets of {topic} cannot be read: {error}.") from error

    def bytes_on_disk(self, topic: str) -> int:
        """Return the bytes of all records of a topic on disk."""
        folders = (path for folder in self._data_folders for path in folder.glob(f"{topic}-*"))
        return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))

    def _to_be_removed(self) -> list[str]:
        # Folders that still have their old name, unless there is a new topic of that name.
        gone = self._deleted - self.names() if self._deleted else frozenset()
        every = [path.name for folder in self._data_folders for path in folder.iterdir()]
        return [name for name in every if name.endswith(_TO_BE_REMOVED) or _PARTITION.sub("", name) in gone]

    def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while not condition():
            if time.monotonic() > deadline:
                raise BenchError(f"{otherwise} within {_TIMEOUT:.0f} s.")
            time.sleep(0.05)
