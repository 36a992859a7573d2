"""Batches of a fetch as columnar rows, limited to what fits into memory at once.

Small batches are joined until their bodies are worth a set of arrays. Bodies that are large when decompressed are read
in pieces: a fetch of some kilobytes may expand to gigabytes, and a megabyte may hold a hundred thousand headers.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mirror_lib.errors import OversizedBatchError
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.pieces import Giant, record_pieces
from mirror_lib.features.transforms.arrow.record_blocks import Int64s, read_varints
from mirror_lib.features.transforms.arrow.rows import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Bytes,
    Columns,
    Rows,
    octets_of,
    taken_apart_in_parts,
    walk_chains,
)
from mirror_lib.features.transforms.arrow.streaming import pieces
from mirror_lib.outside_limits import BATCH_RECORDS
from mirror_lib.records.compression.codecs import CodecError, decompress_up_to
from mirror_lib.records.header import CODEC_BITS, CONTROL_BIT, LOG_APPEND_TIME_BIT, Codec
from mirror_lib.records.oversized import oversized_error, record_beyond_memory
from mirror_lib.records.records import RecordError

#: Maximum number of records converted at once: each needs about 200 bytes of temporary columns, however small it is.
_MOST_AT_ONCE = 1 << 16
_SMALLEST_PIECE = 512


class OffsetsWanted(NamedTuple):
    """Offsets [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class _Bodies:
    """Batches with their uncompressed bodies; `nexts` has the offset after each."""

    headers: NDArray[np.void]
    nexts: Int64s
    content: Bytes
    starts: Int64s
    ends: Int64s

    def single(self, number: int) -> _Bodies:
        one = slice(number, number + 1)
        return _Bodies(self.headers[one], self.nexts[one], self.content, self.starts[one], self.ends[one])


@dataclass(frozen=True, slots=True, eq=False)
class _Large:
    """A batch that is read in pieces; `headers` and `nexts` have one element."""

    headers: NDArray[np.void]
    nexts: Int64s
    body: Bytes
    codec: int
    count: int


def of_batches(
    data: memoryview,
    headers: NDArray[np.void],
    starts: Int64s,
    ends: Int64s,
    wanted: OffsetsWanted,
    limits: DecodeLimits,
) -> Iterator[Rows]:
    """Rows of batches with checked checksums, none of which is aborted.

    Args:
        starts: start of each body in `data`.
        ends: end of each body.

    Raises:
        RecordError, CodecError: a batch cannot be read; the rows of the batches before it have been yielded.
        OversizedBatchError: likewise, or a record exceeds the limits; then its offset is in the error.
    """
    firsts = headers["base"].astype(np.int64)
    nexts = firsts + headers["last_delta"] + 1
    shown = (headers["attributes"] & CONTROL_BIT == 0) & (nexts > wanted.start) & (firsts < wanted.end)
    nexts = np.clip(nexts, wanted.start, wanted.end)
    numbers = np.flatnonzero(shown)
    if not len(numbers):
        yield no_rows(int(nexts[-1]))
        return
    # A batch without visible rows is skipped together with the batch before it. Checksums do not cover offsets: that of
    # such a batch may be damaged, and then says nothing about the batch before it.
    nexts = np.maximum.reduceat(nexts, numbers)
    for found in _laid_out(data, headers[numbers], nexts, starts[numbers], ends[numbers], limits):
        if isinstance(found, _Large):
            yield from _of_large(found, wanted, limits)
        else:
            yield from _of_bodies(found, wanted, limits)


def no_rows(next_offset: int) -> Rows:
    """No rows, only the next offset."""
    none = np.empty(0, dtype=np.int64)
    (rows,) = taken_apart_in_parts(Columns(next_offset, none, none, none.astype(np.int32), b"", none, none))
    return rows


def _of_bodies(bodies: _Bodies, wanted: OffsetsWanted, limits: DecodeLimits) -> Iterator[Rows]:
    reached = wanted.start
    try:
        for rows in taken_apart_in_parts(_decode(bodies, wanted), largest=limits.record):
            yield rows
            reached = rows.next_offset
    except RecordError:
        # One of them cannot be read; those before it can.
        for number in range(len(bodies.headers)):
            if bodies.nexts[number] > reached:
                rest = OffsetsWanted(max(reached, wanted.start), wanted.end)
                yield from taken_apart_in_parts(_decode(bodies.single(number), rest), largest=limits.record)


def _laid_out(
    data: memoryview, headers: NDArray[np.void], nexts: Int64s, starts: Int64s, ends: Int64s, limits: DecodeLimits
) -> Iterator[_Bodies | _Large]:
    """Uncompressed bodies, in groups that are not too large together; uncompressed ones are not copied."""
    codecs, counts = (headers["attributes"] & CODEC_BITS).tolist(), headers["count"].tolist()
    found: list[Bytes] = []
    first = size = records = 0

    def gather() -> _Bodies:
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
            body = _body(data[start:end], codec, count, limits)
        except (RecordError, CodecError, OversizedBatchError):
            if found:
                yield gather()
            raise
        is_large = body is None or len(body) > limits.body or count > _MOST_AT_ONCE
        if found and (is_large or size + len(body or b"") > limits.part or records + count > _MOST_AT_ONCE):
            yield gather()
            found, first, size, records = [], number, 0, 0
        if body is None or is_large:
            one = slice(number, number + 1)
            whole, kind = (data[start:end], codec) if body is None else (body, Codec.NONE)
            yield _Large(headers[one], nexts[one], whole, kind, count)
            first = number + 1
        else:
            found.append(body)
            size += len(body)
            records += count
    if found:
        yield gather()


def _body(body: memoryview, codec: int, count: int, limits: DecodeLimits) -> Bytes | None:
    """A whole body; None if it is too large for that."""
    if count > BATCH_RECORDS:
        raise oversized_error(f"has {count} records, more than the supported {BATCH_RECORDS}")
    whole: Bytes | None = decompress_up_to(codec, body, limits.body) if codec else body
    if whole is not None and not 0 <= count <= len(whole):
        raise RecordError(f"it claims to have {count} records in {len(whole)} bytes")
    return whole


def _decode(bodies: _Bodies, wanted: OffsetsWanted) -> Columns:
    """The records of all bodies.

    Raises:
        RecordError: a body does not match its header.
    """
    counts = bodies.headers["count"].astype(np.int64)
    try:
        starts, lengths = walk_chains(bodies.content, octets_of(bodies.content), bodies.starts, bodies.ends, counts)
    except IndexError as error:
        raise RecordError("a record does not fit its batch") from error
    found = _columns(bodies.headers, counts, bodies.content, starts, starts + lengths)
    return _within(found, wanted, int(bodies.nexts[-1]))


def _columns(headers: NDArray[np.void], counts: Int64s, content: Bytes, starts: Int64s, ends: Int64s) -> Columns:
    """Records, from the position of each after its length.

    Raises:
        RecordError: one of them is not a record.
    """
    octets = octets_of(content)
    try:
        # The attributes of a record, one byte, have no meaning yet.
        times, at = read_varints(octets, starts + 1)
        offsets, at = read_varints(octets, at)
    except IndexError as error:
        raise RecordError("a record does not fit its batch") from error
    if (at >= ends).any():
        raise RecordError("a record does not fit its batch")
    offsets += np.repeat(headers["base"].astype(np.int64), counts)
    if (offsets[1:] <= offsets[:-1]).any():
        raise RecordError("offsets are not in ascending order")
    appended = np.repeat(headers["attributes"] & LOG_APPEND_TIME_BIT != 0, counts)
    times = np.where(
        appended,
        np.repeat(headers["max_timestamp"].astype(np.int64), counts),
        times + np.repeat(headers["first_timestamp"].astype(np.int64), counts),
    )
    types = np.where(appended, LOG_APPEND_TIME, CREATE_TIME).astype(np.int32)
    return Columns(0, offsets, times, types, content, at, ends)


def _within(found: Columns, wanted: OffsetsWanted, next_offset: int) -> Columns:
    first, stop = np.searchsorted(found.offsets, wanted).tolist()
    part = slice(first, stop)
    return Columns(
        next_offset,
        found.offsets[part],
        found.times[part],
        found.types[part],
        found.content,
        found.starts[part],
        found.ends[part],
    )


def _of_large(batch: _Large, wanted: OffsetsWanted, limits: DecodeLimits) -> Iterator[Rows]:
    """The rows of a batch that is large when decompressed, or has very many records.

    Raises:
        RecordError, CodecError, OversizedBatchError: as of `of_batches`.
    """
    base, following = int(batch.headers["base"][0]), int(batch.nexts[0])
    piece = max(limits.part, _SMALLEST_PIECE)
    body = pieces(batch.codec, batch.body, piece=piece, largest=limits.record)
    before, reached, left = base - 1, wanted.start, batch.count
    for found in record_pieces(body, batch.count, at_once=_MOST_AT_ONCE, piece=piece, largest=limits.record):
        if isinstance(found, Giant):
            left -= 1
            before = base + found.offset_delta
            if wanted.start <= before < wanted.end:
                raise record_beyond_memory(found.size, limits.record, before)
        else:
            counts = np.array([len(found.starts)], dtype=np.int64)
            columns = _columns(batch.headers, counts, found.content, found.starts, found.ends)
            if columns.offsets[0] <= before:
                raise RecordError("offsets are not in ascending order")
            before, left = int(columns.offsets[-1]), left - len(columns.offsets)
            columns = _within(columns, wanted, min(max(before + 1, wanted.start), wanted.end) if left else following)
            if len(columns.offsets):
                yield from taken_apart_in_parts(columns, largest=limits.record)
                reached = columns.next_offset
        if before >= wanted.end - 1:
            break
    if reached < following:
        yield no_rows(following)
