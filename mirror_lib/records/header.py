"""The 61-byte header of a magic-2 record batch (KIP-98; Java `DefaultRecordBatch`)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c

#: The current record batch format.
MAGIC = 2
#: Size of base offset and batch length, which every magic begins with.
LOG_OVERHEAD = 12
MAGIC_AT = 16
CRC_AT = 17
#: The checksum covers everything from the attributes on.
ATTRIBUTES_AT = 21
PRODUCER_AT = 43
HEADER_SIZE = 61

CODEC_BITS = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
#: The base timestamp is a delete horizon (KIP-534); records still count from it.
DELETE_HORIZON_BIT = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_WITHOUT_PRODUCER = struct.Struct(">qiibIhiqq14xi")
CRC = struct.Struct(">I")
#: Producer id, epoch, and the sequence number of the first record.
PRODUCER = struct.Struct(">qhi")
NO_LEADER_EPOCH = -1
_NO_PRODUCER = (-1, -1, -1)


class Codec(IntEnum):
    """Compression of a batch, as in the attributes' lowest bits."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class BatchHeader(NamedTuple):
    """The fields of a header in their order on the wire. Timestamps are epoch milliseconds."""

    base_offset: int
    #: Bytes after this field.
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    #: Number of records; fewer than the covered offsets if compaction removed some.
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed


def parse_header(data: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Parse the header at `position` without checks."""
    return BatchHeader(*HEADER.unpack_from(data, position))


def new_batch(body: bytes, *, codec: int, count: int, first_timestamp: int, max_timestamp: int) -> bytearray:
    """A dense batch from offset 0, without a producer, around a body that is encoded and compressed by `codec`."""
    head = HEADER.pack(
        0,
        HEADER_SIZE - LOG_OVERHEAD + len(body),
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        codec,
        count - 1,
        first_timestamp,
        max_timestamp,
        *_NO_PRODUCER,
        count,
    )
    payload = bytearray(head)
    payload += body
    CRC.pack_into(payload, CRC_AT, crc32c(memoryview(payload)[ATTRIBUTES_AT:]))
    return payload
