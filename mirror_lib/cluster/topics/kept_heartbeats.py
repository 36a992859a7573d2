"""Heartbeats that are kept while their topic is read, to which every producer of a cluster may be able to write. Pure.

Each key with its value could have megabytes, and each record another key: both are bounded, and the newest heartbeat of
all is always kept, because the age of a cluster's heartbeats needs no other one.
"""

from __future__ import annotations

from collections.abc import Iterator

from mirror_lib.cluster.topics.mm2_formats import Heartbeat, RecordFormatError
from mirror_lib.cluster.topics.records import TopicRecord
from mirror_lib.outside_limits import HEARTBEAT_BYTES, HEARTBEAT_PAIRS


class KeptHeartbeats:
    """The newest record of each pair of clusters, of the first pairs that were found, and the newest heartbeat."""

    def __init__(self) -> None:
        """None yet."""
        self._by_key: dict[bytes | None, TopicRecord] = {}
        self._newest: tuple[int, TopicRecord] | None = None
        #: Number of records that are no heartbeats.
        self.unwanted = 0
        #: Number of heartbeats of further pairs.
        self.beyond = 0

    def __iter__(self) -> Iterator[TopicRecord]:
        newest = () if self._newest is None else (self._newest[1],)
        return iter(sorted({*self._by_key.values(), *newest}))

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, record: TopicRecord) -> None:
        """Add a record that follows all others of its key."""
        written = _written_ms(record)
        if written is None:
            self.unwanted += 1
            return
        if self._newest is None or written >= self._newest[0]:
            self._newest = written, record
        if record.key in self._by_key or len(self._by_key) < HEARTBEAT_PAIRS:
            self._by_key[record.key] = record
        else:
            self.beyond += 1


def _written_ms(record: TopicRecord) -> int | None:
    """Return the time in a heartbeat; None for any other record."""
    if max(len(record.key or b""), len(record.value or b"")) > HEARTBEAT_BYTES:
        return None
    try:
        return Heartbeat.decode(record.key, record.value).timestamp
    except RecordFormatError:
        return None
