"""Records of an internal topic that are kept while it is read: those of a format, newest first if memory ends. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from mirror_lib.cluster.topics.records import TopicRecord
from mirror_lib.outside_limits import INTERNAL_TOPIC_BYTES, INTERNAL_TOPIC_USUAL_BYTES

#: Returns true for a key and a value of the topic's format.
IsWanted = Callable[[bytes | None, bytes | None], bool]

#: Memory of a record in addition to its key and value.
_OVERHEAD = 300
#: Records of each key that are kept when memory ends: compaction deletes older records of a key too, at any time. A run
#: flushes 32 offset-syncs of a partition.
_FEWER = (1_000, 100, 32)
#: The same beyond the hard limit, before the topic counts as too large.
_FEWEST = (16, 4, 2)


class Kept(Protocol):
    """The records that are kept of those that are added."""

    #: Number of records that are not wanted.
    unwanted: int

    def __iter__(self) -> Iterator[TopicRecord]: ...

    def __len__(self) -> int: ...

    def add(self, record: TopicRecord) -> None:
        """Add a record that follows all others of its key.

        Raises:
            TooManyRecordsError: the records are too large together.
        """
        ...


class TooManyRecordsError(Exception):
    """The wanted records of a topic exceed `INTERNAL_TOPIC_BYTES`."""


class KeptRecords:
    """The wanted records of a topic by key, each key's in the order in which they were added."""

    def __init__(self, is_wanted: IsWanted, *, newest_only: bool = False) -> None:
        """Args:
        newest_only: keep one record of each key.
        """
        self._is_wanted = is_wanted
        self._steps = iter(() if newest_only else _FEWER)
        self._last_steps = iter(() if newest_only else _FEWEST)
        self._most: int | None = 1 if newest_only else None
        self._by_key: dict[bytes | None, deque[TopicRecord]] = {}
        self._bytes = 0
        #: Number of records that are not wanted.
        self.unwanted = 0

    def __iter__(self) -> Iterator[TopicRecord]:
        return iter(sorted(record for records in self._by_key.values() for record in records))

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))

    def add(self, record: TopicRecord) -> None:
        """Add a record that follows all others of its key.

        Raises:
            TooManyRecordsError: the records are too large together.
        """
        if not self._is_wanted(record.key, record.value):
            self.unwanted += 1
            return
        of_key = self._by_key.setdefault(record.key, deque())
        of_key.append(record)
        self._bytes += _size(record)
        if self._most is not None and len(of_key) > self._most:
            self._bytes -= _size(of_key.popleft())
        while self._bytes > INTERNAL_TOPIC_USUAL_BYTES and (fewer := next(self._steps, None)) is not None:
            self._keep(fewer)
        while self._bytes > INTERNAL_TOPIC_BYTES:
            fewest = next(self._last_steps, None)
            if fewest is None:
                raise TooManyRecordsError
            self._keep(fewest)

    def _keep(self, most: int) -> None:
        self._most = most
        for of_key in self._by_key.values():
            while len(of_key) > most:
                self._bytes -= _size(of_key.popleft())


def _size(record: TopicRecord) -> int:
    return _OVERHEAD + len(record.key or b"") + len(record.value or b"")
