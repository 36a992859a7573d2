"""Damages valid input: bits, lengths, splices, ends, and numbers at their extremes. The same seed gives the same
damage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

#: Numbers that often cause errors.
EXTREMES = (
    *(0, 1, -1, 2, -2, 0x7F, 0x80, 0xFF, 0x7FFF, -0x8000, 0xFFFF, 0x10000, 0xFFFFFF),
    *(0x7FFFFFFF, -0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, -0x8000000000000000),
)
#: Variable-length numbers: the largest of 32 and 64 bits, one that never ends, one with needless length.
_VARINTS = (b"\xff\xff\xff\xff\x0f", b"\xff" * 9 + b"\x01", b"\xff" * 9 + b"\x7f", b"\x80" * 12, b"\x80\x80\x00")
_WORDS = (b"\0", b"\n", b"\r\n", b"\\", b"\\u", b"\\uD800", b'"', b"'", b"=", b";", b"${", b"}", b"[", b"{" * 50, b"%")
_MORE_WORDS = (b"null", b"true", b"NaN", b"1e999", b"-1", b"9" * 30, b"\xff\xfe", b"\xed\xa0\x80", b"..", b"/", b" ")
WORDS = _WORDS + _MORE_WORDS
_LARGEST = 1 << 20


def mutated(data: bytes, random: Random, others: Sequence[bytes] = ()) -> bytes:
    """Return the input with one to six damages.

    Args:
        others: valid inputs for splices.
    """
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        random.choice(_DAMAGES)(out, random, others)
    return bytes(out[:_LARGEST])


def _place(out: bytearray, random: Random) -> int:
    # Headers matter most: half of all damage is in the first hundred bytes.
    return random.randrange(min(len(out), 100) if random.random() < 0.5 else len(out)) if out else 0


def _flip_bit(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    if out:
        out[_place(out, random)] ^= 1 << random.randrange(8)


def _set_byte(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    if out:
        out[_place(out, random)] = random.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, random.randrange(256)))


def _set_number(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    """Set a wrong length, count or offset."""
    width = random.choice((1, 2, 4, 8))
    at = _place(out, random)
    number = random.choice((*EXTREMES, len(out), len(out) - at, len(out) + 1, random.getrandbits(32)))
    order = random.choice(("big", "big", "little"))
    raw = (number % (1 << 8 * width)).to_bytes(width, "little" if order == "little" else "big")
    out[at : at + width] = raw


def _nudge_number(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = _place(out, random)
    old = int.from_bytes(out[at : at + 4], "big")
    out[at : at + 4] = ((old + random.choice((-1, 1, -16, 16))) % (1 << 32)).to_bytes(4, "big")


def _insert_varint(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = _place(out, random)
    out[at : at + random.choice((0, 1, 5))] = random.choice(_VARINTS)


def _insert_word(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = _place(out, random)
    out[at : at + random.choice((0, 0, 1, 4))] = random.choice(WORDS)


def _truncate(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    if out:
        del out[_place(out, random) :]


def _remove(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = _place(out, random)
    del out[at : at + random.choice((1, 2, 4, 8, 64))]


def _repeat(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at = _place(out, random)
    piece = bytes(out[at : at + random.choice((1, 4, 16, 64, 256))])
    out[at:at] = piece * random.choice((1, 1, 2, 10, 200))


def _splice(out: bytearray, random: Random, others: Sequence[bytes]) -> None:
    other = random.choice(others) if others else bytes(out)
    if other:
        start = random.randrange(len(other))
        at = _place(out, random)
        out[at : at + random.choice((0, 16, len(out)))] = other[start : start + random.choice((4, 64, len(other)))]


def _noise(out: bytearray, random: Random, _others: Sequence[bytes]) -> None:
    at, size = _place(out, random), random.choice((1, 4, 32))
    out[at : at + size] = random.randbytes(size)


_DAMAGES: tuple[Callable[[bytearray, Random, Sequence[bytes]], None], ...] = (
    *(_flip_bit, _flip_bit, _set_byte, _set_number, _set_number, _nudge_number),
    *(_insert_varint, _insert_word, _truncate, _remove, _repeat, _splice, _noise),
)
