"""The independent reader: an ordinary consumer, `read_uncommitted`, that shares no code with the copier."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Self, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tools.faults.errors import FaultsError
from tools.faults.records.sequences import Seen
from tools.faults.records.stamp import STAMP_HEADER, Content, Stamp

#: A partition of the input: the source's name of the topic, and the partition.
Place = tuple[str, int]
_Header = tuple[str, str | bytes | None]
_READ_SECONDS = 120.0
_POLL_SECONDS = 0.5
_CHUNK = 2000


class Reader:
    """Reads topics of one cluster from their beginning; each call continues where the last one ended."""

    def __init__(self, bootstrap_servers: str, *, prefix: str = "") -> None:
        """Args:
        prefix: what the replication policy put before the source's topic names.
        """
        self._prefix = prefix
        self._next: dict[Place, int] = {}
        self._servers = bootstrap_servers
        self._consumer = self._new_consumer()

    def _new_consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._servers,
                # Never used: partitions are assigned, and nothing is committed.
                "group.id": "faults-reader",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_uncommitted",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "check.crcs": True,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def places(self) -> dict[Place, int]:
        """Return where each partition continues."""
        return dict(self._next)

    def go_back(self, places: Mapping[Place, int]) -> None:
        """Continue at these places, since the log was put back to a time when they were its end."""
        self._next = dict(places)
        # librdkafka takes no leader epoch that is lower than one it knows.
        self._consumer.close()
        self._consumer = self._new_consumer()

    def read_new(self, ends: Mapping[Place, int], take: Callable[[str, int, Seen], None]) -> None:
        """Read every partition at least up to its end offset, in order, and pass each record to `take`.

        Args:
            ends: of the partitions to read, by the source's name of the topic.
            take: called with the source's topic name, partition and record.

        Raises:
            FaultsError: an end is not reached in time, or the log lost records.
        """
        starts = {place: self._next.get(place, 0) for place in ends}
        open_places: set[Place] = {place for place, end in ends.items() if starts[place] < end}
        if not open_places:
            return
        self._consumer.assign(
            [
                TopicPartition(self._prefix + topic, partition, starts[topic, partition])
                for topic, partition in open_places
            ]
        )
        deadline = time.monotonic() + _READ_SECONDS
        while open_places:
            if time.monotonic() > deadline:
                raise FaultsError(f"the reader did not reach the end of {_listed(open_places)}.")
            for message in self._consumer.consume(_CHUNK, _POLL_SECONDS):
                self._take(message, ends, open_places, take)
        self._consumer.unassign()

    def _take(
        self,
        message: Message,
        ends: Mapping[Place, int],
        open_places: set[Place],
        take: Callable[[str, int, Seen], None],
    ) -> None:
        error, offset = message.error(), message.offset()
        topic, partition = message.topic(), message.partition()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            # librdkafka retries temporary errors itself; the deadline is for all others.
            if error.code() in (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET):  # noqa: SLF001
                raise FaultsError(f"{topic}-{partition} lost records that were read before: {error}.") from (
                    KafkaException(error)
                )
            return
        assert topic is not None
        assert partition is not None
        assert offset is not None
        place = (topic.removeprefix(self._prefix), partition)
        if error is None:
            if place not in open_places:
                # Beyond the requested end: the next call reads it.
                return
            take(*place, _seen(message, place))
        # Control records are never returned; only the end of the partition shows that they were passed.
        after = offset + 1 if error is None else offset
        self._next[place] = after
        if after >= ends[place]:
            open_places.discard(place)


def _seen(message: Message, place: Place) -> Seen:
    headers: list[tuple[str, bytes | None]] = [
        (str(name), _bytes(value)) for name, value in cast(Sequence[_Header], message.headers() or ())
    ]
    stamps = [value for name, value in headers if name == STAMP_HEADER]
    try:
        if len(stamps) != 1 or stamps[0] is None:
            raise ValueError("no stamp, or several")
        stamp = Stamp.decode(stamps[0])
    except ValueError:
        return Seen(None, intact=False)
    content = Content(
        *place,
        message.timestamp()[1],
        _bytes(message.key()),
        _bytes(message.value()),
        [(name, value) for name, value in headers if name != STAMP_HEADER],
    )
    # The producer adds the stamp as the last header; it must still be the last.
    in_place = headers[-1][0] == STAMP_HEADER
    return Seen(stamp, in_place and content.stamp(stamp.producer, stamp.sequence, end=stamp.end) == stamp)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _listed(places: Collection[Place]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in sorted(places))
