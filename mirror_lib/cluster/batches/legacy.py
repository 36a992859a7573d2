"""Message sets of magic 0 and 1 (brokers before 0.11, or topics never rewritten since), read by aiokafka.

This is the only module that knows `aiokafka.record`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import aiokafka.errors
from aiokafka.record.legacy_records import LegacyRecordBatch

from mirror_lib.cluster.batches.header import Codec
from mirror_lib.cluster.batches.records import Record, RecordError
from mirror_lib.cluster.batches.varint import encode_varint

#: Offset, size, CRC, magic and attributes, which both old magics begin with.
_ENTRY = struct.Struct(">qiIbb")
_CODEC_BITS = 0x03
_NO_TIMESTAMP = -1
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)


def last_offset(entry: memoryview) -> int:
    """The offset of a message, or of the last one inside a compressed message."""
    offset: int = _ENTRY.unpack_from(entry)[0]
    return offset


def codec(entry: memoryview) -> int:
    """The codec of a message set entry; the numbers are those of magic 2."""
    return Codec(_ENTRY.unpack_from(entry)[4] & _CODEC_BITS)


def read_legacy(entry: memoryview, magic: int) -> Iterator[Record]:
    """The records of one entry: a message, or all messages inside a compressed one.

    Inner offsets, the wrapper's log-append time and the old codecs' frames follow Java's `AbstractLegacyRecordBatch`.
    Records of magic 0 have no timestamp: -1, as brokers give them when they convert.

    Raises:
        RecordError: checksum, codec or structure is wrong.
    """
    try:
        batch = LegacyRecordBatch(bytes(entry), magic)
        if not batch.validate_crc():
            raise RecordError("its CRC is wrong")
        for record in batch:
            timestamp = _NO_TIMESTAMP if record.timestamp is None else record.timestamp
            yield Record(record.offset, timestamp, _nullable(record.key) + _nullable(record.value) + _NO_HEADERS)
    except (
        aiokafka.errors.KafkaError,
        AssertionError,
        ValueError,
        IndexError,
        OverflowError,
        struct.error,
        OSError,
        EOFError,
    ) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"its messages cannot be read: {error}") from error


def _nullable(value: bytes | None) -> bytes:
    return _NULL if value is None else encode_varint(len(value)) + value
