"""Schema frames of records, as Confluent's serializers write them: read as bytes, and written.

Three forms are in use (Java `io.confluent.kafka.serializers.schema.id.SchemaId`):

    00 | id, 4 bytes big-endian | message indexes, Protobuf only | payload      in the key or value itself
    01 | GUID, 16 bytes         | message indexes, Protobuf only | payload      likewise
    00 ... or 01 ... without a payload, in the record header `__key_schema_id` or `__value_schema_id`

An id is valid in one registry (and context) only; a GUID is a digest of the schema itself and is the same in all of
them. A deserializer checks the header first (`DualSchemaIdDeserializer`).

Only the first byte marks a frame. Bytes that certainly are no frame return None here; other bytes that begin with 00,
such as a serialized number, look like a frame. Ids below 1 are invalid: no registry assigns them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple
from uuid import UUID

#: The first byte of a frame with an id, and of one with a GUID.
MAGIC_ID, MAGIC_GUID = 0, 1
#: Length of a frame before message indexes and payload.
ID_FRAME_BYTES, GUID_FRAME_BYTES = 5, 17
KEY_SCHEMA_HEADER, VALUE_SCHEMA_HEADER = "__key_schema_id", "__value_schema_id"
LARGEST_ID = 2**31 - 1

_ID = struct.Struct(">Bi")
#: Java's varints have 32 bits; no real message type is nested deeper than this.
_LONGEST_VARINT, _MOST_INDEXES = 5, 1000
#: The message indexes that a single 00 encodes.
_FIRST_MESSAGE = (0,)


class Place(Enum):
    """The place of a record's frame."""

    #: Before the payload.
    PREFIX = "prefix"
    #: In a record header; key or value is the payload alone.
    HEADER = "header"


class Frame(NamedTuple):
    """The schema reference of a key or value."""

    #: An id of the producer's registry, or the GUID.
    schema: int | UUID
    place: Place
    #: The offset of the message indexes (Protobuf) or of the payload in the frame's bytes.
    length: int


class ProtobufFrame(NamedTuple):
    """A frame before a Protobuf message."""

    schema: int | UUID
    #: Path to the message type in the schema's file: the index of the outermost one, then of the one nested in it, ...
    message_indexes: tuple[int, ...]
    #: The offset of the message.
    length: int


def schema_id(value: bytes | None) -> int | None:
    """The schema id in front of a key or value, or in a header's value; None if there is none."""
    if value is None or len(value) < ID_FRAME_BYTES:
        return None
    magic, found = _ID.unpack_from(value)
    return found if magic == MAGIC_ID and found > 0 else None


def schema_guid(value: bytes | None) -> UUID | None:
    """The schema's GUID in front of a key or value, or in a header's value; None if there is none."""
    if value is None or len(value) < GUID_FRAME_BYTES or value[0] != MAGIC_GUID:
        return None
    return UUID(bytes=bytes(value[1:GUID_FRAME_BYTES]))


def checked_id(number: int) -> int:
    """Return a number that is a valid schema id.

    Raises:
        ValueError: it is not valid.
    """
    if not 1 <= number <= LARGEST_ID:
        raise ValueError(f"{number} is not a schema id: valid ids are 1 to {LARGEST_ID}")
    return number


def find_frame(
    value: bytes | None, headers: Iterable[tuple[str, bytes | None]] = (), *, key: bool = False
) -> Frame | None:
    """The frame of a record's key or value, in either place; None if there is none.

    Args:
        value: the key or value.
        headers: of the record; the last one of a name counts, as in Java.
        key: true if the value is the record's key.

    Returns:
        None also for a header that cannot be read: a deserializer would not look for another frame either.
    """
    name = KEY_SCHEMA_HEADER if key else VALUE_SCHEMA_HEADER
    header = None
    for each, content in headers:
        if each == name:
            header = content
    if header is not None:
        return _frame(header, Place.HEADER)
    return _frame(value, Place.PREFIX)


def _frame(content: bytes | None, place: Place) -> Frame | None:
    if (number := schema_id(content)) is not None:
        return Frame(number, place, ID_FRAME_BYTES)
    if (guid := schema_guid(content)) is not None:
        return Frame(guid, place, GUID_FRAME_BYTES)
    return None


def protobuf_frame(content: bytes | None) -> ProtobufFrame | None:
    """The frame before a Protobuf message, or in a header's value; None if there is none.

    Only the schema shows if bytes are Protobuf: message indexes that cannot be read mean no frame.
    """
    frame = _frame(content, Place.PREFIX)
    if frame is None or content is None:
        return None
    read = _message_indexes(content, frame.length)
    return None if read is None else ProtobufFrame(frame.schema, *read)


def frame_bytes(schema: int | UUID, message_indexes: Sequence[int] | None = None) -> bytes:
    """Build a frame for a payload or a header.

    Args:
        schema: an id, or a GUID.
        message_indexes: for Protobuf: which message type of the schema's file.

    Raises:
        ValueError: the id is not valid, or the indexes name no message type.
    """
    indexes = b"" if message_indexes is None else _encoded_indexes(tuple(message_indexes))
    if isinstance(schema, UUID):
        return bytes((MAGIC_GUID,)) + schema.bytes + indexes
    return _ID.pack(MAGIC_ID, checked_id(schema)) + indexes


def _encoded_indexes(indexes: tuple[int, ...]) -> bytes:
    if not indexes or len(indexes) > _MOST_INDEXES or min(indexes) < 0 or max(indexes) > LARGEST_ID:
        raise ValueError(f"{list(indexes)} is not a message type of the Protobuf schema")
    if indexes == _FIRST_MESSAGE:
        return b"\0"
    return b"".join(_zigzag_varint(number) for number in (len(indexes), *indexes))


def _message_indexes(content: bytes, position: int) -> tuple[tuple[int, ...], int] | None:
    """Message indexes and the offset after them."""
    try:
        count, position = _read_zigzag_varint(content, position)
        if not 0 <= count <= _MOST_INDEXES:
            return None
        found = []
        for _ in range(count):
            index, position = _read_zigzag_varint(content, position)
            found.append(index)
    except (IndexError, ValueError):
        return None
    if any(index < 0 for index in found):
        return None
    return tuple(found) or _FIRST_MESSAGE, position


def _zigzag_varint(number: int) -> bytes:
    """A non-negative number as Kafka's `ByteUtils.writeVarint` writes it."""
    left = number << 1
    encoded = bytearray()
    while left >= 0x80:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def _read_zigzag_varint(content: bytes, position: int) -> tuple[int, int]:
    """A number (Kafka's `ByteUtils.readVarint`) and the offset after it.

    Raises:
        IndexError: the bytes end inside it.
        ValueError: it has more bytes than a 32-bit number can have.
    """
    value = 0
    for place in range(_LONGEST_VARINT):
        byte = content[position + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position + place + 1
    raise ValueError(f"a number has more than {_LONGEST_VARINT} bytes")
