"""Decompresses bodies of batches in pieces, for those that are too large to be held as a whole.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records.compression.codecs import Bytes, CodecError, gunzip, unsnap
from mirror_lib.records.compression.zstd_frames import zstd_windows
from mirror_lib.records.header import Codec
from mirror_lib.records.oversized import beyond_memory, oversized_error

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
