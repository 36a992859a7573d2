"""The last thing done to a batch before it is sent: its header comes to say who sends it, and nothing of the source."""

from __future__ import annotations

import struct

from mirror_lib.cluster.batches.checksum import change_of_checksum
from mirror_lib.cluster.batches.header import (
    CODEC_BITS,
    CRC_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    PRODUCER,
    PRODUCER_AT,
    TRANSACTIONAL_BIT,
)
from mirror_lib.cluster.batches.ready import ReadyBatch

#: What is replaced, from the checksum on: checksum, attributes, producer id, epoch and sequence.
_REPLACED = struct.Struct(">Ih20xqhi")
#: What the checksum covers of a header; zeros where nothing changes.
_DIFFERENCE = struct.Struct(">h20xqhi4x")
#: A header's beginning, with the attributes as its end.
_BEGINNING = struct.Struct(">qiibIh")


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
    checksum, former, former_id, former_epoch, former_sequence = _REPLACED.unpack_from(payload, CRC_AT)
    attributes = former & CODEC_BITS | TRANSACTIONAL_BIT if in_transaction else former & CODEC_BITS
    difference = _DIFFERENCE.pack(
        former ^ attributes, former_id ^ producer_id, former_epoch ^ epoch, former_sequence ^ base_sequence
    )
    checksum ^= change_of_checksum(difference, size - HEADER_SIZE)
    _BEGINNING.pack_into(payload, 0, 0, size - LOG_OVERHEAD, NO_LEADER_EPOCH, MAGIC, checksum, attributes)
    PRODUCER.pack_into(payload, PRODUCER_AT, producer_id, epoch, base_sequence)
