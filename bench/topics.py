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

from bench.end_offsets import EndOffsets
from bench.errors import BenchError
from bench.window import Look

_TIMEOUT = 30.0
_KEPT = {"retention.ms": "-1"}
_EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
#: What a broker says of a partition that is just being created.
_NOT_YET = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - its public name
)
#: What follows the topic in the name of a log's folder, and how a folder's name ends that is to be removed
#: (`LocalLog.logDeleteDirName`).
_PARTITION, _TO_BE_REMOVED = re.compile(r"-\d+$"), "-delete"
#: How often the target is looked at before anything has come.
_LOOK_SECONDS = 0.02
#: Between two looks while a copy goes on: at its end, which only a look can tell, and far from there. Each look takes
#: from the brokers' and the copier's CPU.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
#: How often one looks in what is left of a copy.
_LOOKS_LEFT = 4
#: A copy that adds nothing for so long is stuck.
STALL_SECONDS = 90.0


def pause(looks: Sequence[Look], expected: int) -> float:
    """Seconds until the next look: the nearer the end, the sooner, by the rate of all that has come.

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
    """Tells where a topic ends."""

    def total(self) -> int:
        """The sum of the end offsets of all partitions."""

    def close(self) -> None:
        """It is not asked any more."""


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
        # What fails is raised; while the brokers stop, librdkafka would print that they are gone.
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def names(self) -> set[str]:
        """All topics."""
        return set(self._admin.list_topics(timeout=_TIMEOUT).topics)

    def create(self, name: str, partitions: int) -> None:
        """Create a topic with one replica that keeps records of any age, and wait until it can be written."""
        self._admin.create_topics([NewTopic(name, partitions, 1, config=_KEPT)])[name].result(_TIMEOUT)
        self.wait_until_led(name, partitions)

    def wait_until_led(self, name: str, partitions: int) -> None:
        """Wait until the leader of every partition answers as such: metadata name it before it has taken over."""
        self._until(lambda: self._total(name, partitions) is not None, f"{name} got no leaders")

    def delete(self, names: Iterable[str]) -> None:
        """Delete topics and wait until they are gone; those that do not exist are no error."""
        wanted = set(names) & self.names()
        if not wanted:
            return
        for future in self._admin.delete_topics(sorted(wanted)).values():
            future.result(_TIMEOUT)
        self._deleted |= wanted
        self._until(lambda: not wanted & self.names(), f"{', '.join(sorted(wanted))} could not be deleted")

    def wait_removed(self) -> None:
        """Wait until the brokers have removed the files of what was deleted here.

        They answer first, rename the folders then (to `<topic>-<partition>.<id>-delete`), and remove them later:
        gigabytes, in the middle of whatever is measured by then.
        """
        self._until(lambda: not self._to_be_removed(), "the files of deleted topics were not removed")
        self._deleted.clear()

    def records(self, topic: str, partitions: int) -> int:
        """End offsets minus log starts, summed."""
        return sum(self.records_by_partition(topic, partitions))

    def records_by_partition(self, topic: str, partitions: int) -> list[int]:
        """End offsets minus log starts."""
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
        """Look at a topic's end offsets until they reach `expected`.

        Args:
            topic: may not exist yet.
            cpu_seconds: what the copier has used so far.
            still_running: raises when the copier has ended.
            start_seconds: how long the first record may take to arrive.

        Raises:
            BenchError: the copy did not begin, or came to a halt.
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
                    raise BenchError(f"{topic} stands at {seen} of {expected} records for {allowed:.0f} s.")
                still_running()
                time.sleep(max(pause(looks, expected) - (time.monotonic() - began), 0.001))

    def _ends(self, topic: str, partitions: int) -> Ends:
        """What tells the end of a topic that is wholly there, at a small price."""
        return EndOffsets(self.bootstrap_servers, topic, partitions)

    def _total(self, topic: str, partitions: int) -> int | None:
        """The sum of the end offsets, None as long as the topic is not wholly there."""
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

    def _to_be_removed(self) -> list[str]:
        # What has its old name still, unless there is a new topic of that name.
        gone = self._deleted - self.names() if self._deleted else frozenset()
        every = [path.name for folder in self._data_folders for path in folder.iterdir()]
        return [name for name in every if name.endswith(_TO_BE_REMOVED) or _PARTITION.sub("", name) in gone]

    def _until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while not condition():
            if time.monotonic() > deadline:
                raise BenchError(f"{otherwise} within {_TIMEOUT:.0f} s.")
            time.sleep(0.05)
