"""A fetched partition as Arrow: the same rows as Spark's own Kafka source.

Batches are joined until their bodies are worth a set of arrays; there is no Python object per record (see
`arrow.rows`).

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from mirror_lib.errors import CorruptBatchError, OversizedBatchError, Where
from mirror_lib.features.transforms.arrow.bodies import OffsetsWanted, of_batches
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.record_blocks import HEADER_TYPE, read_headers
from mirror_lib.features.transforms.arrow.rows import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    Columns,
    InexactRowError,
    Rows,
    first_inexact,
    record_batch,
    taken_apart_in_parts,
)
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.header import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
)
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Span, read_spans

DEFAULT_LIMITS = DecodeLimits()
#: Memory of a row in addition to its key, value, headers and topic.
_ROW_BYTES = 48
#: Memory of a header in addition to its name and value.
_HEADER_BYTES = 16
#: Maximum number of rows in one part: consumers of single rows create some objects per row.
_MOST_ROWS = 1 << 14


class ArrowPart(NamedTuple):
    """Some records of a partition.

    Attributes:
        records: of `KAFKA_SCHEMA`, in the order of their offsets; may be empty if no record is visible.
        next_offset: the source offset to continue from after these.
    """

    records: pa.RecordBatch
    next_offset: int


def read_arrow(
    data: memoryview,
    aborted: Sequence[tuple[int, int]],
    *,
    topic: str,
    partition: int,
    start: int,
    end: int,
    read_committed: bool,
    limits: DecodeLimits = DEFAULT_LIMITS,
) -> Iterator[ArrowPart]:
    """Yield the records of offsets [start, end), in parts of bounded size; no part means that there is no whole batch.

    Transaction markers and, with `read_committed`, aborted transactions have no rows, as in `read_spans`. Data that
    cannot be read ends the parts; it raises an error only as the first data at `start`: the data before it is delivered
    first, and a transmission error may be gone with the next fetch.

    Header names are text in Spark. Its own source replaces invalid UTF-8 in them, which silently changes the record;
    here such a record raises an error, as does a timestamp that does not fit into 64 bits as microseconds. To skip the
    record that the error names, continue after its offset.

    Args:
        data: consecutive batches as fetched from `start`; the last one may be incomplete.
        aborted: (producer id, first offset) of the aborted transactions in it.
        limits: of rows, and of temporary memory.

    Raises:
        CorruptBatchError: while iterating, the batch at `start` is damaged.
        OversizedBatchError: while iterating, the batch at `start` would exceed the memory limit, or the record at the
            offset of its `where` (`BeyondMemoryError`).
        InexactRowError: while iterating, the record at the offset of its `where` has no exact row.
    """
    reached = start
    try:
        for rows in _decode_response(
            data, aborted, OffsetsWanted(start, end), read_committed=read_committed, limits=limits
        ):
            for part in _parts(rows, topic, partition, limits.part):
                if part.records.num_rows or part.next_offset > reached:
                    reached = part.next_offset
                    yield part
            if reached >= end:
                return
    except (RecordError, CodecError) as error:
        if reached == start:
            raise CorruptBatchError(
                f"a batch cannot be read: {error}.",
                where=Where(topic=topic, partition=partition, offset=start),
                action="Compare the source's replicas of this partition (kafka-dump-log).",
            ) from error
    except OversizedBatchError as error:
        if reached == start:
            at = start if error.where.offset is None else error.where.offset
            error.where = Where(topic=topic, partition=partition, offset=at)
            raise
    except InexactRowError:
        if reached == start:
            raise


def _decode_response(
    data: memoryview,
    aborted: Sequence[tuple[int, int]],
    wanted: OffsetsWanted,
    *,
    read_committed: bool,
    limits: DecodeLimits,
) -> Iterator[Rows]:
    position = 0
    # Only all batches of a fetch in their order show which of them are aborted.
    if len(data) and not (read_committed and aborted):
        headers, bounds = read_headers(data)
        position = bounds[-1]
        if len(headers):
            at = np.array(bounds, dtype=np.int64)
            yield from of_batches(data, headers, at[:-1] + HEADER_SIZE, at[1:], wanted, limits)
    if position < len(data):
        # An incomplete batch, an old format, aborted transactions, or damage.
        rest = data[position:]
        spans, _ = read_spans(rest, aborted, read_committed=read_committed, old_bytes=limits.body)
        for old, run in groupby(_with_timestamp_types(rest, spans), key=lambda each: bool(each[0].old)):
            if old:
                yield from _of_messages(run, wanted, limits)
            else:
                yield from _of_spans([span for span, _ in run], wanted, limits)


def _with_timestamp_types(data: memoryview, spans: Sequence[Span]) -> Iterator[tuple[Span, int]]:
    """Each span with its timestamp type in old formats, which the span itself lacks.

    Messages inside a compressed one have the type of the outer one (Java `AbstractLegacyRecordBatch`).
    """
    position = 0
    for span in spans:
        magic, attributes = data[position + MAGIC_AT], data[position + MAGIC_AT + 1]
        given = LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_BIT else CREATE_TIME
        yield span, given if magic else NO_TIMESTAMP_TYPE
        position += LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big")


def _of_messages(run: Iterator[tuple[Span, int]], wanted: OffsetsWanted, limits: DecodeLimits) -> Iterator[Rows]:
    """Rows of old formats, where each uncompressed message is a separate span."""
    offsets: list[int] = []
    times: list[int] = []
    types: list[int] = []
    tails: list[bytes] = []
    size, next_offset = 0, wanted.start

    def gather() -> Iterator[Rows]:
        ends = np.cumsum([len(tail) for tail in tails], dtype=np.int64)
        starts = ends - np.array([len(tail) for tail in tails], dtype=np.int64)
        columns = Columns(
            min(next_offset, wanted.end),
            np.array(offsets, dtype=np.int64),
            np.array(times, dtype=np.int64),
            np.array(types, dtype=np.int32),
            b"".join(tails),
            starts,
            ends,
        )
        return taken_apart_in_parts(columns, largest=limits.record)

    for span, kind in run:
        for record in span.old:
            if wanted.start <= record.offset < wanted.end:
                offsets.append(record.offset)
                times.append(record.timestamp)
                types.append(kind)
                tails.append(bytes(record.tail))
                size += len(record.tail) + _ROW_BYTES
        next_offset = max(next_offset, span.next_offset)
        if size >= limits.part:
            yield from gather()
            size = 0
            for each in (offsets, times, types, tails):
                each.clear()
    yield from gather()


def _of_spans(run: Sequence[Span], wanted: OffsetsWanted, limits: DecodeLimits) -> Iterator[Rows]:
    headers = np.array([_header_of(span) for span in run], dtype=HEADER_TYPE)
    sizes = np.array([len(span.body) for span in run], dtype=np.int64)
    ends = np.cumsum(sizes)
    data = memoryview(b"".join(span.body for span in run))
    yield from of_batches(data, headers, ends - sizes, ends, wanted, limits)


def _header_of(span: Span) -> BatchHeader:
    """The span's header; the header of a control batch if no record is visible."""
    if span.header is not None:
        return span.header
    covered = span.next_offset - span.first - 1
    return BatchHeader(span.first, 0, -1, MAGIC, 0, CONTROL_BIT, covered, -1, -1, -1, -1, -1, 0)


def _parts(rows: Rows, topic: str, partition: int, part_bytes: int) -> Iterator[ArrowPart]:
    """The rows in parts of bounded size, up to the first row that is not exact.

    Raises:
        InexactRowError: after the rows before it.
    """
    whole = len(rows.offsets)
    if not whole:
        yield ArrowPart(record_batch(rows, topic, partition), rows.next_offset)
    taken = np.cumsum(rows.sizes + _ROW_BYTES + len(topic) + rows.header_counts * _HEADER_BYTES)
    first = 0
    while first < whole:
        limit = part_bytes + (int(taken[first - 1]) if first else 0)
        stop = min(max(int(np.searchsorted(taken, limit, side="right")), first + 1), first + _MOST_ROWS)
        part = rows.part(first, stop)
        table = record_batch(part, topic, partition)
        inexact = first_inexact(part, table)
        if inexact is not None:
            row, why = inexact
            offset = int(part.offsets[row])
            if row:
                # Built again: a slice would keep the invalid text.
                yield ArrowPart(record_batch(part.part(0, row), topic, partition), offset)
            raise InexactRowError(
                f"the record cannot be converted to a row of Spark: {why}.",
                where=Where(topic=topic, partition=partition, offset=offset),
                action="Copy the topic without transforms, or skip the record.",
            )
        yield ArrowPart(table, part.next_offset)
        first = stop
