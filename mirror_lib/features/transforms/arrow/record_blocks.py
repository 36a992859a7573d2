"""Consecutive small batches as one block of records, for reading without an object per record.

Headers are decoded as numpy columns, and so are records: the first ones of all batches at once, then the second ones,
and so on. Data that a block cannot hold (large batches, old formats, damaged data) stays a `Span`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from mirror_lib.features.transforms.arrow.lz4_many import LaidOut, single_blocks
from mirror_lib.records.compression.codecs import CodecError, decompress
from mirror_lib.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    Codec,
    parse_header,
)
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Shown, Span, none_shown, read_spans

#: Batches from this size on are kept: they may be equal as a whole. (`mirror.batch.passthrough.min.bytes`)
SMALL_BATCH = 16 * 1024
#: Minimum number of consecutive small batches that are worth the arrays.
_FEWEST = 8
#: Maximum decompressed bytes in the blocks of a fetch; batches beyond it stay compressed until they are read.
_LARGEST_CONTENT = 16 * 1024 * 1024
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
HEADER_TYPE = np.dtype(
    [
        ("base", ">i8"),
        ("length", ">i4"),
        ("epoch", ">i4"),
        ("magic", "u1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("first_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_HEADER_BYTES = np.arange(HEADER_SIZE)
_MORE, _BITS = 0x80, 0x7F
#: Maximum number of bytes of a 64-bit varint.
_LONGEST = 10

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RecordBlock:
    """The records of offsets [first, next_offset) of a log; some offsets may have none.

    Attributes:
        offsets: of the records, ascending.
        times: as a reader sees them, in epoch milliseconds.
        content: bytes that contain the records.
        starts: start of each record's tail in them (`records.Record.tail`).
        ends: its end.
    """

    first: int
    next_offset: int
    offsets: Int64s
    times: Int64s
    content: bytes
    starts: Int64s
    ends: Int64s
    #: True if the content is larger than the fetched bytes.
    is_decompressed: bool = False
    #: True if a broker has replaced timestamps of them.
    log_append_time: bool = False

    @property
    def is_hidden(self) -> bool:
        """As in `Span`: a block has records."""
        return False

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def tails(self) -> list[bytes]:
        """The bytes after the deltas of each record."""
        content = self.content
        return [content[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    def before(self, offset: int) -> int:
        """The number of records before an offset."""
        return int(np.searchsorted(self.offsets, offset))

    def part(self, start: int, stop: int) -> RecordBlock:
        """Records number `start` to `stop` - 1."""
        whole = len(self.offsets)
        return RecordBlock(
            int(self.offsets[start]) if start else self.first,
            int(self.offsets[stop]) if stop < whole else self.next_offset,
            self.offsets[start:stop],
            self.times[start:stop],
            self.content,
            self.starts[start:stop],
            self.ends[start:stop],
            log_append_time=self.log_append_time,
        )


def read_blocks(
    data: memoryview, aborted: Sequence[tuple[int, int]], *, read_committed: bool, shown: Shown = none_shown
) -> tuple[list[Span | RecordBlock], int]:
    """As `spans.read_spans`, with small batches gathered into blocks.

    Raises:
        RecordError: the first batch is damaged.
    """
    found: list[Span | RecordBlock] = []
    position, room = 0, _LARGEST_CONTENT
    # Only all batches of a fetch in their order show which of them are aborted.
    if not (read_committed and aborted):
        headers, bounds = read_headers(data)
        for start, stop, small in _groups(headers):
            gathered = _block(data, headers[start:stop], bounds[start : stop + 1], room) if small else None
            if gathered is not None and gathered.is_decompressed:
                room -= len(gathered.content)
            found += [gathered] if gathered is not None else _spans(data, bounds[start : stop + 1])
        position = bounds[-1]
    if position < len(data):
        # An incomplete batch, an old format, or damage.
        try:
            rest, size = read_spans(data[position:], aborted, read_committed=read_committed, shown=shown)
        except (RecordError, CodecError):
            if not found:
                raise
            rest, size = [], 0
        found += rest
        position += size
    return found, position


def read_headers(data: memoryview) -> tuple[NDArray[np.void], list[int]]:
    """The headers of the batches up to the first invalid one; the start of each, and the end of the last one."""
    bounds = [0]
    position, last = 0, len(data) - HEADER_SIZE
    unpack, add = _LENGTH.unpack_from, bounds.append
    smallest = HEADER_SIZE - LOG_OVERHEAD
    while position <= last:
        length = unpack(data, position + _LENGTH_AT)[0]
        if length < smallest:
            break
        position += LOG_OVERHEAD + length
        add(position)
    if bounds[-1] > len(data):
        bounds.pop()
    at = np.array(bounds[:-1], dtype=np.int64)
    octets = np.frombuffer(data, dtype=np.uint8)
    headers = octets[at[:, None] + _HEADER_BYTES].view(HEADER_TYPE)[:, 0] if len(at) else np.empty(0, dtype=HEADER_TYPE)
    whole = headers["magic"] == MAGIC
    checks = np.array(
        [crc32c(data[start + ATTRIBUTES_AT : end]) for start, end in pairwise(bounds)] if whole.all() else (),
        dtype=np.uint32,
    )
    if len(checks):
        whole &= headers["crc"] == checks
    elif len(whole):
        # Batches before an old format are rare: the general path is sufficient.
        whole[:] = False
    good = len(whole) if whole.all() else int(np.argmin(whole))
    return headers[:good], bounds[: good + 1]


def _groups(headers: NDArray[np.void]) -> Iterator[tuple[int, int, bool]]:
    """(start, stop, is a block) of batches that belong together."""
    control = headers["attributes"] & CONTROL_BIT != 0
    small = (headers["length"] < SMALL_BATCH - LOG_OVERHEAD) | control
    edges = [0, *(np.flatnonzero(small[1:] != small[:-1]) + 1).tolist(), len(headers)]
    start = 0
    for first, stop in pairwise(edges):
        if first < stop and small[first] and np.count_nonzero(~control[first:stop]) >= _FEWEST:
            if start < first:
                yield start, first, False
            yield first, stop, True
            start = stop
    if start < len(headers):
        yield start, len(headers), False


def _spans(data: memoryview, bounds: Sequence[int]) -> Iterator[Span]:
    """Batches with checked checksums, none of which is aborted."""
    for start, end in pairwise(bounds):
        header = parse_header(data, start)
        first, next_offset = header.base_offset, header.base_offset + header.last_offset_delta + 1
        if header.attributes & CONTROL_BIT:
            yield Span(first, next_offset)
        else:
            yield Span(first, next_offset, header, bytes(data[start + HEADER_SIZE : end]))


def _block(data: memoryview, headers: NDArray[np.void], bounds: Sequence[int], room: int) -> RecordBlock | None:
    """The batches as one block; None if one of them cannot be read, so that the span of that one reports it."""
    piece = bytes(data[bounds[0] : bounds[-1]])
    try:
        return _decode(headers, piece, np.array(bounds, dtype=np.int64) - bounds[0], room)
    except (RecordError, CodecError):
        return None


def _decode(headers: NDArray[np.void], piece: bytes, bounds: Int64s, room: int) -> RecordBlock:
    data = headers["attributes"] & CONTROL_BIT == 0
    starts, ends = bounds[:-1][data] + HEADER_SIZE, bounds[1:][data]
    first, next_offset = int(headers["base"][0]), int(headers["base"][-1] + headers["last_delta"][-1]) + 1
    headers = headers[data]
    codecs = headers["attributes"] & CODEC_BITS
    content = piece
    if codecs.any():
        content, starts, ends = _decompress(piece, codecs, starts, ends, room)
    counts = headers["count"].astype(np.int64)
    deltas, times, tail_starts, tail_ends = _records(np.frombuffer(content, dtype=np.uint8), starts, ends, counts)
    offsets = np.repeat(headers["base"].astype(np.int64), counts) + deltas
    if (offsets[1:] <= offsets[:-1]).any():
        raise RecordError("offsets are not in ascending order")
    times += np.repeat(headers["first_timestamp"].astype(np.int64), counts)
    appended = headers["attributes"] & LOG_APPEND_TIME_BIT != 0
    if appended.any():
        given = np.repeat(headers["max_timestamp"].astype(np.int64), counts)
        times = np.where(np.repeat(appended, counts), given, times)
    return RecordBlock(
        first,
        next_offset,
        offsets,
        times,
        content,
        tail_starts,
        tail_ends,
        is_decompressed=content is not piece,
        log_append_time=bool(appended.any()),
    )


def _decompress(
    piece: bytes, codecs: NDArray[np.int16], starts: Int64s, ends: Int64s, room: int
) -> tuple[bytes, Int64s, Int64s]:
    """All consecutive bodies, with start and end of each."""
    plain, block_starts, block_ends = single_blocks(np.frombuffer(piece, dtype=np.uint8), starts, ends)
    plain &= codecs == Codec.LZ4
    laid_out = LaidOut(room)
    edges = [0, *(np.flatnonzero(plain[1:] != plain[:-1]) + 1).tolist(), len(plain)]
    try:
        for first, stop in pairwise(edges):
            if plain[first]:
                laid_out.add_blocks(piece, block_starts[first:stop].tolist(), block_ends[first:stop].tolist())
            else:
                for number in range(first, stop):
                    laid_out.add(decompress(int(codecs[number]), piece[starts[number] : ends[number]]))
        content = laid_out.join()
    except Exception as error:  # The libraries share no exception type.
        raise CodecError(f"a body cannot be read: {error}") from error
    bounds = np.array(laid_out.bounds, dtype=np.int64)
    return content, bounds[:-1], bounds[1:]


def _records(
    content: NDArray[np.uint8], starts: Int64s, ends: Int64s, counts: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Offset delta, timestamp delta, start and end of the tail, of all records of all bodies in order."""
    # Check each batch alone: all of them together have room for as many as there are batches, times all bytes.
    if (counts < 0).any() or (counts > ends - starts).any():
        raise RecordError("a batch claims to have more records than bytes")
    total = int(counts.sum())
    deltas, times, tail_starts, tail_ends = (np.empty(total, dtype=np.int64) for _ in range(4))
    # Most records first, so that the batches that still have records are always the first ones.
    order = np.argsort(-counts, kind="stable")
    position, limit = starts[order], ends[order]
    numbers, counts = (np.cumsum(counts) - counts)[order], counts[order]
    negated = -counts
    try:
        for number in range(int(counts[0])):
            active = int(np.searchsorted(negated, -number))
            length, at = read_varints(content, position[:active])
            end = at + length
            times_delta, at = read_varints(content, at + 1)
            offset_delta, at = read_varints(content, at)
            if (at >= end).any() or (end > limit[:active]).any():
                raise RecordError("a record does not fit its batch")
            place = numbers[:active] + number
            times[place], deltas[place], tail_starts[place], tail_ends[place] = times_delta, offset_delta, at, end
            position[:active] = end
    except IndexError as error:
        raise RecordError("a record does not fit its batch") from error
    if (position != limit).any():
        raise RecordError("bytes remain after the records")
    return deltas, times, tail_starts, tail_ends


def read_varints(content: NDArray[np.uint8], at: Int64s) -> tuple[Int64s, Int64s]:
    """Zigzag varints at many positions, and the positions after them."""
    octets = content[at]
    value = (octets & _BITS).astype(np.uint64)
    at = at + 1
    longer = np.flatnonzero(octets & _MORE)
    shift = 7
    while len(longer):
        if shift >= 7 * _LONGEST:
            raise RecordError("a number is too long")
        octets = content[at[longer]]
        value[longer] |= (octets & _BITS).astype(np.uint64) << np.uint64(shift)
        at[longer] += 1
        longer = longer[octets & _MORE != 0]
        shift += 7
    return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64), at
