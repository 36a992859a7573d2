"""Message sets of magic 0 and 1 (brokers before 0.11, or topics never rewritten since).

Parsed here: libraries trust the lengths inside, and loop endlessly at a negative one.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterator

from mirror_lib.outside_limits import BATCH_BODY_BYTES, BATCH_RECORDS
from mirror_lib.records.compression.codecs import CodecError, decompress_up_to
from mirror_lib.records.header import LOG_APPEND_TIME_BIT, LOG_OVERHEAD, Codec
from mirror_lib.records.oversized import oversized_error
from mirror_lib.records.records import Record, RecordError
from mirror_lib.records.varint import encode_varint

#: Offset, size, CRC, magic and attributes, which both old magics begin with.
_ENTRY = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_CHECKED_FROM = 16
_WITH_TIMESTAMPS = 1
_CODEC_BITS = 0x03
#: The codecs in the attributes of an old message; zstd was added later.
_ALL_CODEC_BITS = 0x07
_NO_TIMESTAMP = -1
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)


def last_offset(entry: memoryview) -> int:
    """The offset of a message, or of the last one inside a compressed message."""
    offset: int = _ENTRY.unpack_from(entry)[0]
    return offset


def codec(entry: memoryview) -> int:
    """The codec of a message set entry; the numbers are those of magic 2."""
    return Codec(_ENTRY.unpack_from(entry)[4] & _CODEC_BITS)


def read_legacy(entry: memoryview, magic: int, most_bytes: int = BATCH_BODY_BYTES) -> Iterator[Record]:
    """The records of one entry: a message, or all messages inside a compressed one.

    Inner offsets and the wrapper's log-append time follow Java's `AbstractLegacyRecordBatch`. Records of magic 0 have
    no timestamp: -1, as brokers give them when they convert.

    Raises:
        RecordError: checksum, codec or structure is wrong.
    """
    try:
        offset, size, crc, found_magic, attributes = _ENTRY.unpack_from(entry)
        if zlib.crc32(entry[_CHECKED_FROM:]) != crc:
            raise RecordError("its CRC does not match")
        if found_magic != magic or size != len(entry) - LOG_OVERHEAD:
            raise RecordError(f"its header is invalid (magic {found_magic}, {size} bytes)")
        timestamp, key, value = _message(entry, 0, len(entry), magic)
        kind = attributes & _ALL_CODEC_BITS
        if kind == Codec.NONE:
            yield Record(offset, timestamp, _tail(key, value))
            return
        if value is None or kind > Codec.LZ4 or (kind == Codec.LZ4 and magic < _WITH_TIMESTAMPS):
            # KAFKA-3160: LZ4 in magic 0 is in frames with a wrong checksum.
            name = Codec(kind).name if kind <= Codec.ZSTD else kind
            raise RecordError(f"messages compressed with {name} are not allowed in magic {magic}")
        appended = timestamp if magic and attributes & LOG_APPEND_TIME_BIT else None
        body = decompress_up_to(kind, value, most_bytes)
        if body is None:
            raise oversized_error(f"of an old format has more than {most_bytes} bytes when decompressed")
        # Only the last one is kept: each takes more memory than its bytes.
        (last,) = deque(_inner(body, magic), maxlen=1)
    except (struct.error, CodecError) as error:
        raise RecordError(f"its messages cannot be read: {error}") from error
    # Relative in magic 1, unless the wrapper's own offset shows that they are not.
    base = offset - last.offset if magic else _NO_BASE
    for record in _inner(body, magic):
        yield Record(
            record.offset + base if base >= 0 else record.offset,
            record.timestamp if appended is None else appended,
            record.tail,
        )


_NO_BASE = -1


def _inner(body: bytes | memoryview, magic: int) -> Iterator[Record]:
    """The messages inside a compressed one, with their stored offsets."""
    view, position = memoryview(body), 0
    if not body:
        raise RecordError("it contains no message")
    for _ in range(BATCH_RECORDS):
        offset, size, _crc, found_magic, attributes = _ENTRY.unpack_from(view, position)
        end = position + LOG_OVERHEAD + size
        if not position + _ENTRY.size <= end <= len(view):
            raise RecordError(f"an inner message claims to have {size} bytes")
        if found_magic != magic or attributes & _ALL_CODEC_BITS:
            raise RecordError(f"an inner message has magic {found_magic} and attributes {attributes}")
        timestamp, key, value = _message(view, position, end, magic)
        yield Record(offset, timestamp, _tail(key, value))
        position = end
        if position == len(view):
            return
    raise oversized_error(f"of an old format has more than {BATCH_RECORDS} messages")


def _message(view: memoryview, start: int, end: int, magic: int) -> tuple[int, bytes | None, bytes | None]:
    """Timestamp, key and value of the message in [start, end)."""
    position, timestamp = start + _ENTRY.size, _NO_TIMESTAMP
    if magic >= _WITH_TIMESTAMPS:
        (timestamp,) = _TIMESTAMP.unpack_from(view, position)
        position += _TIMESTAMP.size
    key, position = _nullable(view, position, end)
    value, position = _nullable(view, position, end)
    if position != end:
        raise RecordError(f"{end - position} bytes remain in a message")
    return timestamp, key, value


def _nullable(view: memoryview, position: int, end: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(view, position)
    position += _LENGTH.size
    if length == -1:
        return None, position
    if not 0 <= length <= end - position:
        raise RecordError(f"a key or value claims to have {length} bytes")
    return bytes(view[position : position + length]), position + length


def _tail(key: bytes | None, value: bytes | None) -> bytes:
    return _encode(key) + _encode(value) + _NO_HEADERS


def _encode(value: bytes | None) -> bytes:
    return _NULL if value is None else encode_varint(len(value)) + value
