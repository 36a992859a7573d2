"""The last fetched record and its checksum, by which a later run recognizes the source's log.

A log that was restored from a snapshot and has grown again since has other records at copied offsets. Neither
compaction nor brokers that rebuild batches ever change a record, so a record that exists and differs proves another
history; a missing record proves nothing.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from mirror_lib.errors import OversizedBatchError
from mirror_lib.records.compression.codecs import CodecError, decompress_once
from mirror_lib.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    parse_header,
)
from mirror_lib.records.records import Record, RecordError, read_records

#: The lower byte of the attributes.
_FLAGS_AT = ATTRIBUTES_AT + 1
_PLACE = struct.Struct(">qi")
_TIMESTAMP = struct.Struct(">q")


class LastRecord(NamedTuple):
    """A record copied last, or right before the last: a later run recognizes the log by it."""

    offset: int
    #: The size of its batch.
    batch_bytes: int
    #: CRC-32C of its timestamp, key, value and headers.
    checksum: int


class LastRecords(NamedTuple):
    """The first record of the last whole batch of a fetch, and of the last one with data: markers are not copied."""

    of_log: LastRecord | None
    of_data: LastRecord | None


def find_last_records(data: memoryview, *, end: int) -> LastRecords:
    """The last records of the batches that begin before `end`; batches are appended as a whole.

    None without any, in old formats, and if the batch cannot be read.
    """
    # A fetch may have thousands of small batches.
    size, unpack = len(data), _PLACE.unpack_from
    start = stop = data_start = data_stop = 0
    while stop <= size - LOG_OVERHEAD:
        base, length = unpack(data, stop)
        following = stop + LOG_OVERHEAD + length
        if following > size or base >= end or length <= 0:
            break
        start, stop = stop, following
        if stop - start < HEADER_SIZE or not data[start + _FLAGS_AT] & CONTROL_BIT:
            data_start, data_stop = start, stop
    last = _first_record(data[start:stop], end)
    return LastRecords(last, last if data_start == start else _first_record(data[data_start:data_stop], end))


def _first_record(batch: memoryview, end: int) -> LastRecord | None:
    record = _record_at(batch, 0)
    if record is None or record.offset >= end:
        return None
    return LastRecord(record.offset, len(batch), _checksum(record))


def last_record_at(data: memoryview, offset: int, *, append_times: bool = False) -> LastRecord | None:
    """The record at an offset, from a fetch at that offset.

    None if no record has the offset (a marker, compaction), if the batch cannot be read, and if the log replaces
    timestamps: then it is not the record of another log.

    Args:
        append_times: the record with the timestamp of a log that replaces them, which its copies have.
    """
    refused = CONTROL_BIT if append_times else CONTROL_BIT | LOG_APPEND_TIME_BIT
    if len(data) < HEADER_SIZE or data[_FLAGS_AT] & refused:
        return None
    size = LOG_OVERHEAD + _PLACE.unpack_from(data, 0)[1]
    record = _record_at(data[: max(size, 0)], offset)
    return None if record is None or record.offset != offset else LastRecord(offset, size, _checksum(record))


def is_same(data: memoryview, known: LastRecord) -> bool | None:
    """True if the known record equals the one that a fetch from its offset returned.

    None if that cannot be determined: no record has the offset (compaction), or the batch cannot be read.
    """
    if len(data) < LOG_OVERHEAD:
        return None
    _, length = _PLACE.unpack_from(data, 0)
    record = _record_at(data[: LOG_OVERHEAD + max(length, 0)], known.offset)
    if record is None or record.offset != known.offset:
        return None
    return _checksum(record) == known.checksum


def is_same_copy(data: memoryview, known: LastRecord) -> bool | None:
    """As `is_same`, for the copy of the known record on the target: None also if the target replaces timestamps."""
    if len(data) >= HEADER_SIZE and data[MAGIC_AT] == MAGIC and data[_FLAGS_AT] & LOG_APPEND_TIME_BIT:
        return None
    return is_same(data, known)


def _checksum(record: Record) -> int:
    return int(crc32c(record.tail, crc32c(_TIMESTAMP.pack(record.timestamp))))


def _record_at(batch: memoryview, offset: int) -> Record | None:
    """The first record of a batch at this offset or after it."""
    if len(batch) < HEADER_SIZE or batch[MAGIC_AT] != MAGIC:
        return None
    header = parse_header(batch)
    if len(batch) != LOG_OVERHEAD + header.length or crc32c(batch[ATTRIBUTES_AT:]) != header.crc:
        # Only part of a batch, or damage on a disk, which is not another history.
        return None
    try:
        body = decompress_once(header.attributes & CODEC_BITS, batch[HEADER_SIZE:])
        records = read_records(
            body,
            base_offset=header.base_offset,
            base_timestamp=header.first_timestamp,
            count=header.count,
        )
        found = next((record for record in records if record.offset >= offset), None)
    except (CodecError, RecordError, OversizedBatchError, MemoryError):
        # The copy of the batch reports the damage.
        return None
    if found is not None and header.attributes & LOG_APPEND_TIME_BIT:
        return found._replace(timestamp=header.max_timestamp)
    return found
