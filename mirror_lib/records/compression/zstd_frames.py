"""Window sizes of zstd frames (RFC 8878): the memory that a decoder needs in addition to its output."""

from __future__ import annotations

from collections.abc import Iterator

_MAGIC = 0xFD2FB528
_SKIPPABLE, _SKIPPABLE_BITS = 0x184D2A50, 0xFFFFFFF0
_WORD = 4
_SINGLE_SEGMENT, _CHECKSUM = 0x20, 0x04
_DICTIONARY_SIZES = (0, 1, 2, 4)
_CONTENT_SIZES = (0, 2, 4, 8)
_BLOCK_HEADER = 3
_RLE = 1


def zstd_windows(data: bytes | memoryview) -> Iterator[int]:
    """The window size of each frame in bytes; ends at invalid data, which the decoder reports."""
    plain, position, size = bytes(data), 0, len(data)
    while size - position > 2 * _WORD:
        magic = int.from_bytes(plain[position : position + _WORD], "little")
        if magic & _SKIPPABLE_BITS == _SKIPPABLE:
            position += 2 * _WORD + int.from_bytes(plain[position + _WORD : position + 2 * _WORD], "little")
            continue
        if magic != _MAGIC:
            return
        described = plain[position + _WORD]
        single = bool(described & _SINGLE_SEGMENT)
        position += _WORD + 1
        if not single:
            base = 1 << (10 + (plain[position] >> 3))
            yield base + (base >> 3) * (plain[position] & 7)
            position += 1
        position += _DICTIONARY_SIZES[described & 3]
        content_size = _CONTENT_SIZES[described >> 6] or (1 if single else 0)
        if single:
            # Its decoder keeps all of it.
            yield int.from_bytes(plain[position : position + content_size], "little")
        position += content_size
        position = _behind_blocks(plain, position) + (_WORD if described & _CHECKSUM else 0)


def _behind_blocks(data: bytes, position: int) -> int:
    while position + _BLOCK_HEADER <= len(data):
        header = int.from_bytes(data[position : position + _BLOCK_HEADER], "little")
        position += _BLOCK_HEADER + (1 if header >> 1 & 3 == _RLE else header >> 3)
        if header & 1:
            break
    return position
