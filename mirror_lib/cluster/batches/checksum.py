"""The CRC-32C of a batch whose header changes and whose body stays, without reading the body again.

CRCs are linear: two messages of one length that differ in their beginnings have checksums that differ by what the
difference of the beginnings comes to with as many zeros behind it as the rest has bytes. So whoever has checked a batch
once knows its checksum under any header. And the checksum that is sent then goes back to the one of the source:
whatever happens to the body in between is found by the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from operator import xor

from crc32c import crc32c

_ALL_BITS = 0xFFFF_FFFF
#: So many zeros at once are gone through by tables, what is left of them really.
_STEP_BITS = 13
_STEP = 1 << _STEP_BITS
_ZEROS = memoryview(bytes(_STEP))
#: Steps are counted in digits, with tables for each; most batches have one digit, which is below 254 kB.
_DIGIT_BITS = 5
_LARGEST_DIGIT = (1 << _DIGIT_BITS) - 1

#: What becomes of each byte of a checksum, the lowest first.
_Tables = tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]


def change_of_checksum(difference: bytes, size: int) -> int:
    """By what two messages' checksums differ.

    Args:
        difference: of their beginnings, which are of one length: the exclusive or of the two.
        size: bytes that follow in both of them, the same.

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
    """What becomes of each value of a byte, by what becomes of its bits."""
    table = [0]
    for bit in bits:
        table += [bit ^ lower for lower in table]
    return table
