"""Measures the extent of a damaged batch. Its own header may be damaged, so the data after it is checked first."""

from __future__ import annotations

from dataclasses import dataclass, replace

from crc32c import crc32c

from mirror_lib.records.header import (
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
    """Unreadable bytes, and the source offset after them."""

    size: int
    next_offset: int
    #: The remaining fields are None if the header cannot be trusted.
    records: int | None = None
    codec: Codec | None = None
    first_timestamp: int | None = None
    max_timestamp: int | None = None


def measure_damage(data: memoryview, *, expected: int) -> Damage | None:
    """The extent of the unreadable batch at the start of `data`; None if it cannot be determined with certainty.

    Args:
        data: the rest of a fetch.
        expected: the first missing source offset.
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
    """The codec in a header; None for an unknown one."""
    codec = header.attributes & CODEC_BITS
    return Codec(codec) if codec in _CODECS else None


def damage_under_checksum(header: BatchHeader) -> Damage:
    """A whole batch with a valid checksum, and thus a valid header: only the body is damaged."""
    return Damage(
        size=LOG_OVERHEAD + header.length,
        next_offset=header.base_offset + header.last_offset_delta + 1,
        records=header.count if header.count > 0 else None,
        codec=known_codec(header),
        first_timestamp=header.first_timestamp,
        max_timestamp=header.max_timestamp,
    )


def _sound(data: memoryview, position: int, first: int) -> bool:
    """True if a complete batch with a valid checksum starts there that reaches at least to offset `first`."""
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
    """The start of the next valid batch whose offsets are all after the damage."""

    def follows(position: int) -> bool:
        return _sound(data, position, first) and parse_header(data, position).base_offset >= first

    if HEADER_SIZE <= own_size <= len(data) and follows(own_size):
        return own_size
    # The length may be damaged. Batches inside of records do not matter: their offsets are rarely that great.
    searched, magic = bytes(data), bytes((MAGIC,))
    at = searched.find(magic, MAGIC_AT + 1)
    while at >= 0:
        if follows(at - MAGIC_AT):
            return at - MAGIC_AT
        at = searched.find(magic, at + 1)
    return None


def _plausible(header: BatchHeader, behind: memoryview, expected: int) -> bool:
    """True if the number of offsets in the damaged header is confirmed.

    It is confirmed by the number of records, or by the header of an incomplete batch after it.
    """
    next_offset = header.base_offset + header.last_offset_delta + 1
    if header.magic != MAGIC or header.base_offset > expected or next_offset <= expected:
        return False
    if len(behind) >= HEADER_SIZE:
        following = parse_header(behind)
        return following.magic == MAGIC and following.base_offset == next_offset
    return header.count == header.last_offset_delta + 1


def _old(data: memoryview, expected: int) -> Damage | None:
    """An entry of an old message set: nothing protects its offset, so no greater one may precede its end."""
    size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    last = int.from_bytes(data[:8], "big", signed=True)
    if not LOG_OVERHEAD < size <= len(data) or last < expected:
        return None
    if _sound(data, size, last + 1):
        # The magic may be the damaged byte: then the offset is the batch's first, and not its last.
        return Damage(size, parse_header(data, size).base_offset)
    behind = data[size : size + 8]
    if len(behind) == 8 and int.from_bytes(behind, "big", signed=True) <= last:
        return None
    return Damage(size, last + 1)
