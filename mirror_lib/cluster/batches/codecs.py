"""The five codecs of record batches, in the frames that Java clients write and read.

What is read is never trusted: a few bytes may claim, or become, gigabytes. No body becomes larger than `LARGEST_BODY`,
whatever it says of itself.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

import cramjam
from aiokafka.codec import snappy_encode

from mirror_lib.cluster.batches.header import Codec
from mirror_lib.cluster.batches.lz4_frames import decompress_single_block
from mirror_lib.cluster.batches.oversized import oversized
from mirror_lib.errors import OversizedBatchError

_Bytes = bytes | memoryview
#: Java's default for Kafka is LZ4's fast compressor (`Lz4Compression`, KIP-390), which this level selects.
_LZ4_FAST = 1
_ZSTD_LEVEL = 3
_GZIP_FRAME = 31
#: Clients write one gzip member. What lies behind a member is copied for the next, so that very many take very long.
_MOST_MEMBERS = 64
#: Bytes that a decompressed body may have. Brokers bound what is sent (`socket.request.max.bytes`, 100 MiB), not what
#: it becomes: a larger one is not damaged, but nobody should need to look into it.
LARGEST_BODY = 128 * 1024 * 1024
#: A buffer that has held more is given back, so that one huge batch does not keep its memory for good.
_KEPT_BUFFER = 16 * 1024 * 1024
#: Xerial's frame around snappy blocks: its magic, then version and oldest compatible version (`SnappyCodec` in Java).
_XERIAL_MAGIC = b"\x82SNAPPY\0"
_XERIAL_HEAD_SIZE = 16
#: A snappy element of three bytes copies 64 bytes at most, and no other element does better (`format_description.txt`).
_SNAPPY_MOST_RATIO = 22
_BLOCK_SIZE = struct.Struct(">i")


class CodecError(ValueError):
    """The compressed bytes cannot be read."""


def _too_large() -> OversizedBatchError:
    return oversized(f"becomes more than {LARGEST_BODY} bytes when it is decompressed")


def _gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_FRAME)
    return compressor.compress(data) + compressor.flush()


def _lz4(data: bytes) -> bytes:
    # Brokers refuse linked blocks (KIP-57).
    compressor = cramjam.lz4.Compressor(level=_LZ4_FAST, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _gunzip(data: _Bytes) -> bytes:
    """As `gzip.decompress`: one member or several, with zeros behind them."""
    rest: _Bytes = data
    parts: list[bytes] = []
    left = LARGEST_BODY
    while rest or not parts:
        if len(parts) == _MOST_MEMBERS:
            raise CodecError(f"it has more than {_MOST_MEMBERS} members")
        member = zlib.decompressobj(wbits=_GZIP_FRAME)
        part = member.decompress(rest, left + 1)
        if len(part) > left:
            raise _too_large()
        if not member.eof:
            raise CodecError("it ends too early")
        parts.append(part)
        left -= len(part)
        rest = member.unused_data.lstrip(b"\0")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unsnap(data: _Bytes) -> bytes:
    """Blocks in Xerial's frame, as Java writes them, or one bare block."""
    plain = bytes(data)
    if len(plain) < _XERIAL_HEAD_SIZE or not plain.startswith(_XERIAL_MAGIC):
        return _snappy_block(plain, LARGEST_BODY)
    parts: list[bytes] = []
    position, left = _XERIAL_HEAD_SIZE, LARGEST_BODY
    while position < len(plain):
        (size,) = _BLOCK_SIZE.unpack_from(plain, position)
        position += _BLOCK_SIZE.size
        if not 0 < size <= len(plain) - position:
            raise CodecError(f"a block claims to have {size} bytes")
        part = _snappy_block(plain[position : position + size], left)
        position += size
        left -= len(part)
        if part:
            parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _snappy_block(block: bytes, largest: int) -> bytes:
    # The library allocates what the block says that it becomes.
    claim = cramjam.snappy.decompress_raw_len(block)
    if claim > _SNAPPY_MOST_RATIO * len(block):
        raise CodecError(f"a block of {len(block)} bytes claims to become {claim}")
    if claim > largest:
        raise _too_large()
    return bytes(cramjam.snappy.decompress_raw(block))


class _Space(threading.local):
    """A buffer that each thread uses again and again. A mapping, since its pages take no memory until written to."""

    def __init__(self) -> None:
        self._buffer: memoryview | None = None

    def decompressed(self, into: Callable[[_Bytes, memoryview], int], data: _Bytes) -> bytes:
        """What a library writes into a buffer of the largest size; it fails where the buffer is too small."""
        if self._buffer is None:
            try:
                # Private: processes that are forked later must not write into each other's.
                self._buffer = memoryview(mmap(-1, LARGEST_BODY, flags=MAP_PRIVATE | MAP_ANONYMOUS))
            except OSError as error:
                raise MemoryError(str(error)) from error
        filled = LARGEST_BODY
        try:
            filled = into(data, self._buffer)
            return bytes(self._buffer[:filled])
        except cramjam.DecompressionError as error:
            if _FULL in str(error):
                raise _too_large() from None
            if _NO_MEMORY in str(error).lower():
                raise MemoryError(str(error)) from error
            raise
        finally:
            if filled > _KEPT_BUFFER:
                self._buffer = None


_space = _Space()
#: What the library says when there is no room for more.
_FULL = "failed to write whole buffer"
#: And when it got no memory for its own work.
_NO_MEMORY = "not enough memory"


def _lz4_decompress(data: _Bytes) -> bytes:
    content = decompress_single_block(data)
    return _space.decompressed(cramjam.lz4.decompress_into, data) if content is None else content


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    Codec.NONE: lambda data: data,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: snappy_encode,
    Codec.LZ4: _lz4,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL)),
}
_DECOMPRESS: dict[int, Callable[[_Bytes], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnap,
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: lambda data: _space.decompressed(cramjam.zstd.decompress_into, data),
}


def compress(codec: int, data: bytes) -> bytes:
    """Compress an encoded body as a Java producer would."""
    return _COMPRESS[codec](data)


def decompress(codec: int, data: _Bytes) -> bytes:
    """The encoded body of a batch.

    Raises:
        OversizedBatchError: it becomes more than `LARGEST_BODY`; no more than that was taken of memory.
        CodecError: unknown codec, or bytes that are not what they should be.
    """
    decoder = _DECOMPRESS.get(codec)
    if decoder is None:
        raise CodecError(f"codec {codec} does not exist")
    try:
        return decoder(data)
    except (OversizedBatchError, MemoryError):
        # Want of memory is no damage: the same body can be read where there is more.
        raise
    except Exception as error:  # The libraries share no exception type.
        raise CodecError(f"its {Codec(codec).name.lower()} body cannot be read: {error}") from error
