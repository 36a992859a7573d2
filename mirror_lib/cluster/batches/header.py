"""The 61-byte header of a magic-2 record batch (KIP-98; Java `DefaultRecordBatch`)."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from crc32c import crc32c

from mirror_lib.cluster.batches.checksum import behind

#: The current record batch format.
MAGIC = 2
#: Base offset and batch length, which every magic has in front.
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
#: The base timestamp is a time of deletion (KIP-534); records still count from it.
DELETE_HORIZON_BIT = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
#: Its part before the attributes.
_UNCHECKED = struct.Struct(">qiibI")
_CRC = struct.Struct(">I")
_PRODUCER = struct.Struct(">qhi")
_NO_LEADER_EPOCH = -1
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
    #: Records that are there; fewer than the offsets covered where compaction removed some.
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody asks of a header


def parse_header(data: bytes | bytearray | memoryview, position: int = 0) -> BatchHeader:
    """Read the header at `position`; nothing is checked."""
    return BatchHeader(*HEADER.unpack_from(data, position))


def clean_header(payload: bytearray | memoryview, header: BatchHeader) -> None:
    """Make a whole source batch look like a producer's own: from offset 0, without its former producer.

    The checksum and the producer's identity are still to be stamped.
    """
    HEADER.pack_into(
        payload,
        0,
        0,
        header.length,
        _NO_LEADER_EPOCH,
        2,
        0,
        header.attributes & CODEC_BITS,
        header.last_offset_delta,
        header.first_timestamp,
        header.max_timestamp,
        *_NO_PRODUCER,
        header.count,
    )


def clean_plain_header(payload: bytearray | memoryview, length: int) -> None:
    """As `clean_header`, with less work, for a batch whose attributes tell of a codec and of nothing else."""
    _UNCHECKED.pack_into(payload, 0, 0, length, _NO_LEADER_EPOCH, MAGIC, 0)
    _PRODUCER.pack_into(payload, PRODUCER_AT, *_NO_PRODUCER)


def new_batch(body: bytes, *, codec: int, count: int, first_timestamp: int, max_timestamp: int) -> bytearray:
    """A dense batch from offset 0 around an encoded (and, unless `codec` is none, compressed) body."""
    head = HEADER.pack(
        0,
        HEADER_SIZE - LOG_OVERHEAD + len(body),
        _NO_LEADER_EPOCH,
        2,
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
    return payload


def stamp_producer(
    payload: bytearray | memoryview,
    producer_id: int,
    epoch: int,
    base_sequence: int,
    *,
    source_checksums: tuple[int, int] | None = None,
    in_transaction: bool = False,
) -> None:
    """Write who sends the batch and its place in the sender's sequence, then the checksum over all that.

    Args:
        source_checksums: as in `ReadyBatch`.
        in_transaction: whether the batch belongs to the sender's open transaction.
    """
    _PRODUCER.pack_into(payload, PRODUCER_AT, producer_id, epoch, base_sequence)
    if in_transaction:
        # The attributes are two bytes, and all that is used stands in the second.
        payload[ATTRIBUTES_AT + 1] |= TRANSACTIONAL_BIT
    view = memoryview(payload)
    if source_checksums is None:
        checksum = crc32c(view[ATTRIBUTES_AT:])
    else:
        of_source, of_its_header = source_checksums
        of_header = crc32c(view[ATTRIBUTES_AT:HEADER_SIZE])
        checksum = of_source ^ behind(of_header ^ of_its_header, len(view) - HEADER_SIZE)
    _CRC.pack_into(payload, CRC_AT, checksum)
