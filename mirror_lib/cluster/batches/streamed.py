"""Bodies of batches decompressed piece by piece: for those that are too large to be held as a whole.

numpy and Arrow are not for the copy task: nothing that it imports may import this.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from mirror_lib.cluster.batches.codecs import (
    LARGEST_BODY,
    Bytes,
    CodecError,
    gunzipped,
    unsnapped,
)
from mirror_lib.cluster.batches.header import Codec
from mirror_lib.cluster.batches.oversized import beyond_memory, oversized
from mirror_lib.cluster.batches.zstd_frames import zstd_windows

_ARROW_NAMES = {Codec.LZ4: "lz4", Codec.ZSTD: "zstd"}


def pieces(codec: int, data: Bytes, *, piece: int, largest: int) -> Iterator[bytes]:
    """A body in pieces; joined they are what `codecs.decompress` gives.

    Args:
        piece: bytes of one, but for blocks of snappy, which are decompressed as a whole.
        largest: bytes that a decoder may take for its own work, whatever a header asks for.

    Raises:
        OversizedBatchError: it becomes more than `LARGEST_BODY`, before the first piece; or its decoder needs more
            than `largest`.
        CodecError: the bytes are not what they should be.
    """
    for _ in _pieces(codec, data, piece, largest) if codec else ():
        # Nothing of a body is given that cannot be read as a whole.
        pass
    yield from _pieces(codec, data, piece, largest)


def _pieces(codec: int, data: Bytes, piece: int, largest: int) -> Iterator[bytes]:
    left = LARGEST_BODY
    try:
        for each in _decoder(codec, data, piece, largest):
            left -= len(each)
            if left < 0:
                raise oversized(f"becomes more than {LARGEST_BODY} bytes when it is decompressed")
            yield each
    except (pa.ArrowException, OSError) as error:
        raise CodecError(f"its {Codec(codec).name.lower()} body cannot be read: {error}") from error


def _decoder(codec: int, data: Bytes, piece: int, largest: int) -> Iterator[bytes]:
    match codec:
        case Codec.NONE:
            return (bytes(data[at : at + piece]) for at in range(0, len(data), piece))
        case Codec.GZIP:
            return gunzipped(data, piece)
        case Codec.SNAPPY:
            return unsnapped(data, largest)
        case Codec.LZ4 | Codec.ZSTD:
            if codec == Codec.ZSTD:
                _check_windows(data, largest)
            return _by_arrow(_ARROW_NAMES[Codec(codec)], data, piece)
    raise CodecError(f"codec {codec} does not exist")


def _by_arrow(name: str, data: Bytes, piece: int) -> Iterator[bytes]:
    with pa.CompressedInputStream(pa.BufferReader(pa.py_buffer(data)), name) as stream:
        while found := stream.read(piece):
            yield found


def _check_windows(data: Bytes, largest: int) -> None:
    """Refuse frames that have their decoder remember more than there is room for."""
    for window in zstd_windows(data):
        if window > largest:
            raise beyond_memory(f"a batch needs {window} bytes to be decompressed, and {largest} are given to it.")
