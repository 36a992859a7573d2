"""The records of a span as columns: lists that are compared whole, without an object for each record."""

from __future__ import annotations

from typing import NamedTuple

from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.records.compression.codecs import decompress
from mirror_lib.records.header import CODEC_BITS, BatchHeader
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Span
from mirror_lib.records.varint import as_long, decode_varint

_ONE_BYTE = 0x80
_BEYOND_LONG = 1 << 63


class Columns(NamedTuple):
    """Absolute offsets, timestamps as a reader sees them (epoch milliseconds), and what follows them on the wire."""

    offsets: list[int]
    times: list[int]
    tails: list[bytes]


def columns(span: Span | RecordBlock) -> Columns:
    """Decode a span; a block is returned as it is.

    Raises:
        RecordError: the body does not match the header.
        CodecError: it cannot be decompressed.
    """
    if isinstance(span, RecordBlock):
        return Columns(span.offsets.tolist(), span.times.tolist(), span.tails)
    header = span.header
    if header is None:
        old = span.old
        return Columns(
            [each.offset for each in old], [each.timestamp for each in old], [bytes(each.tail) for each in old]
        )
    found = _decode(header, decompress(header.attributes & CODEC_BITS, span.body))
    if span.log_append_time:
        return found._replace(times=[header.max_timestamp] * header.count)
    return found


def _decode(header: BatchHeader, body: bytes) -> Columns:
    # This loop is the main cost of everything that is not compared batch by batch. It reads short numbers in place.
    offsets: list[int] = []
    times: list[int] = []
    tails: list[bytes] = []
    base, first_timestamp = header.base_offset, header.first_timestamp
    position, size = 0, len(body)
    try:
        for _ in range(header.count):
            length = body[position]
            if length < _ONE_BYTE:
                position += 1
                end = position + (length >> 1)
            else:
                length, position = decode_varint(body, position)
                end = position + length
            at = position + 1
            delta = body[at]
            if delta < _ONE_BYTE:
                at += 1
                times.append(first_timestamp + ((delta >> 1) ^ -(delta & 1)))
            else:
                delta, at = decode_varint(body, at)
                times.append(first_timestamp + delta)
            delta = body[at]
            if delta < _ONE_BYTE:
                at += 1
                offsets.append(base + ((delta >> 1) ^ -(delta & 1)))
            else:
                delta, at = decode_varint(body, at)
                offsets.append(base + delta)
            if at >= end or end > size:
                raise RecordError(f"record {len(tails)} of {header.count} is longer than its batch")
            tails.append(body[at:end])
            position = end
    except (IndexError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"record {len(tails)} of {header.count} cannot be read: {error}") from error
    if position != size:
        raise RecordError(f"{size - position} bytes remain after {header.count} records")
    if min(times, default=0) < -_BEYOND_LONG or max(times, default=0) >= _BEYOND_LONG:
        # Times are 64 bits, also if their distance is greater.
        times = [as_long(each) for each in times]
    return Columns(offsets, times, tails)
