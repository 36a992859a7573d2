"""Arrow rows as encoded records, by columns: the inverse of `arrow.rows`.

Consecutive records are one Arrow array, joined from columns: the bytes before the key, the key, the length of the
value, the value, the headers. Lengths, deltas and their variable-length encodings are numpy columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mirror_lib.errors import Where
from mirror_lib.features.transforms.arrow.record_blocks import Int64s
from mirror_lib.features.transforms.arrow.rows import HEADERS_TYPE, InexactRowError

_MILLISECONDS_PER_SECOND = 1000
#: Units of Arrow's timestamps per millisecond.
_PER_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_BITS = 0x7F
_SHIFT = np.uint64(7)
_CONTINUES = np.uint8(0x80)
#: Null keys and values add no bytes to the joined array; their length marks them as null.
_NULLS_ADD_NOTHING = pc.JoinOptions(null_handling="replace", null_replacement="")
#: The separator of joined columns. Not created by `pyarrow.scalar`, which might load pandas.
_NOTHING = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(np.zeros(2, dtype=np.int32)), pa.py_buffer(b"")])[
    0
]


@dataclass(frozen=True, slots=True, eq=False)
class OutgoingRows:
    """Rows for one partition, by columns.

    Attributes:
        value_lengths: as varints; negative if the value is null.
        header_counts: as varints.
        headers: the encoded headers of each row, without their number; None if no row has headers.
        key_lengths: negative if the key is null.
        times: epoch milliseconds.
        tail_ends: total bytes of the tails (`records.Record.tail`) up to each row, counted from some row on.
        tail_sizes: bytes of each tail.
    """

    keys: pa.Array
    value_lengths: pa.Array
    values: pa.Array
    header_counts: pa.Array
    headers: pa.Array | None
    key_lengths: Int64s
    times: Int64s
    source_offsets: Int64s
    tail_ends: Int64s
    tail_sizes: Int64s

    def __len__(self) -> int:
        return len(self.times)

    def part(self, first: int, stop: int) -> OutgoingRows:
        """Rows number `first` to `stop` - 1."""
        rows, count = slice(first, stop), stop - first
        return OutgoingRows(
            self.keys.slice(first, count),
            self.value_lengths.slice(first, count),
            self.values.slice(first, count),
            self.header_counts.slice(first, count),
            None if self.headers is None else self.headers.slice(first, count),
            self.key_lengths[rows],
            self.times[rows],
            self.source_offsets[rows],
            self.tail_ends[rows],
            self.tail_sizes[rows],
        )

    def at_most(self, room: int) -> int:
        """An upper bound of the number of rows that fit into `room` bytes."""
        before = int(self.tail_ends[0] - self.tail_sizes[0])
        return int(np.searchsorted(self.tail_ends, before + room, side="right"))

    def sizes(self, first_delta: int, first_timestamp: int) -> Int64s:
        """The size of each record in a batch.

        Args:
            first_delta: the number of the first one in the batch.
            first_timestamp: of the batch.
        """
        inner = self._lengths(self.times - first_timestamp, self._deltas(first_delta))
        return _varint_sizes(inner) + inner

    def encode(self, first_delta: int, first_timestamp: int) -> pa.Buffer:
        """The encoded records of a batch; arguments as in `sizes`."""
        times, deltas = self.times - first_timestamp, self._deltas(first_delta)
        # The attributes are one byte without meaning yet; the varint 0 is the same byte.
        attributes = np.zeros(len(self), dtype=np.int64)
        return self._behind([self._lengths(times, deltas), attributes, times, deltas])

    def tails(self) -> pa.Buffer:
        """The consecutive tails of the rows (`records.Record.tail`)."""
        return self._behind([])

    def _behind(self, numbers: list[Int64s]) -> pa.Buffer:
        """The consecutive rows, each with its numbers before its tail."""
        columns = [
            _varints([*numbers, self.key_lengths]),
            self.keys,
            self.value_lengths,
            self.values,
            self.header_counts,
        ]
        if self.headers is not None:
            columns.append(self.headers)
        joined = _join(columns)
        return joined.buffers()[2].slice(0, int(_edges(joined)[-1]))

    def _deltas(self, first_delta: int) -> Int64s:
        return np.arange(first_delta, first_delta + len(self), dtype=np.int64)

    def _lengths(self, times: Int64s, deltas: Int64s) -> Int64s:
        """The length fields of the records."""
        return 1 + _varint_sizes(times) + _varint_sizes(deltas) + self.tail_sizes


def outgoing_rows(
    keys: pa.Array, values: pa.Array, headers: pa.Array, timestamps: pa.Array, source_offsets: pa.Array
) -> OutgoingRows:
    """Convert rows, at least one, from the columns that `ArrowBatchBuilder.feed` describes.

    Raises:
        InexactRowError: a row has no timestamp, or a header without a name.
        ValueError: source offsets are missing.
    """
    if source_offsets.null_count:
        raise ValueError("source offsets are missing")
    offsets = _int64s(source_offsets)
    if timestamps.null_count:
        row = int(np.argmin(_valid(timestamps)))
        raise _inexact("it has no timestamp", int(offsets[row]))
    keys, values = _binary(keys), _binary(values)
    key_lengths, value_lengths = _field_lengths(keys), _field_lengths(values)
    header_counts, encoded_headers = _encoded_headers(headers, offsets)
    tail_sizes = _varint_sizes(header_counts)
    for lengths in (key_lengths, value_lengths):
        tail_sizes += _varint_sizes(lengths) + np.maximum(lengths, 0)
    if encoded_headers is not None:
        tail_sizes += np.diff(_edges(encoded_headers))
    return OutgoingRows(
        keys,
        _varints([value_lengths]),
        values,
        _varints([header_counts]),
        encoded_headers,
        key_lengths,
        _milliseconds(timestamps),
        offsets,
        np.cumsum(tail_sizes),
        tail_sizes,
    )


def _encoded_headers(column: pa.Array, source_offsets: Int64s) -> tuple[Int64s, pa.Array | None]:
    """The number of headers of each row, and all headers of a row as encoded in its record."""
    if not pa.types.is_list(column.type):
        column = column.cast(HEADERS_TYPE)
    counts = np.diff(_edges(column))
    if column.null_count:
        counts[~_valid(column)] = 0
    if not counts.any():
        return counts, None
    entries = column.flatten()
    names, values = (_binary(entries.field(number)) for number in (0, 1))
    for missing in (entries, names):
        if missing.null_count:
            row = np.searchsorted(np.cumsum(counts), np.argmin(_valid(missing)), side="right")
            raise _inexact("a header has no name", int(source_offsets[row]))
    joined = _join([_varints([_field_lengths(names)]), names, _varints([_field_lengths(values)]), values])
    row_edges = _edges(joined)[np.append(0, np.cumsum(counts))].astype(np.int32)
    content = joined.buffers()[2]
    return counts, pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(row_edges), content])


def _inexact(why: str, source_offset: int) -> InexactRowError:
    return InexactRowError(
        f"a row of this source offset cannot be converted to a record: {why}.",
        where=Where(offset=source_offset),
        action="Correct the transform that produces it.",
    )


def _binary(column: pa.Array) -> pa.Array:
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    """True for elements that are not null, in a column with nulls."""
    octets = np.frombuffer(column.buffers()[0], dtype=np.uint8)
    bits = np.unpackbits(octets, count=column.offset + len(column), bitorder="little")
    return bits[column.offset :].astype(np.bool_)


def _int64s(column: pa.Array) -> Int64s:
    if column.type != pa.int64() and not pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return np.frombuffer(column.buffers()[1], dtype=np.int64, count=len(column), offset=8 * column.offset)


def _milliseconds(column: pa.Array) -> Int64s:
    numbers = _int64s(column)
    if not pa.types.is_timestamp(column.type):
        return numbers
    if column.type.unit == "s":
        return numbers * _MILLISECONDS_PER_SECOND
    return numbers // _PER_MILLISECOND[column.type.unit]


def _edges(column: pa.Array) -> Int64s:
    """The start of each element of a binary or list array, and the end of the last one."""
    numbers = np.frombuffer(column.buffers()[1], dtype=np.int32, count=len(column) + 1, offset=4 * column.offset)
    return numbers.astype(np.int64)


def _field_lengths(column: pa.Array) -> Int64s:
    """Lengths as in records: -1 is null."""
    lengths = np.diff(_edges(column))
    if column.null_count:
        lengths[~_valid(column)] = -1
    return lengths


def _join(columns: Sequence[pa.Array]) -> pa.Array:
    """The consecutive elements of all columns, for each row."""
    return pc.binary_join_element_wise(*columns, _NOTHING, options=_NULLS_ADD_NOTHING)


def _zigzag(values: Int64s) -> NDArray[np.uint64]:
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _width(numbers: NDArray[np.uint64]) -> int:
    """The number of bytes of the largest as a varint."""
    return max(1, -(-int(np.maximum.reduce(numbers, initial=0)).bit_length() // 7))


def _varint_sizes(values: Int64s) -> Int64s:
    """The number of bytes of each number as a zigzag varint."""
    numbers = _zigzag(values)
    sizes = np.ones(len(values), dtype=np.int64)
    for size in range(1, _width(numbers)):
        sizes += numbers >= np.uint64(1 << 7 * size)
    return sizes


def _varints(columns: Sequence[Int64s]) -> pa.Array:
    """The consecutive zigzag varints of each row's numbers."""
    numbers = [_zigzag(column) for column in columns]
    widths = [_width(column) for column in numbers]
    octets = np.empty((len(columns[0]), sum(widths)), dtype=np.uint8)
    written = np.ones(octets.shape, dtype=np.bool_)
    at = 0
    for column, width in zip(numbers, widths, strict=True):
        left = column
        for place in range(at, at + width - 1):
            more = left > _BITS
            written[:, place + 1] = more
            octets[:, place] = left & _BITS
            octets[:, place] |= more * _CONTINUES
            left = left >> _SHIFT
        octets[:, at + width - 1] = left
        at += width
    edges = np.zeros(len(octets) + 1, dtype=np.int32)
    np.cumsum(np.count_nonzero(written, axis=1), out=edges[1:])
    return pa.Array.from_buffers(pa.binary(), len(octets), [None, pa.py_buffer(edges), pa.py_buffer(octets[written])])
