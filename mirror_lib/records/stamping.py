"""Stamps a batch before it is sent: its header gets the producer's fields instead of the source's."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache, reduce
from operator import xor

from crc32c import crc32c

from mirror_lib.records.header import (
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
from mirror_lib.records.ready import ReadyBatch

_ALL_BITS = 0xFFFF_FFFF
#: Tables process this number of zero bits at once, the remainder is processed directly.
_STEP_BITS = 13
_STEP = 1 << _STEP_BITS
_ZEROS = memoryview(bytes(_STEP))
#: Steps are counted in digits, with tables for each; most batches have one digit, which is below 254 kB.
_DIGIT_BITS = 5
_LARGEST_DIGIT = (1 << _DIGIT_BITS) - 1

#: The effect on each byte of a checksum, lowest byte first.
_Tables = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]


def change_of_checksum(difference: bytes, size: int) -> int:
    """The difference between two messages' checksums.

    Args:
        difference: of their beginnings, which have the same length: the exclusive or of the two.
        size: number of equal bytes that follow in both.

    Returns:
        The exclusive or of the two checksums.
    """
    # The library inverts checksums before and after, which would not be linear.
    change = crc32c(_ZEROS[: size & (_STEP - 1)], crc32c(difference, _ALL_BITS)) ^ _ALL_BITS
    steps, place = size >> _STEP_BITS, 0
    while steps:
        if digit := steps & _LARGEST_DIGIT:
            lowest, low, high, highest = _tables(digit, place)
            change = lowest[change & 255] ^ low[change >> 8 & 255] ^ high[change >> 16 & 255] ^ highest[change >> 24]
        steps >>= _DIGIT_BITS
        place += 1
    return int(change)


def _through_zeros(change: int, count: int) -> int:
    return int(crc32c(_ZEROS[:count], change ^ _ALL_BITS)) ^ _ALL_BITS


@cache
def _tables(digit: int, place: int) -> _Tables:
    """For `digit` times 32 to the power of `place` steps."""
    bits = [1 << bit for bit in range(32)]
    if digit == 1 and place == 0:
        bits = [_through_zeros(bit, _STEP) for bit in bits]
    else:
        one, before = (1, place), (digit - 1, place)
        if digit == 1:
            one, before = (1, place - 1), (_LARGEST_DIGIT, place - 1)
        bits = [_looked_up(_looked_up(bit, _tables(*before)), _tables(*one)) for bit in bits]
    lowest, low, high, highest = (_of_byte(bits[first : first + 8]) for first in range(0, 32, 8))
    return lowest, low, high, highest


def _looked_up(change: int, tables: _Tables) -> int:
    return reduce(xor, (table[change >> 8 * byte & 255] for byte, table in enumerate(tables)))


def _of_byte(bits: Sequence[int]) -> list[int]:
    """The result for each value of a byte, from the results for its bits."""
    table = [0]
    for bit in bits:
        table += [bit ^ lower for lower in table]
    return table


#: The replaced fields, from the checksum on: checksum, attributes, producer id, epoch and sequence.
_REPLACED = struct.Struct(">Ih20xqhi")
#: The part of a header that the checksum covers; zeros where nothing changes.
_DIFFERENCE = struct.Struct(">h20xqhi4x")
#: A header's beginning, up to its attributes.
_BEGINNING = struct.Struct(">qiibIh")


def stamp(batch: ReadyBatch, producer_id: int, epoch: int, base_sequence: int, *, in_transaction: bool = False) -> None:
    """Make the batch the next one of an idempotent producer (KIP-98), in place, from offset 0.

    The body is not read: the new checksum is computed from the old one and the header's changes. So the target detects
    any change of the body after the check of the source's checksum.

    Args:
        base_sequence: the first record's number among all of this producer for the partition, modulo 2**31.
        in_transaction: true if it belongs to the producer's open transaction.
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
