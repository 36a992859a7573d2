"""What a fetch returned for one partition, as Arrow: the rows that Spark's own Kafka source would make of it.

Batches are put together until their bodies are worth a set of arrays; no record is an object here (see `arrow_rows`).

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mirror_lib.cluster.batches.arrow_rows import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP_TYPE,
    Bytes,
    InexactRowError,
    Rows,
    chained,
    first_inexact,
    octets_of,
    record_batch,
    taken_apart,
)
from mirror_lib.cluster.batches.codecs import CodecError, decompress
from mirror_lib.cluster.batches.header import (
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
)
from mirror_lib.cluster.batches.oversized import oversized
from mirror_lib.cluster.batches.record_blocks import _HEADERS, Int64s, _headers, _varints
from mirror_lib.cluster.batches.records import MOST_RECORDS, RecordError
from mirror_lib.cluster.batches.stretches import Stretch, read_stretches
from mirror_lib.errors import CorruptBatchError, OversizedBatchError, Where

#: Bytes that the rows of one part take, about.
PART_BYTES = 8 * 1024 * 1024
#: What a row takes beside its key, value, headers and topic.
_ROW_BYTES = 48


class ArrowPart(NamedTuple):
    """Some records of a partition.

    Attributes:
        records: of `KAFKA_SCHEMA`, in the order of their offsets; may be without rows where nothing is to be seen.
        next_offset: the source offset to go on from once these are done.
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
    part_bytes: int = PART_BYTES,
) -> Iterator[ArrowPart]:
    """The records of offsets [start, end), in parts of bounded size; no part means that there is no whole batch.

    Transaction markers and, where `read_committed`, aborted transactions show no rows, as `read_stretches` has it.
    What cannot be read ends the parts; it is an error once it is the first thing at `start`, so that everything before
    it is had first, and that a fault of the way may be gone with the next fetch.

    Header names are text in Spark. Its own source replaces what is not UTF-8 in them, which makes another record of it
    without a word; such a record is an error here, as is a timestamp that microseconds cannot say in 64 bits. To pass
    over the record that the error names, go on behind its offset.

    Args:
        data: batches in a row as they were fetched from `start`; the last one may be incomplete.
        aborted: (producer id, first offset) of the aborted transactions in it.
        part_bytes: what the rows of a part may take, but for a single row that takes more.

    Raises:
        CorruptBatchError: while iterating, the batch at `start` is damaged.
        OversizedBatchError: while iterating, the batch at `start` would take too much memory.
        InexactRowError: while iterating, the record at the offset of its `where` has no exact row.
    """
    reached = start
    try:
        for rows in _fetched(data, aborted, _Range(start, end), read_committed=read_committed, largest=part_bytes):
            for part in _parts(rows, topic, partition, part_bytes):
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
            error.where = Where(topic=topic, partition=partition, offset=start)
            raise
    except InexactRowError:
        if reached == start:
            raise


class _Range(NamedTuple):
    """Offsets [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class _Bodies:
    """Batches with their uncompressed bodies; `nexts` says for each from which offset to go on."""

    headers: NDArray[np.void]
    nexts: Int64s
    content: Bytes
    starts: Int64s
    ends: Int64s

    def single(self, number: int) -> _Bodies:
        one = slice(number, number + 1)
        return _Bodies(self.headers[one], self.nexts[one], self.content, self.starts[one], self.ends[one])


def _fetched(
    data: memoryview, aborted: Sequence[tuple[int, int]], wanted: _Range, *, read_committed: bool, largest: int
) -> Iterator[Rows]:
    position = 0
    # Which batches of a fetch are aborted is told by all of its batches in their order.
    if len(data) and not (read_committed and aborted):
        headers, bounds = _headers(data)
        position = bounds[-1]
        if len(headers):
            at = np.array(bounds, dtype=np.int64)
            yield from _of_batches(data, headers, at[:-1] + HEADER_SIZE, at[1:], wanted, largest)
    if position < len(data):
        # An incomplete batch, an old format, aborted transactions, or damage.
        rest = data[position:]
        stretches, _ = read_stretches(rest, aborted, read_committed=read_committed)
        for old, run in groupby(_with_timestamp_types(rest, stretches), key=lambda each: bool(each[0].old)):
            if old:
                yield from _of_messages(run, wanted, largest)
            else:
                yield from _of_stretches([stretch for stretch, _ in run], wanted, largest)


def _with_timestamp_types(data: memoryview, stretches: Sequence[Stretch]) -> Iterator[tuple[Stretch, int]]:
    """Each stretch with the type of an old format's timestamps, which it does not know itself.

    Messages inside a compressed one have the type of the outer one (Java `AbstractLegacyRecordBatch`).
    """
    position = 0
    for stretch in stretches:
        magic, attributes = data[position + MAGIC_AT], data[position + MAGIC_AT + 1]
        given = LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_BIT else CREATE_TIME
        yield stretch, given if magic else NO_TIMESTAMP_TYPE
        position += LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big")


def _of_messages(run: Iterator[tuple[Stretch, int]], wanted: _Range, largest: int) -> Iterator[Rows]:
    """Rows of old formats, where each uncompressed message is a stretch of its own."""
    offsets: list[int] = []
    times: list[int] = []
    types: list[int] = []
    tails: list[bytes] = []
    size, next_offset = 0, wanted.start

    def gathered() -> Rows:
        ends = np.cumsum([len(tail) for tail in tails], dtype=np.int64)
        starts = ends - np.array([len(tail) for tail in tails], dtype=np.int64)
        return taken_apart(
            min(next_offset, wanted.end),
            np.array(offsets, dtype=np.int64),
            np.array(times, dtype=np.int64),
            np.array(types, dtype=np.int32),
            b"".join(tails),
            starts,
            ends,
        )

    for stretch, kind in run:
        for record in stretch.old:
            if wanted.start <= record.offset < wanted.end:
                offsets.append(record.offset)
                times.append(record.timestamp)
                types.append(kind)
                tails.append(record.tail)
                size += len(record.tail) + _ROW_BYTES
        next_offset = max(next_offset, stretch.next_offset)
        if size >= largest:
            yield gathered()
            size = 0
            for each in (offsets, times, types, tails):
                each.clear()
    yield gathered()


def _of_stretches(run: Sequence[Stretch], wanted: _Range, largest: int) -> Iterator[Rows]:
    headers = np.array([_header_of(stretch) for stretch in run], dtype=_HEADERS)
    sizes = np.array([len(stretch.body) for stretch in run], dtype=np.int64)
    ends = np.cumsum(sizes)
    data = memoryview(b"".join(stretch.body for stretch in run))
    yield from _of_batches(data, headers, ends - sizes, ends, wanted, largest)


def _header_of(stretch: Stretch) -> BatchHeader:
    """Its header; that of a control batch where a reader sees nothing."""
    if stretch.header is not None:
        return stretch.header
    covered = stretch.next_offset - stretch.first - 1
    return BatchHeader(stretch.first, 0, -1, MAGIC, 0, CONTROL_BIT, covered, -1, -1, -1, -1, -1, 0)


def _of_batches(
    data: memoryview, headers: NDArray[np.void], starts: Int64s, ends: Int64s, wanted: _Range, largest: int
) -> Iterator[Rows]:
    """Rows of batches whose checksums were looked at, none of which is aborted."""
    firsts = headers["base"].astype(np.int64)
    nexts = firsts + headers["last_delta"] + 1
    shown = (headers["attributes"] & CONTROL_BIT == 0) & (nexts > wanted.start) & (firsts < wanted.end)
    nexts = np.clip(nexts, wanted.start, wanted.end)
    numbers = np.flatnonzero(shown)
    if not len(numbers):
        yield _no_rows(int(nexts[-1]))
        return
    # What shows nothing is done with the batch before it.
    nexts = nexts[np.append(numbers[1:], len(headers)) - 1]
    for bodies in _laid_out(data, headers[numbers], nexts, starts[numbers], ends[numbers], largest):
        try:
            rows = [_decoded(bodies, wanted)]
        except RecordError:
            rows = []
        yield from rows
        if not rows:
            # One of them cannot be read: those before it can.
            for number in range(len(bodies.headers)):
                yield _decoded(bodies.single(number), wanted)


def _laid_out(
    data: memoryview, headers: NDArray[np.void], nexts: Int64s, starts: Int64s, ends: Int64s, largest: int
) -> Iterator[_Bodies]:
    """Bodies, uncompressed, as many at once as are not too large together; uncompressed ones stay where they are."""
    codecs, counts = (headers["attributes"] & CODEC_BITS).tolist(), headers["count"].tolist()
    found: list[Bytes] = []
    first = size = 0

    def gathered() -> _Bodies:
        stop = first + len(found)
        if any(codecs[first:stop]):
            sizes = np.array([len(body) for body in found], dtype=np.int64)
            after = np.cumsum(sizes)
            content: Bytes = found[0] if len(found) == 1 else b"".join(found)
            return _Bodies(headers[first:stop], nexts[first:stop], content, after - sizes, after)
        origin = int(starts[first])
        content = data[origin : int(ends[stop - 1])]
        own_starts, own_ends = starts[first:stop] - origin, ends[first:stop] - origin
        return _Bodies(headers[first:stop], nexts[first:stop], content, own_starts, own_ends)

    places = zip(codecs, counts, starts.tolist(), ends.tolist(), strict=True)
    for number, (codec, count, start, end) in enumerate(places):
        try:
            body = _body(data[start:end], codec, count)
        except (RecordError, CodecError, OversizedBatchError):
            if found:
                yield gathered()
            raise
        if found and size + len(body) > largest:
            yield gathered()
            found, first, size = [], number, 0
        found.append(body)
        size += len(body)
    yield gathered()


def _body(body: Bytes, codec: int, count: int) -> Bytes:
    if codec:
        body = decompress(codec, body)
    if not 0 <= count <= len(body):
        raise RecordError(f"it claims to have {count} records in {len(body)} bytes")
    if count > MOST_RECORDS:
        raise oversized(f"has {count} records, more than the {MOST_RECORDS} that are looked at")
    return body


def _decoded(bodies: _Bodies, wanted: _Range) -> Rows:
    """The rows of all bodies.

    Raises:
        RecordError: one of them is not what its header says.
    """
    headers, content = bodies.headers, bodies.content
    counts = headers["count"].astype(np.int64)
    octets = octets_of(content)
    try:
        starts, lengths = chained(content, octets, bodies.starts, bodies.ends, counts)
        ends = starts + lengths
        # The attributes of a record, a byte, have no meaning yet.
        times, at = _varints(octets, starts + 1)
        offsets, at = _varints(octets, at)
    except IndexError as error:
        raise RecordError("a record does not fit its batch") from error
    if (at >= ends).any():
        raise RecordError("a record does not fit its batch")
    offsets += np.repeat(headers["base"].astype(np.int64), counts)
    if (offsets[1:] <= offsets[:-1]).any():
        raise RecordError("offsets do not ascend")
    appended = np.repeat(headers["attributes"] & LOG_APPEND_TIME_BIT != 0, counts)
    times = np.where(
        appended,
        np.repeat(headers["max_timestamp"].astype(np.int64), counts),
        times + np.repeat(headers["first_timestamp"].astype(np.int64), counts),
    )
    types = np.where(appended, LOG_APPEND_TIME, CREATE_TIME).astype(np.int32)
    first, stop = np.searchsorted(offsets, wanted).tolist()
    part = slice(first, stop)
    return taken_apart(int(bodies.nexts[-1]), offsets[part], times[part], types[part], content, at[part], ends[part])


def _no_rows(next_offset: int) -> Rows:
    none = np.empty(0, dtype=np.int64)
    return taken_apart(next_offset, none, none, none.astype(np.int32), b"", none, none)


def _parts(rows: Rows, topic: str, partition: int, part_bytes: int) -> Iterator[ArrowPart]:
    """The rows, cut to size, up to the first that is not exact.

    Raises:
        InexactRowError: after the rows before it.
    """
    whole = len(rows.offsets)
    if not whole:
        yield ArrowPart(record_batch(rows, topic, partition), rows.next_offset)
    taken = np.cumsum(rows.sizes + _ROW_BYTES + len(topic))
    first = 0
    while first < whole:
        limit = part_bytes + (int(taken[first - 1]) if first else 0)
        stop = max(int(np.searchsorted(taken, limit, side="right")), first + 1)
        part = rows.part(first, stop)
        table = record_batch(part, topic, partition)
        inexact = first_inexact(part, table)
        if inexact is not None:
            row, why = inexact
            offset = int(part.offsets[row])
            if row:
                # Made anew: a slice would keep the bytes that are no text.
                yield ArrowPart(record_batch(part.part(0, row), topic, partition), offset)
            raise InexactRowError(
                f"the record cannot be a row of Spark: {why}.",
                where=Where(topic=topic, partition=partition, offset=offset),
                action="Copy the topic without transforms, or leave the record out.",
            )
        yield ArrowPart(table, part.next_offset)
        first = stop
