"""The last thing done to a batch before it is sent: its header comes to say who sends it, and nothing of the source."""

from __future__ import annotations

import struct

from crc32c import crc32c

from mirror_lib.cluster.batches.checksum import behind
from mirror_lib.cluster.batches.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CRC,
    CRC_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    PRODUCER,
    PRODUCER_AT,
    TRANSACTIONAL_BIT,
    UNCHECKED,
)
from mirror_lib.cluster.batches.ready import ReadyBatch

_ATTRIBUTES = struct.Struct(">h")


def stamp(batch: ReadyBatch, producer_id: int, epoch: int, base_sequence: int, *, in_transaction: bool = False) -> None:
    """Make the batch the next one of an idempotent producer (KIP-98), in place, from offset 0.

    The body is not read: the new checksum is the old one, changed by what changes in the header. So whatever happens
    to the body between the check of the source's checksum and the target is found by the target.

    Args:
        base_sequence: the first record's number among all of this producer for the partition, modulo 2**31.
        in_transaction: whether it belongs to the producer's open transaction.
    """
    payload = batch.payload
    size = len(payload)
    covered = memoryview(payload)[ATTRIBUTES_AT:HEADER_SIZE]
    (checksum,) = CRC.unpack_from(payload, CRC_AT)
    before = crc32c(covered)
    # All that is used of the attributes stands in their second byte.
    codec = payload[ATTRIBUTES_AT + 1] & CODEC_BITS
    _ATTRIBUTES.pack_into(payload, ATTRIBUTES_AT, codec | TRANSACTIONAL_BIT if in_transaction else codec)
    PRODUCER.pack_into(payload, PRODUCER_AT, producer_id, epoch, base_sequence)
    checksum ^= behind(before ^ crc32c(covered), size - HEADER_SIZE)
    UNCHECKED.pack_into(payload, 0, 0, size - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, checksum)
