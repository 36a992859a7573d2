"""The five codecs of record batches, in the frames of Java clients.

Input is never trusted: a few bytes may claim, or expand to, gigabytes. No body expands beyond `BATCH_BODY_BYTES`,
whatever size it claims, and a large one is held once.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap

import cramjam

from mirror_lib.errors import OversizedBatchError
from mirror_lib.outside_limits import BATCH_BODY_BYTES, WIDE_WINDOW_BODY_BYTES
from mirror_lib.records.compression.lz4_frames import decompress_single_block
from mirror_lib.records.compression.zstd_frames import zstd_windows
from mirror_lib.records.header import Codec
from mirror_lib.records.oversized import beyond_memory, oversized_error

Bytes = bytes | memoryview
#: Java's default for Kafka is LZ4's fast compressor (`Lz4Compression`, KIP-390), which this level selects.
_LZ4_FAST = 1
_ZSTD_LEVEL = 3
#: Bytes that a compressor gets at a time.
_STREAMED_BYTES = 1024 * 1024
_GZIP_FRAME = 31
#: Clients write one gzip member. The data after a member is copied for the next, so very many would take very long.
_MOST_MEMBERS = 64
#: Larger bodies stay in the buffer that they were decompressed into, and the buffer is released with them.
_KEPT_BUFFER = 16 * 1024 * 1024
#: Bytes of gzip that are given to the decoder, and that it may return, at a time: it returns the rest as a copy.
_GZIP_INPUT = 256 * 1024
_GZIP_OUTPUT = 1024 * 1024
#: zstd's decoder keeps a window of up to 128 MiB in addition to its output; levels up to 19 have windows of 8 MiB.
_USUAL_WINDOW = 8 * 1024 * 1024
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


def _gzip(parts: Sequence[Bytes]) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_FRAME)
    return b"".join([*map(compressor.compress, parts), compressor.flush()])


def _lz4(parts: Sequence[Bytes]) -> bytes:
    # Brokers reject linked blocks (KIP-57).
    compressor = cramjam.lz4.Compressor(level=_LZ4_FAST, content_checksum=False, block_linked=False)
    return _streamed(compressor, parts)


def _zstd(parts: Sequence[Bytes]) -> bytes:
    if len(parts) == 1:
        return bytes(cramjam.zstd.compress(parts[0], level=_ZSTD_LEVEL))
    return _streamed(cramjam.zstd.Compressor(level=_ZSTD_LEVEL), parts)


def _streamed(compressor: cramjam.lz4.Compressor | cramjam.zstd.Compressor, parts: Sequence[Bytes]) -> bytes:
    for part in parts:
        # It takes no views.
        for start in range(0, len(part), _STREAMED_BYTES):
            compressor.compress(bytes(part[start : start + _STREAMED_BYTES]))
    return bytes(compressor.finish())


def gunzip(data: Bytes, piece: int) -> Iterator[bytes]:
    """As `gzip.decompress`, in pieces of at most `piece` bytes: one member or several, with trailing zeros.

    Raises:
        CodecError: while iterating, the data is not gzip.
    """
    rest = memoryview(data)
    members = 0
    while rest or not members:
        if members == _MOST_MEMBERS:
            raise CodecError(f"it has more than {_MOST_MEMBERS} members")
        members += 1
        member = zlib.decompressobj(wbits=_GZIP_FRAME)
        given: Bytes = b""
        try:
            while not member.eof:
                if not given:
                    given, rest = rest[:_GZIP_INPUT], rest[_GZIP_INPUT:]
                part = member.decompress(given, piece)
                given = member.unconsumed_tail
                if part:
                    yield part
                elif not (member.eof or given or rest):
                    raise CodecError("it ends too early")
        except zlib.error as error:
            raise CodecError(f"its gzip body cannot be read: {error}") from error
        rest = memoryview((member.unused_data + rest).lstrip(b"\0"))


def _gunzip(data: Bytes, most: int) -> Bytes:
    parts = gunzip(data, min(most + 1, _GZIP_OUTPUT))
    first = next(parts, b"")
    second = next(parts, b"")
    if second:
        return _space.fill(lambda room: _copy_into(room, chain((first, second), parts)), most)
    if len(first) > most:
        raise _Larger
    return first


def _copy_into(room: memoryview, parts: Iterable[bytes]) -> int:
    filled = 0
    for part in parts:
        end = filled + len(part)
        if end > len(room):
            raise _Larger
        room[filled:end] = part
        filled = end
    return filled


def unsnap(data: Bytes, largest: int) -> Iterator[bytes]:
    """Blocks in Xerial's frame, as Java writes them, or one bare block.

    Args:
        largest: maximum size of a decompressed block in bytes.

    Raises:
        OversizedBatchError: while iterating, a block exceeds it.
        CodecError: while iterating, the data is not snappy.
    """
    try:
        for block in _snappy_blocks(data):
            claim = _claimed_size(block)
            if claim > largest:
                raise beyond_memory(
                    f"a block of a batch has {claim} bytes when decompressed, more than the limit of {largest}."
                )
            if part := bytes(cramjam.snappy.decompress_raw(block)):
                yield part
    except cramjam.DecompressionError as error:
        raise CodecError(f"its snappy body cannot be read: {error}") from error


def _snappy_blocks(data: Bytes) -> Iterator[bytes]:
    plain = bytes(data)
    if len(plain) < _XERIAL_HEAD_SIZE or not plain.startswith(_XERIAL_MAGIC):
        yield plain
        return
    position = _XERIAL_HEAD_SIZE
    while position < len(plain):
        (size,) = _BLOCK_SIZE.unpack_from(plain, position)
        position += _BLOCK_SIZE.size
        if not 0 < size <= len(plain) - position:
            raise CodecError(f"a block claims to have {size} bytes")
        yield plain[position : position + size]
        position += size


def _unsnap(data: Bytes, most: int) -> Bytes:
    blocks = _snappy_blocks(data)
    first = next(blocks, None)
    if first is None:
        return b""
    second = next(blocks, None)
    if second is None and (claim := _claimed_size(first)) <= _KEPT_BUFFER:
        if claim > most:
            raise _Larger
        return bytes(cramjam.snappy.decompress_raw(first))
    all_blocks = chain((first,) if second is None else (first, second), blocks)
    return _space.fill(lambda room: _unsnap_into(room, all_blocks), most)


def _unsnap_into(room: memoryview, blocks: Iterable[bytes]) -> int:
    filled = 0
    for block in blocks:
        end = filled + _claimed_size(block)
        if end > len(room):
            raise _Larger
        filled += cramjam.snappy.decompress_raw_into(block, room[filled:end])
    return filled


def _claimed_size(block: bytes) -> int:
    """The decompressed size that a block claims: the library allocates it."""
    claim = cramjam.snappy.decompress_raw_len(block)
    if claim > _SNAPPY_MOST_RATIO * len(block):
        raise CodecError(f"a block of {len(block)} bytes claims to have {claim} bytes when decompressed")
    return claim


class _Space(threading.local):
    """A buffer that each thread reuses. It is mapped, since its pages take no memory until written to."""

    def __init__(self) -> None:
        self._buffer: memoryview | None = None

    def fill(self, write: Callable[[memoryview], int], most: int) -> Bytes:
        """The bytes that a function writes into a buffer of `most` bytes; it returns their number.

        A large result is the buffer, which is not reused then: a copy would take the same memory again.
        """
        if self._buffer is None:
            try:
                # Private: processes that are forked later must not write into each other's.
                self._buffer = memoryview(mmap(-1, BATCH_BODY_BYTES, flags=MAP_PRIVATE | MAP_ANONYMOUS))
            except OSError as error:
                raise MemoryError(str(error)) from error
        buffer, filled = self._buffer, most
        try:
            filled = write(buffer[:most])
            return bytes(buffer[:filled]) if filled <= _KEPT_BUFFER else buffer[:filled].toreadonly()
        finally:
            if filled > _KEPT_BUFFER:
                self._buffer = None

    def decompress(self, into: Callable[[Bytes, memoryview], int], data: Bytes, most: int) -> Bytes:
        """The output of a library, which fails if the buffer is too small."""
        try:
            return self.fill(lambda room: into(data, room), most)
        except cramjam.DecompressionError as error:
            if _FULL in str(error):
                raise _Larger from None
            if _NO_MEMORY in str(error).lower():
                raise MemoryError(str(error)) from error
            raise


_space = _Space()
#: The library's error if the buffer is full.
_FULL = "failed to write whole buffer"
#: The library's error if it cannot allocate its own memory.
_NO_MEMORY = "not enough memory"


def _lz4_decompress(data: Bytes, most: int) -> Bytes:
    content = decompress_single_block(data)
    return _space.decompress(cramjam.lz4.decompress_into, data, most) if content is None else content


def _zstd_decompress(data: Bytes, most: int) -> Bytes:
    try:
        return _space.decompress(cramjam.zstd.decompress_into, data, min(most, _KEPT_BUFFER))
    except _Larger:
        if most <= _KEPT_BUFFER:
            raise
    if most > WIDE_WINDOW_BODY_BYTES and any(window > _USUAL_WINDOW for window in zstd_windows(data)):
        try:
            return _space.decompress(cramjam.zstd.decompress_into, data, WIDE_WINDOW_BODY_BYTES)
        except _Larger:
            raise oversized_error(
                f"has more than {WIDE_WINDOW_BODY_BYTES} bytes when decompressed with a window above {_USUAL_WINDOW}"
            ) from None
    return _space.decompress(cramjam.zstd.decompress_into, data, most)


def _snappy(parts: Sequence[Bytes]) -> bytes:
    """Blocks of snappy in the frame of xerial's library, which Java's clients write."""
    out = [_XERIAL_HEADER]
    for part in parts:
        # A reader needs no full blocks.
        for start in range(0, len(part), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(memoryview(part)[start : start + _XERIAL_BLOCK_BYTES]))
            out += (len(block).to_bytes(4, "big"), block)
    return b"".join(out)


_COMPRESS: dict[int, Callable[[Sequence[Bytes]], bytes]] = {
    Codec.NONE: b"".join,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESS: dict[int, Callable[[Bytes, int], Bytes]] = {
    Codec.NONE: lambda data, _: data if len(data) > _KEPT_BUFFER else bytes(data),
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnap,
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: _zstd_decompress,
}


def compress(codec: int, *parts: Bytes) -> bytes:
    """Compress an encoded body as a Java producer would.

    Args:
        parts: of the body; several are not joined first.
    """
    return _COMPRESS[codec](parts)


def decompress(codec: int, data: Bytes) -> bytes:
    """The encoded body of a batch.

    Raises:
        OversizedBatchError: it exceeds `BATCH_BODY_BYTES`; no more than that was allocated, and a copy.
        CodecError: the codec is unknown, or the data is damaged.
    """
    return bytes(decompress_once(codec, data))


def decompress_once(codec: int, data: Bytes) -> Bytes:
    """The encoded body of a batch, held once: bytes, or a view if it is large, of `data` if that is not compressed.

    Raises:
        OversizedBatchError: it exceeds `BATCH_BODY_BYTES`; no more than that was allocated.
        CodecError: the codec is unknown, or the data is damaged.
    """
    found = decompress_up_to(codec, data, BATCH_BODY_BYTES)
    if found is None:
        raise oversized_error(f"has more than {BATCH_BODY_BYTES} bytes when decompressed")
    return found


def decompress_up_to(codec: int, data: Bytes, most: int) -> Bytes | None:
    """As `decompress_once`; None if the body exceeds `most` bytes, the maximum that is allocated.

    Raises:
        OversizedBatchError: its decoder needs too much memory in addition.
        CodecError: the codec is unknown, or the data is damaged.
    """
    decoder = _DECOMPRESS.get(codec)
    if decoder is None:
        raise CodecError(f"unknown codec {codec}")
    try:
        return decoder(data, min(most, BATCH_BODY_BYTES))
    except _Larger:
        return None
    except (CodecError, OversizedBatchError, MemoryError):
        # Missing memory is not damage: the same body can be decompressed with more.
        raise
    except Exception as error:  # The libraries share no exception type.
        raise CodecError(f"its {Codec(codec).name.lower()} body cannot be read: {error}") from error
