"""The five codecs of record batches, in the frames of Java clients.

Input is never trusted: a few bytes may claim, or expand to, gigabytes. No body expands beyond `BATCH_BODY_BYTES`,
whatever size it claims.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

import cramjam

from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records.compression.lz4_frames import decompress_single_block
from mirror_lib.records.header import Codec
from mirror_lib.records.oversized import beyond_memory, oversized_error

Bytes = bytes | memoryview
#: Java's default for Kafka is LZ4's fast compressor (`Lz4Compression`, KIP-390), which this level selects.
_LZ4_FAST = 1
_ZSTD_LEVEL = 3
_GZIP_FRAME = 31
#: Clients write one gzip member. The data after a member is copied for the next, so very many would take very long.
_MOST_MEMBERS = 64
#: A buffer that has held more is released, so that one huge batch does not keep its memory for good.
_KEPT_BUFFER = 16 * 1024 * 1024
#: Xerial's frame around snappy blocks: its magic, then version and oldest compatible version (`SnappyCodec` in Java).
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEAD_SIZE = 16
_XERIAL_HEADER = _XERIAL_MAGIC + 2 * (1).to_bytes(4, "big")
_XERIAL_BLOCK_BYTES = 32 * 1024
#: A snappy element of three bytes copies at most 64 bytes, and no other has a better ratio (`format_description.txt`).
_SNAPPY_MOST_RATIO = 22
_BLOCK_SIZE = struct.Struct(">i")


class CodecError(ValueError):
    """The compressed bytes cannot be decompressed."""


class _Larger(Exception):
    """The decompressed body exceeds its limit."""


def _gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_FRAME)
    return compressor.compress(data) + compressor.flush()


def _lz4(data: bytes) -> bytes:
    # Brokers reject linked blocks (KIP-57).
    compressor = cramjam.lz4.Compressor(level=_LZ4_FAST, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def gunzip(data: Bytes, piece: int) -> Iterator[bytes]:
    """As `gzip.decompress`, in pieces of at most `piece` bytes: one member or several, with trailing zeros.

    Raises:
        CodecError: while iterating, the data is not gzip.
    """
    rest: Bytes = data
    members = 0
    while rest or not members:
        if members == _MOST_MEMBERS:
            raise CodecError(f"it has more than {_MOST_MEMBERS} members")
        members += 1
        member = zlib.decompressobj(wbits=_GZIP_FRAME)
        try:
            while not member.eof:
                part = member.decompress(rest, piece)
                if not part and not member.eof and not member.unconsumed_tail:
                    raise CodecError("it ends too early")
                rest = member.unconsumed_tail
                if part:
                    yield part
        except zlib.error as error:
            raise CodecError(f"its gzip body cannot be read: {error}") from error
        rest = member.unused_data.lstrip(b"\0")


def _gunzip(data: Bytes, most: int) -> bytes:
    return _join(gunzip(data, most + 1), most)


def unsnap(data: Bytes, largest: int) -> Iterator[bytes]:
    """Blocks in Xerial's frame, as Java writes them, or one bare block.

    Args:
        largest: maximum size of a decompressed block in bytes.

    Raises:
        OversizedBatchError: while iterating, a block exceeds it.
        CodecError: while iterating, the data is not snappy.
    """
    try:
        yield from _unsnap_blocks(data, largest)
    except _Larger as error:
        raise beyond_memory(
            f"a block of a batch has {error} bytes when decompressed, more than the limit of {largest}."
        ) from None


def _unsnap_blocks(data: Bytes, largest: int) -> Iterator[bytes]:
    plain = bytes(data)
    if len(plain) < _XERIAL_HEAD_SIZE or not plain.startswith(_XERIAL_MAGIC):
        yield _snappy_block(plain, largest)
        return
    position = _XERIAL_HEAD_SIZE
    while position < len(plain):
        (size,) = _BLOCK_SIZE.unpack_from(plain, position)
        position += _BLOCK_SIZE.size
        if not 0 < size <= len(plain) - position:
            raise CodecError(f"a block claims to have {size} bytes")
        part = _snappy_block(plain[position : position + size], largest)
        position += size
        if part:
            yield part


def _unsnap(data: Bytes, most: int) -> bytes:
    return _join(_unsnap_blocks(data, most), most)


def _join(pieces: Iterator[bytes], most: int) -> bytes:
    parts: list[bytes] = []
    left = most
    for part in pieces:
        left -= len(part)
        if left < 0:
            raise _Larger
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_block(block: bytes, largest: int) -> bytes:
    # The library allocates the size that the block claims.
    try:
        claim = cramjam.snappy.decompress_raw_len(block)
        if claim > _SNAPPY_MOST_RATIO * len(block):
            raise CodecError(f"a block of {len(block)} bytes claims to have {claim} bytes when decompressed")
        if claim > largest:
            raise _Larger(claim)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise CodecError(f"its snappy body cannot be read: {error}") from error


class _Space(threading.local):
    """A buffer that each thread reuses. It is mapped, since its pages take no memory until written to."""

    def __init__(self) -> None:
        self._buffer: memoryview | None = None

    def decompress(self, into: Callable[[Bytes, memoryview], int], data: Bytes, most: int) -> bytes:
        """The output of a library in a buffer of `most` bytes; the library fails if the buffer is too small."""
        if self._buffer is None:
            try:
                # Private: processes that are forked later must not write into each other's.
                self._buffer = memoryview(mmap(-1, BATCH_BODY_BYTES, flags=MAP_PRIVATE | MAP_ANONYMOUS))
            except OSError as error:
                raise MemoryError(str(error)) from error
        filled = most
        try:
            filled = into(data, self._buffer[:most])
            return bytes(self._buffer[:filled])
        except cramjam.DecompressionError as error:
            if _FULL in str(error):
                raise _Larger from None
            if _NO_MEMORY in str(error).lower():
                raise MemoryError(str(error)) from error
            raise
        finally:
            if filled > _KEPT_BUFFER:
                self._buffer = None


_space = _Space()
#: The library's error if the buffer is full.
_FULL = "failed to write whole buffer"
#: The library's error if it cannot allocate its own memory.
_NO_MEMORY = "not enough memory"


def _lz4_decompress(data: Bytes, most: int) -> bytes:
    content = decompress_single_block(data)
    return _space.decompress(cramjam.lz4.decompress_into, data, most) if content is None else content


def _snappy(data: bytes) -> bytes:
    """Blocks of snappy in the frame of xerial's library, which Java's clients write."""
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(memoryview(data)[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    Codec.NONE: lambda data: data,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL)),
}
_DECOMPRESS: dict[int, Callable[[Bytes, int], bytes]] = {
    Codec.NONE: lambda data, _: bytes(data),
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnap,
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: lambda data, most: _space.decompress(cramjam.zstd.decompress_into, data, most),
}


def compress(codec: int, data: bytes) -> bytes:
    """Compress an encoded body as a Java producer would."""
    return _COMPRESS[codec](data)


def decompress(codec: int, data: Bytes) -> bytes:
    """The encoded body of a batch.

    Raises:
        OversizedBatchError: it exceeds `BATCH_BODY_BYTES`; no more than that was allocated.
        CodecError: the codec is unknown, or the data is damaged.
    """
    found = decompress_up_to(codec, data, BATCH_BODY_BYTES)
    if found is None:
        raise oversized_error(f"has more than {BATCH_BODY_BYTES} bytes when decompressed")
    return found


def decompress_up_to(codec: int, data: Bytes, most: int) -> bytes | None:
    """The encoded body of a batch; None if it exceeds `most` bytes, the maximum that is allocated.

    Raises:
        CodecError: the codec is unknown, or the data is damaged.
    """
    decoder = _DECOMPRESS.get(codec)
    if decoder is None:
        raise CodecError(f"unknown codec {codec}")
    try:
        return decoder(data, most)
    except _Larger:
        return None
    except (CodecError, MemoryError):
        # Missing memory is not damage: the same body can be decompressed with more.
        raise
    except Exception as error:  # The libraries share no exception type.
        raise CodecError(f"its {Codec(codec).name.lower()} body cannot be read: {error}") from error
