"""Rows by columns, for the writing side.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.arrow.records import OutgoingRows, outgoing_rows
from mirror_lib.features.transforms.arrow.rows import CREATE_TIME
from mirror_lib.features.transforms.rows.layout import Int32s, Int64s, sources_of


def _no_types() -> Int32s:
    return np.full(0, CREATE_TIME, dtype=np.int32)


class Tails(NamedTuple):
    """Encoded rows, without their offsets.

    Attributes:
        times: epoch milliseconds.
        content: the consecutive tails of the rows (`records.Record.tail`).
        ends: the end of each.
    """

    times: Int64s
    content: bytes
    ends: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class RowColumns:
    """Some rows.

    Attributes:
        offsets: of the source, or of the log that they were read from.
        timestamp_types: as in Spark's Kafka source; empty for rows that are not written yet.
    """

    keys: pa.Array
    values: pa.Array
    headers: pa.Array
    timestamps: pa.Array
    offsets: Int64s
    timestamp_types: Int32s = field(default_factory=_no_types)

    def __len__(self) -> int:
        return len(self.offsets)

    def part(self, first: int, stop: int) -> RowColumns:
        """Rows number `first` to `stop` - 1."""
        count = stop - first
        return RowColumns(
            self.keys.slice(first, count),
            self.values.slice(first, count),
            self.headers.slice(first, count),
            self.timestamps.slice(first, count),
            self.offsets[first:stop],
            self.timestamp_types[first:stop],
        )

    def take(self, numbers: Sequence[int]) -> RowColumns:
        """Some of the rows, by their numbers."""
        at = np.array(numbers, dtype=np.int64)
        column = pa.Array.from_buffers(pa.int64(), len(at), [None, pa.py_buffer(at)])
        types = self.timestamp_types[at] if len(self.timestamp_types) else self.timestamp_types
        return RowColumns(
            self.keys.take(column),
            self.values.take(column),
            self.headers.take(column),
            self.timestamps.take(column),
            self.offsets[at],
            types,
        )

    def same_as(self, other: RowColumns, *, timed: bool) -> bool:
        """True if both would be written as the same bytes.

        Args:
            timed: compare timestamps, too; a broker may have replaced them.
        """
        return self._encode(timed=timed) == other._encode(timed=timed)

    def first_difference(self, other: RowColumns, *, timed: bool) -> int:
        """The number of the first row that differs; both have the same length, and differ somewhere."""
        first, stop = 0, len(self)
        while stop - first > 1:
            middle = (first + stop) // 2
            if self.part(first, middle).same_as(other.part(first, middle), timed=timed):
                first = middle
            else:
                stop = middle
        return first

    def sizes(self) -> Int64s:
        """The uncompressed size of each row, except for a few bytes of lengths and deltas."""
        return self._outgoing_rows().tail_sizes

    def tails(self) -> Tails:
        """The rows, at least one, as encoded records.

        Raises:
            InexactRowError: a row cannot be a record.
        """
        rows = self._outgoing_rows()
        return Tails(rows.times, rows.tails().to_pybytes(), rows.tail_ends)

    def encoded_record(self, row: int) -> bytes:
        """A row encoded alone in an uncompressed batch."""
        one = self._outgoing_rows().part(row, row + 1)
        return bytes(one.encode(0, int(one.times[0])))

    def _encode(self, *, timed: bool) -> bytes:
        """All rows encoded in a batch that begins at the epoch."""
        if not len(self):
            return b""
        rows = self._outgoing_rows()
        if not timed:
            rows = replace(rows, times=np.zeros(len(self), dtype=np.int64))
        return bytes(rows.encode(0, 0))

    def _outgoing_rows(self) -> OutgoingRows:
        offsets = np.ascontiguousarray(self.offsets)
        column = pa.Array.from_buffers(pa.int64(), len(offsets), [None, pa.py_buffer(offsets)])
        return outgoing_rows(self.keys, self.values, self.headers, self.timestamps, column)


class Slice(NamedTuple):
    """Consecutive rows of one place for the same partition; topic and partition are None if they are not set."""

    place: int
    rows: RowColumns
    topic: str | None = None
    partition: int | None = None


def by_place(rows: pa.RecordBatch, *, routes: bool) -> Iterator[Slice]:
    """Group the rows for the writer by their place and their target partition.

    Args:
        rows: of `layout.WRITTEN_DDL`.
        routes: evaluate topic and partition.

    Raises:
        ValueError: the columns do not match.
    """
    if not rows.num_rows:
        return
    sources = sources_of(rows)
    named = {name: rows.column(rows.schema.get_field_index(name)) for name in ("key", "value", "headers", "timestamp")}
    whole = RowColumns(named["key"], named["value"], named["headers"], named["timestamp"], sources.offsets)
    edges = np.flatnonzero(np.diff(sources.places)) + 1
    first = 0
    for stop in (*edges.tolist(), rows.num_rows):
        place, part = int(sources.places[first]), whole.part(first, stop)
        if routes:
            yield from _route(place, part, rows.slice(first, stop - first))
        else:
            yield Slice(place, part)
        first = stop


def _route(place: int, part: RowColumns, rows: pa.RecordBatch) -> Iterator[Slice]:
    """The rows of one place by target partition, each group in the order of its rows."""
    topics = rows.column(rows.schema.get_field_index("topic"))
    partitions = rows.column(rows.schema.get_field_index("partition"))
    if topics.null_count == partitions.null_count == len(part):
        yield Slice(place, part)
        return
    groups: dict[tuple[str | None, int | None], list[int]] = {}
    for number, where in enumerate(zip(topics.to_pylist(), partitions.to_pylist(), strict=True)):
        groups.setdefault(where, []).append(number)
    for (topic, partition), numbers in groups.items():
        yield Slice(place, part if len(numbers) == len(part) else part.take(numbers), topic, partition)
