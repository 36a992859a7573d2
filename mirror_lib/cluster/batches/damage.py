"""How far a damaged batch reaches. Its own header may be what is damaged, so what follows it is asked first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crc32c import crc32c

from mirror_lib.cluster.batches.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    Codec,
    parse_header,
)

_CODECS = frozenset(Codec)


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that hold nothing readable, and the source offset behind them."""

    size: int
    next_offset: int
    #: The rest is None where the header cannot be trusted.
    records: int | None = None
    codec: Codec | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None


def measure_damage(data: memoryview, *, expected: int) -> Damage | None:
    """How far the unreadable batch at the beginning of `data` reaches; None when nothing says so for certain.

    Args:
        data: the rest of a fetch.
        expected: the first source offset that is missing.
    """
    if len(data) <= MAGIC_AT:
        return None
    if data[MAGIC_AT] < MAGIC and (old := _old(data, expected)) is not None:
        return old
    header = parse_header(data) if len(data) >= HEADER_SIZE else None
    if header is not None and _sound(data, 0, expected):
        found = damage_under_checksum(header)
        return found if header.base_offset >= expected else replace(found, records=None)
    own_size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    behind = _next_sound(data, own_size, expected + 1)
    if behind is not None:
        return Damage(behind, parse_header(data, behind).base_offset)
    if header is not None and own_size <= len(data) and _plausible(header, data[own_size:], expected):
        return Damage(own_size, header.base_offset + header.last_offset_delta + 1)
    return None


def known_codec(header: BatchHeader) -> Codec | None:
    """The codec that a header names, None where there is no such codec."""
    codec = header.attributes & CODEC_BITS
    return Codec(codec) if codec in _CODECS else None


def damage_under_checksum(header: BatchHeader) -> Damage:
    """A whole batch whose checksum is right, and with it the header: only the body is not what it should be."""
    return Damage(
        size=LOG_OVERHEAD + header.length,
        next_offset=header.base_offset + header.last_offset_delta + 1,
        records=header.count if header.count > 0 else None,
        codec=known_codec(header),
        first_timestamp=header.first_timestamp,
        max_timestamp=header.max_timestamp,
    )


def _sound(data: memoryview, position: int, first: int) -> bool:
    """Whether a complete batch with a right checksum stands there that reaches to offset `first` or beyond."""
    if len(data) - position < HEADER_SIZE or data[position + MAGIC_AT] != MAGIC:
        return False
    header = parse_header(data, position)
    end = position + LOG_OVERHEAD + header.length
    return (
        header.last_offset_delta >= 0
        and header.base_offset + header.last_offset_delta >= first
        and position + HEADER_SIZE <= end <= len(data)
        and crc32c(data[position + ATTRIBUTES_AT : end]) == header.crc
    )


def _next_sound(data: memoryview, own_size: int, first: int) -> int | None:
    """Where the next sound batch begins whose offsets are all behind the damage."""

    def follows(position: int) -> bool:
        return _sound(data, position, first) and parse_header(data, position).base_offset >= first

    if HEADER_SIZE <= own_size <= len(data) and follows(own_size):
        return own_size
    # The length may be what is damaged. Batches inside of records are no danger: their offsets are seldom so great.
    searched, magic = bytes(data), bytes((MAGIC,))
    at = searched.find(magic, MAGIC_AT + 1)
    while at >= 0:
        if follows(at - MAGIC_AT):
            return at - MAGIC_AT
        at = searched.find(magic, at + 1)
    return None


def _plausible(header: BatchHeader, behind: memoryview, expected: int) -> bool:
    """Whether the damaged header's number of offsets is confirmed by something else.

    By its number of records, or by the header of an incomplete batch behind it.
    """
    next_offset = header.base_offset + header.last_offset_delta + 1
    if header.magic != MAGIC or header.base_offset > expected or next_offset <= expected:
        return False
    if len(behind) >= HEADER_SIZE:
        following = parse_header(behind)
        return following.magic == MAGIC and following.base_offset == next_offset
    return header.count == header.last_offset_delta + 1


def _old(data: memoryview, expected: int) -> Damage | None:
    """An entry of an old message set: nothing covers its offset, so a greater one must not come before it ends."""
    size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    last = int.from_bytes(data[:8], "big", signed=True)
    if not LOG_OVERHEAD < size <= len(data) or last < expected:
        return None
    if _sound(data, size, last + 1):
        # It may be this magic that is damaged: then the offset is the batch's first, and not its last.
        return Damage(size, parse_header(data, size).base_offset)
    behind = data[size : size + 8]
    if len(behind) == 8 and int.from_bytes(behind, "big", signed=True) <= last:
        return None
    return Damage(size, last + 1)
