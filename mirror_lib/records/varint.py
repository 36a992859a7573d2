"""Zigzag variable-length integers as in records (Protocol Buffers' `sint`; Java `ByteUtils.writeVarint`)."""

from __future__ import annotations

_CONTINUES = 0x80
_BITS = 0x7F
_LONGEST = 10


def encode_varint(value: int) -> bytes:
    """Encode a 64-bit number."""
    left = (value << 1) ^ (value >> 63)
    if left < _CONTINUES:
        return bytes((left,))
    out = bytearray()
    while left >= _CONTINUES:
        out.append((left & _BITS) | _CONTINUES)
        left >>= 7
    out.append(left)
    return bytes(out)


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """The number at `position` and the position after it.

    Raises:
        IndexError: the bytes end inside the number.
        ValueError: more bytes than a 64-bit number can have.
    """
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & _BITS) << shift
        if byte < _CONTINUES:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
        if shift >= 7 * _LONGEST:
            raise ValueError("a number in it has more than 10 bytes")


#: Encodings of small numbers, nearly all numbers in records: looked up, not computed.
SMALL = tuple(encode_varint(number) for number in range(1 << 15))


def with_size(content: bytes) -> bytes:
    """Bytes after their length, as keys, values and headers are encoded in a record."""
    return encode_varint(len(content)) + content
