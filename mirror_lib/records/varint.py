"""Zigzag variable-length integers as in records (Protocol Buffers' `sint`; Java `ByteUtils.writeVarint`)."""

from __future__ import annotations

_CONTINUES = 0x80
_BITS = 0x7F
_LAST_SHIFT = 63
_BITS_64 = (1 << 64) - 1


def encode_varint(value: int) -> bytes:
    """Encode a 64-bit number; a larger one modulo 2**64, as differences of two are in Java."""
    left = (value << 1) ^ (value >> 63)
    if left < _CONTINUES:
        return bytes((left,))
    if left > _BITS_64:
        return encode_varint(as_long(value))
    out = bytearray()
    while left >= _CONTINUES:
        out.append((left & _BITS) | _CONTINUES)
        left >>= 7
    out.append(left)
    return bytes(out)


def decode_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
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
        if shift == _LAST_SHIFT:
            last = data[position]
            if last >= _CONTINUES:
                raise ValueError("a number in it has more than 10 bytes")
            # Of the tenth byte one bit is left; Java drops the others.
            result |= (last & 1) << shift
            return (result >> 1) ^ -(result & 1), position + 1


def as_long(value: int) -> int:
    """A number modulo 2**64 as a signed one: Java's `long`."""
    value &= _BITS_64
    return value - (1 << 64) if value >> 63 else value


#: Encodings of small numbers, nearly all numbers in records: looked up, not computed.
SMALL = tuple(encode_varint(number) for number in range(1 << 15))


def with_size(content: bytes) -> bytes:
    """Bytes after their length, as keys, values and headers are encoded in a record."""
    return encode_varint(len(content)) + content
