"""Records as rows of Spark's own Kafka source, by columns: from their positions in bytes to an Arrow record batch.

Fields are consecutive in a record, each after its length, and so are records in a body. Their positions are found for
many of them at once, or in one short loop if a chain is long; all else is numpy columns, and Arrow gathers the bytes
into its own arrays, which do not reference the fetched bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mirror_lib.errors import ClusterError
from mirror_lib.features.transforms.arrow.record_blocks import Int64s, read_varints
from mirror_lib.records.oversized import record_beyond_memory
from mirror_lib.records.records import RecordError
from mirror_lib.records.varint import decode_varint

#: Names as Spark gives them to the children of an array column.
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])))
#: The columns of Spark's Kafka source with `includeHeaders` (Scala `KafkaRecordToRowConverter`), as Arrow types.
KAFKA_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("timestampType", pa.int32()),
        pa.field("headers", HEADERS_TYPE),
    ]
)
#: Values of the column timestampType (Java `TimestampType`); records of magic 0 have no timestamp.
NO_TIMESTAMP_TYPE, CREATE_TIME, LOG_APPEND_TIME = -1, 0, 1
_MICROSECONDS = 1000
#: The largest number of milliseconds that fits into 64 bits as microseconds.
_LATEST = (2**63 - 1) // _MICROSECONDS
#: If fewer chains of fields than these continue, each is read in its own loop.
_FEWEST_CHAINS = 128
#: Memory of a header in addition to its own bytes, including the temporary arrays and Arrow's.
HEADER_BYTES = 128
_HEADERS_AT_ONCE = 1 << 16
_ONE_BYTE = 0x80
_BITS = 0x7F
_LONGEST_VARINT = 10

Bytes = bytes | memoryview
Int32s = NDArray[np.int32]
Octets = NDArray[np.uint8]


class InexactRowError(ClusterError):
    """A record without an exact row, or a row without an exact record."""

    reason = "inexact-row"
    exit_code = 3


class Fields(NamedTuple):
    """Positions of the bytes of one column; a negative length is null."""

    starts: Int64s
    lengths: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Decoded records, by columns.

    Attributes:
        next_offset: the offset to continue from.
        times: epoch milliseconds as a reader sees them.
        sizes: bytes of key, value and headers.
        content: bytes that contain all fields.
        header_counts: of each record; names and values of headers are in the order of records.
    """

    next_offset: int
    offsets: Int64s
    times: Int64s
    types: Int32s
    sizes: Int64s
    content: Bytes
    keys: Fields
    values: Fields
    header_counts: Int64s
    names: Fields
    header_values: Fields

    def part(self, first: int, stop: int) -> Rows:
        """Rows number `first` to `stop` - 1."""
        rows = slice(first, stop)
        before = int(self.header_counts[:first].sum())
        entries = slice(before, before + int(self.header_counts[rows].sum()))
        return Rows(
            int(self.offsets[stop]) if stop < len(self.offsets) else self.next_offset,
            self.offsets[rows],
            self.times[rows],
            self.types[rows],
            self.sizes[rows],
            self.content,
            Fields(self.keys.starts[rows], self.keys.lengths[rows]),
            Fields(self.values.starts[rows], self.values.lengths[rows]),
            self.header_counts[rows],
            Fields(self.names.starts[entries], self.names.lengths[entries]),
            Fields(self.header_values.starts[entries], self.header_values.lengths[entries]),
        )


class Columns(NamedTuple):
    """Records, with the positions of their tails (`records.Record.tail`) in the content; otherwise as `Rows`."""

    next_offset: int
    offsets: Int64s
    times: Int64s
    types: Int32s
    content: Bytes
    starts: Int64s
    ends: Int64s


def taken_apart_in_parts(columns: Columns, *, largest: int = sys.maxsize) -> Iterator[Rows]:
    """Records as rows, in parts whose headers fit into memory; at least one part.

    A negative length is null for all keys and values, as in Java's `DefaultRecord`.

    Args:
        largest: maximum bytes of a record, including the overhead of its headers.

    Raises:
        RecordError: while iterating, a tail does not match its lengths.
        BeyondMemoryError: while iterating, a record exceeds the limit; the error has its offset.
    """
    next_offset, offsets, times, types, content, starts, ends = columns
    octets = octets_of(content)
    try:
        key_lengths, key_starts = read_varints(octets, starts)
        value_lengths, value_starts = read_varints(octets, _after(key_starts, key_lengths, ends))
        counts, at = read_varints(octets, _after(value_starts, value_lengths, ends))
        # The smallest header takes two bytes.
        if (counts < 0).any() or (counts > ends - at).any():
            raise RecordError("a record claims to have more headers than bytes")
        if (at != ends)[counts == 0].any():
            raise RecordError("bytes remain in a record")
    except IndexError as error:
        raise RecordError("a field does not fit its record") from error
    weights = ends - starts + counts * HEADER_BYTES
    whole = len(offsets)
    beyond = int(np.argmax(weights > largest)) if (weights > largest).any() else whole
    for first, stop in _parts_by(np.cumsum(counts[:beyond])) if beyond or not whole else ():
        rows = slice(first, stop)
        names, header_values = _header_fields(content, octets, at[rows], ends[rows], counts[rows])
        yield Rows(
            int(offsets[stop]) if stop < whole else next_offset,
            offsets[rows],
            times[rows],
            types[rows],
            (ends - starts)[rows],
            content,
            Fields(key_starts[rows], key_lengths[rows]),
            Fields(value_starts[rows], value_lengths[rows]),
            counts[rows],
            names,
            header_values,
        )
    if beyond < whole:
        raise record_beyond_memory(int(weights[beyond]), largest, int(offsets[beyond]))


def _parts_by(headers: Int64s) -> Iterator[tuple[int, int]]:
    """(first, stop) of rows with few headers in total, or of a single row; from their cumulative numbers."""
    first, whole = 0, len(headers)
    if not whole:
        yield 0, 0
    while first < whole:
        before = int(headers[first - 1]) if first else 0
        stop = max(int(np.searchsorted(headers, before + _HEADERS_AT_ONCE, side="right")), first + 1)
        yield first, stop
        first = stop


def _header_fields(content: Bytes, octets: Octets, at: Int64s, ends: Int64s, counts: Int64s) -> tuple[Fields, Fields]:
    some = counts > 0
    try:
        parts = walk_chains(content, octets, at[some], ends[some], 2 * counts[some])
    except IndexError as error:
        raise RecordError("a field does not fit its record") from error
    names, header_values = (Fields(parts.starts[which::2], parts.lengths[which::2]) for which in (0, 1))
    if (names.lengths < 0).any():
        raise RecordError("a header has no name")
    return names, header_values


def octets_of(content: Bytes) -> Octets:
    """The content as an array, without a copy."""
    return np.frombuffer(content, dtype=np.uint8) if len(content) else np.empty(0, dtype=np.uint8)


def _after(starts: Int64s, lengths: Int64s, limits: Int64s) -> Int64s:
    """The ends of fields."""
    taken = np.maximum(lengths, 0)
    # A sum might overflow 64 bits.
    if (taken > limits - starts).any():
        raise RecordError("a field does not fit its record")
    return starts + taken


def walk_chains(content: Bytes, octets: Octets, starts: Int64s, limits: Int64s, counts: Int64s) -> Fields:
    """The fields of chains, in which each field starts, with its length, at the end of the one before it.

    Args:
        starts: start of each chain.
        limits: required end of each chain.
        counts: number of fields of each.

    Raises:
        RecordError: a chain ends elsewhere.
        IndexError: a chain has no end.
    """
    places = np.empty(int(counts.sum()), dtype=np.int64)
    # Longest first, so that the chains that still continue are always the first ones.
    order = np.argsort(-counts, kind="stable")
    position, limit, first, left = starts[order], limits[order], (np.cumsum(counts) - counts)[order], counts[order]
    number, negated = 0, -left
    while (active := int(np.searchsorted(negated, -number))) >= _FEWEST_CHAINS:
        places[first[:active] + number] = position[:active]
        lengths, at = read_varints(octets, position[:active])
        position[:active] = _after(at, lengths, limit[:active])
        number += 1
    for chain in range(active):
        found, after = _walk_chain(content, int(position[chain]), int(left[chain]) - number)
        if after != limit[chain]:
            raise RecordError("fields have another size than the record")
        places[first[chain] + number : first[chain] + left[chain]] = found
        position[chain] = after
    if (position != limit).any():
        raise RecordError("fields have another size than the record")
    lengths, at = read_varints(octets, places)
    return Fields(at, lengths)


def _walk_chain(content: Bytes, position: int, count: int) -> tuple[list[int], int]:
    """The start of each field of one chain with its length, and the end of the last one."""
    # The main cost of large batches. Odd numbers are negative (zigzag): no bytes follow a null.
    found: list[int] = []
    add = found.append
    for _ in range(count):
        add(position)
        length = content[position]
        if length < _ONE_BYTE:
            position += 1
            if not length & 1:
                position += length >> 1
        elif (second := content[position + 1]) < _ONE_BYTE:
            position += 2
            if not length & 1:
                position += (second << 6) | ((length & _BITS) >> 1)
        else:
            try:
                length, used = decode_varint(bytes(content[position : position + _LONGEST_VARINT]), 0)
            except ValueError as error:
                raise RecordError(f"{error}") from error
            position += used + max(length, 0)
    return found, position


def first_inexact(rows: Rows, table: pa.RecordBatch) -> tuple[int, str] | None:
    """The number of the first row that differs from its record, and why.

    Args:
        table: the result of `record_batch` for the rows.
    """
    found: list[tuple[int, str]] = []
    beyond = np.flatnonzero((rows.times > _LATEST) | (rows.times < -_LATEST))
    if len(beyond):
        found.append((int(beyond[0]), f"its timestamp is {rows.times[beyond[0]]} (epoch milliseconds)"))
    names = table.column("headers").values.field(0)
    try:
        names.validate(full=True)
    except pa.ArrowInvalid:
        for number, name in enumerate(names.cast(pa.binary()).to_pylist()):
            try:
                name.decode()
            except UnicodeDecodeError:
                row = int(np.searchsorted(np.cumsum(rows.header_counts), number, side="right"))
                found.append((row, "the name of a header is not UTF-8"))
                break
    return min(found, default=None)


def record_batch(rows: Rows, topic: str, partition: int) -> pa.RecordBatch:
    """The rows as Arrow, of `KAFKA_SCHEMA`."""
    # `pyarrow.array` would load pandas.
    count, name = len(rows.offsets), topic.encode()
    edges = np.arange(count + 1, dtype=np.int32) * np.int32(len(name))
    headers = rows.header_counts
    entries = pa.Array.from_buffers(
        HEADERS_TYPE.value_type,
        len(rows.names.starts),
        [None],
        children=[
            _gather(rows.content, rows.names, pa.string()),
            _gather(rows.content, rows.header_values, pa.binary()),
        ],
    )
    header_edges = np.append(np.int32(0), np.cumsum(headers, dtype=np.int32))
    columns = [
        _gather(rows.content, rows.keys, pa.binary()),
        _gather(rows.content, rows.values, pa.binary()),
        pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(edges), pa.py_buffer(name * count)]),
        _numbers(np.full(count, partition, dtype=np.int32), pa.int32()),
        _numbers(rows.offsets, pa.int64()),
        _numbers(rows.times * _MICROSECONDS, KAFKA_SCHEMA.field("timestamp").type),
        _numbers(rows.types, pa.int32()),
        pa.Array.from_buffers(
            HEADERS_TYPE, count, [_validity(headers > 0), pa.py_buffer(header_edges)], children=[entries]
        ),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=KAFKA_SCHEMA)


def _numbers(values: Int64s | Int32s, kind: pa.DataType) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _validity(valid: NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def _gather(content: Bytes, fields: Fields, kind: pa.DataType) -> pa.Array:
    """The consecutive fields.

    For Arrow, the content is an array in which every second element is a field, and the others are the bytes in
    between: taking those elements is a loop in C++, while an index per byte would take eight times their memory.
    """
    count = len(fields.starts)
    edges = np.zeros(max(2 * count, 1), dtype=np.int32)
    edges[: 2 * count : 2] = fields.starts
    edges[1 : 2 * count : 2] = fields.starts + np.maximum(fields.lengths, 0)
    elements = pa.Array.from_buffers(kind, max(2 * count - 1, 0), [None, pa.py_buffer(edges), pa.py_buffer(content)])
    present = fields.lengths >= 0
    wanted = pa.Array.from_buffers(
        pa.int64(), count, [None if present.all() else _validity(present), pa.py_buffer(np.arange(0, 2 * count, 2))]
    )
    return elements.take(wanted)
