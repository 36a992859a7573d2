"""Records inside an uncompressed batch body.

To move a record into another batch only its length, timestamp delta and offset delta change. The bytes after them (key,
value, headers) are its `tail`, which is copied unchanged: null and empty keys, repeated headers and header names that
are not valid text are preserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mirror_lib.outside_limits import BATCH_RECORDS
from mirror_lib.records.oversized import oversized_error
from mirror_lib.records.varint import SMALL, as_long, decode_varint, encode_varint

#: Attributes of a record: one byte without a used bit yet.
_ATTRIBUTES = b"\0"
_SMALL = len(SMALL)
#: Attributes and timestamp delta of a record, for small deltas.
ATTRIBUTES_AND_SMALL = tuple(_ATTRIBUTES + encoded for encoded in SMALL)
_LONG = 1 << 63
_ONE_BYTE = 0x80
_BITS = 0x7F


class RecordError(ValueError):
    """A body does not contain the records that its header declares."""


class Record(NamedTuple):
    """One record with its absolute offset and timestamp (epoch milliseconds), and the rest as encoded."""

    offset: int
    timestamp: int
    #: A view if the body is one.
    tail: bytes | memoryview


def read_records(body: bytes | memoryview, *, base_offset: int, base_timestamp: int, count: int) -> Iterator[Record]:
    """Iterate over the records of a body.

    Raises:
        RecordError: while iterating, the body contradicts `count` or its own lengths.
        OversizedBatchError: there may be more than `BATCH_RECORDS`.
    """
    position, size = 0, len(body)
    earliest, latest = -_LONG - base_timestamp, _LONG - base_timestamp
    if count > size:
        raise RecordError(f"it claims to have {count} records in {size} bytes")
    if count > BATCH_RECORDS:
        raise oversized_error(f"has {count} records, more than the supported {BATCH_RECORDS}")
    for number in range(count):
        try:
            length, position = decode_varint(body, position)
            end = position + length
            timestamp_delta, at = decode_varint(body, position + len(_ATTRIBUTES))
            offset_delta, at = decode_varint(body, at)
        except (IndexError, ValueError) as error:
            raise RecordError(f"record {number} of {count} cannot be read: {error}") from error
        if at >= end or end > size:
            raise RecordError(f"record {number} of {count} does not fit its batch")
        if not earliest <= timestamp_delta < latest:
            timestamp_delta = as_long(base_timestamp + timestamp_delta) - base_timestamp
        yield Record(base_offset + offset_delta, base_timestamp + timestamp_delta, body[at:end])
        position = end
    if position != size:
        raise RecordError(f"{size - position} bytes remain after {count} records")


def key_and_value(record: Record) -> tuple[bytes | None, bytes | None]:
    """Key and value of a record; None for null.

    Raises:
        RecordError: its lengths do not fit it.
    """
    try:
        tail = bytes(record.tail)
        key, at = _nullable(tail, 0)
        return key, _nullable(tail, at)[0]
    except (IndexError, ValueError) as error:
        raise RecordError(f"the record at offset {record.offset} cannot be read: {error}") from error


def _nullable(tail: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = decode_varint(tail, at)
    if length < 0:
        return None, at
    if length > len(tail) - at:
        raise ValueError(f"a key or value claims to have {length} bytes")
    return tail[at : at + length], at + length


def encode_record(record: Record, *, offset_delta: int, timestamp_delta: int) -> bytes:
    """Encode a record for another batch."""
    return encode_head(record, offset_delta=offset_delta, timestamp_delta=timestamp_delta) + record.tail


def encode_head(record: Record, *, offset_delta: int, timestamp_delta: int) -> bytes:
    """Encode what precedes the tail of a record in another batch."""
    deltas = _ATTRIBUTES + encode_varint(timestamp_delta) + encode_varint(offset_delta)
    return encode_varint(len(deltas) + len(record.tail)) + deltas


def reframe(
    body: bytes | memoryview, parts: list[bytes | memoryview], *, count: int, offset_delta: int, timestamp_shift: int
) -> None:
    """Append all records of a dense body to `parts`, renumbered: the fast path for whole batches.

    Args:
        parts: encoded pieces of the new body, to be joined.
        count: records in the body; their own offset deltas are 0, 1, 2 ...
        offset_delta: the first record's number in the new batch.
        timestamp_shift: is added to each timestamp delta.

    Raises:
        RecordError: the body contradicts `count` or its own lengths; `parts` are unchanged.
    """
    # This loop is the main cost of small batches. It decodes short numbers in place and looks encodings up.
    position, size, before = 0, len(body), len(parts)
    small, stamped, add = SMALL, ATTRIBUTES_AND_SMALL, parts.append
    try:
        for delta in range(offset_delta, offset_delta + count):
            length = body[position]
            if length < _ONE_BYTE:
                position += 1
                end = position + (length >> 1)
            elif (second := body[position + 1]) < _ONE_BYTE:
                position += 2
                end = position + ((second << 6) | ((length & _BITS) >> 1))
            else:
                length, position = decode_varint(body, position)
                end = position + length
            timestamp = body[position + 1]
            if timestamp < _ONE_BYTE:
                at = position + 2
                timestamp = ((timestamp >> 1) ^ -(timestamp & 1)) + timestamp_shift
            else:
                timestamp, at = decode_varint(body, position + 1)
                timestamp += timestamp_shift
            while body[at] >= _ONE_BYTE:
                at += 1
            at += 1
            if at >= end or end > size:
                raise RecordError("a record does not fit its batch")
            times = stamped[timestamp] if 0 <= timestamp < _SMALL else _ATTRIBUTES + encode_varint(timestamp)
            offsets = small[delta] if delta < _SMALL else encode_varint(delta)
            length = len(times) + len(offsets) + end - at
            add(small[length] if length < _SMALL else encode_varint(length))
            add(times)
            add(offsets)
            add(body[at:end])
            position = end
        if position != size:
            raise RecordError(f"{size - position} bytes remain after {count} records")
    except (IndexError, ValueError) as error:
        del parts[before:]
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"its records cannot be read: {error}") from error
