"""Fields of requests and responses of Kafka's protocol, in the plain and in the compact encoding (KIP-482).

For requests that no client library offers, or not for many items at once. Requests with records have their own code
(`fetch`, `produce`), since thousands of them are processed per second.
"""

from __future__ import annotations

import base64
import struct
from typing import Any

from mirror_lib.outside_limits import RESPONSE_ELEMENTS

_INT8, _INT16, _INT32, _INT64 = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
#: Masks for a byte of a varint: the continuation bit, and the others.
_MORE_BITS, _LOW_BITS = 0x80, 0x7F
#: Maximum length of an unsigned varint of the protocol: 32 bits.
_LONGEST_VARINT = 5

_SINGLE_BYTES = tuple(bytes((number,)) for number in range(_MORE_BITS))

#: In the compact encoding: no tagged fields, an empty array, no array at all.
NO_TAGS, EMPTY_ARRAY, NULL_ARRAY = b"\0", b"\1", b"\0"


#: Bytes of a topic's id on the wire.
TOPIC_ID_BYTES = 16
_PADDING = "=="


class FieldReader:
    """Reads the fields of a response one after the other.

    For malformed bytes it raises the exceptions that `malformed.answer_of` expects.
    """

    __slots__ = ("_at", "_flexible", "_left", "_view")

    def __init__(self, view: memoryview, *, flexible: bool, elements: int = RESPONSE_ELEMENTS) -> None:
        """Start at the first field.

        Args:
            flexible: true if the response has the compact encoding, with tagged fields.
            elements: limit for the elements of all arrays.
        """
        self._view = view
        self._at = 0
        self._flexible = flexible
        self._left = elements

    @property
    def position(self) -> int:
        """The position of the next field."""
        return self._at

    def skip(self, size: int) -> None:
        """Skip some bytes."""
        self._at += size

    def int8(self) -> int:
        """A one-byte number."""
        return self._number(_INT8)

    def int16(self) -> int:
        """A two-byte number."""
        return self._number(_INT16)

    def int32(self) -> int:
        """A four-byte number."""
        return self._number(_INT32)

    def int64(self) -> int:
        """An eight-byte number."""
        return self._number(_INT64)

    def numbers(self, kind: struct.Struct) -> tuple[Any, ...]:
        """Several consecutive numbers."""
        found = kind.unpack_from(self._view, self._at)
        self._at += kind.size
        return found

    def count(self) -> int:
        """The length of an array; 0 for a null array.

        Raises:
            ValueError: the arrays have too many elements together.
        """
        found = max(self._varint() - 1 if self._flexible else self.int32(), 0)
        self._left = left_of(self._left, found)
        return found

    def string(self) -> str:
        """A string; "" for a null string.

        Raises:
            ValueError: it extends beyond the end, or is not valid UTF-8.
        """
        length = self._varint() - 1 if self._flexible else self.int16()
        if length <= 0:
            return ""
        end = self._at + length
        if end > len(self._view):
            raise ValueError(f"a text of {length} bytes does not fit it")
        text = str(self._view[self._at : end], "utf-8")
        self._at = end
        return text

    def raw(self) -> bytes:
        """Bytes in the plain encoding; empty for null.

        Raises:
            ValueError: they extend beyond the end.
        """
        length = max(self.int32(), 0)
        found = bytes(self._view[self._at : self._at + length])
        if len(found) < length:
            raise ValueError(f"{length} bytes do not fit it")
        self._at += length
        return found

    def topic_id(self) -> bytes:
        """A topic's id.

        Raises:
            ValueError: the bytes end inside it.
        """
        found = bytes(self._view[self._at : self._at + TOPIC_ID_BYTES])
        if len(found) < TOPIC_ID_BYTES:
            raise ValueError("a topic id does not fit it")
        self._at += TOPIC_ID_BYTES
        return found

    def skip_tags(self) -> None:
        """Skip tagged fields; none are known here."""
        if self._flexible:
            self._at = skip_tags(self._view, self._at)

    def _varint(self) -> int:
        value, self._at = read_varint(self._view, self._at)
        return value

    def _number(self, kind: struct.Struct) -> int:
        return int(self.numbers(kind)[0])


def left_of(left: int, elements: int) -> int:
    """The remaining limit of array elements, after an array with this number of elements.

    Raises:
        ValueError: it has more elements than are left.
    """
    left -= 1 + elements
    if left < 0:
        raise ValueError("its arrays have more elements than are allowed (docs/security.md)")
    return left


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint and the position after it.

    Raises:
        IndexError: the bytes end inside the number.
        ValueError: it has more bytes than a 32-bit number can have.
    """
    value = view[position]
    if value < _MORE_BITS:
        return value, position + 1
    value &= _LOW_BITS
    for place in range(1, _LONGEST_VARINT):
        byte = view[position + place]
        value |= (byte & _LOW_BITS) << 7 * place
        if byte < _MORE_BITS:
            return value, position + place + 1
    raise ValueError(f"a number has more than {_LONGEST_VARINT} bytes")


def skip_tags(view: memoryview, position: int) -> int:
    """The position after tagged fields."""
    if view[position] == 0:
        return position + 1
    count, position = read_varint(view, position)
    for _ in range(count):
        _tag, position = read_varint(view, position)
        size, position = read_varint(view, position)
        position += size
    return position


def encode_varint(number: int) -> bytes:
    """A number as an unsigned varint."""
    if number < _MORE_BITS:
        return _SINGLE_BYTES[number]
    encoded = bytearray()
    while number >= _MORE_BITS:
        encoded.append(number & _LOW_BITS | _MORE_BITS)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def encode_compact(text: str) -> bytes:
    """A text in the compact encoding."""
    raw = text.encode()
    return encode_varint(len(raw) + 1) + raw


def encode_string(text: str) -> bytes:
    """A text in the plain encoding."""
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def encode_topic_id(topic_id: str) -> bytes:
    """The bytes of a topic's id in the form of Java's `Uuid`."""
    return base64.urlsafe_b64decode(topic_id + _PADDING)


def decode_topic_id(raw: bytes) -> str:
    """A topic's id in the form of Java's `Uuid`."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
