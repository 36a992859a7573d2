"""Decompresses bodies of batches in pieces, for those that are too large to be held as a whole.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records import Codec, beyond_memory, oversized_error
from mirror_lib.records.compression import (
    Bytes,
    CodecError,
    gunzip,
    unsnap,
)

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


_ARROW_NAMES = {Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}


def pieces(codec: int, data: Bytes, *, piece: int, largest: int) -> Iterator[bytes]:
    """A body in pieces; joined they equal the result of `codecs.decompress`.

    Args:
        piece: maximum bytes of one, except for blocks of snappy, which are decompressed as a whole.
        largest: maximum bytes that a decoder may allocate for itself, regardless of the header.

    Raises:
        OversizedBatchError: it exceeds `BATCH_BODY_BYTES`, before the first piece; or its decoder needs more than
            `largest`.
        CodecError: the data is damaged.
    """
    for _ in _pieces(codec, data, piece, largest) if codec else ():
        # No piece of a body is yielded unless the whole body can be decompressed.
        pass
    yield from _pieces(codec, data, piece, largest)


def _pieces(codec: int, data: Bytes, piece: int, largest: int) -> Iterator[bytes]:
    left = BATCH_BODY_BYTES
    try:
        for each in _decoder(codec, data, piece, largest):
            left -= len(each)
            if left < 0:
                raise oversized_error(f"has more than {BATCH_BODY_BYTES} bytes when decompressed")
            yield each
    except (pa.ArrowException, OSError) as error:
        raise CodecError(f"its {Codec(codec).name.lower()} body cannot be read: {error}") from error


def _decoder(codec: int, data: Bytes, piece: int, largest: int) -> Iterator[bytes]:
    match codec:
        case Codec.NONE:
            return (bytes(data[at : at + piece]) for at in range(0, len(data), piece))
        case Codec.GZIP:
            return gunzip(data, piece)
        case Codec.SNAPPY:
            return unsnap(data, largest)
        case Codec.LZ4 | Codec.ZSTD:
            if codec == Codec.ZSTD:
                _check_windows(data, largest)
            return _by_arrow(_ARROW_NAMES[Codec(codec)], data, piece)
    raise CodecError(f"unknown codec {codec}")


def _by_arrow(name: str, data: Bytes, piece: int) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), name) as stream:
        while found := stream.read(piece):
            yield found


def _check_windows(data: Bytes, largest: int) -> None:
    """Raise for frames whose decoder needs more memory than allowed."""
    for window in zstd_windows(data):
        if window > largest:
            raise beyond_memory(f"a batch needs {window} bytes for decompression, more than the limit of {largest}.")
