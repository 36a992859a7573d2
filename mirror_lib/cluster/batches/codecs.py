"""The five codecs of record batches, in the frames that Java clients write and read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import cramjam
from aiokafka.codec import snappy_decode, snappy_encode

from mirror_lib.cluster.batches.header import Codec
from mirror_lib.cluster.batches.lz4_frames import decompress_single_block

_Bytes = bytes | memoryview
#: Java's default for Kafka is LZ4's fast compressor (`Lz4Compression`, KIP-390), which this level selects.
_LZ4_FAST = 1
_ZSTD_LEVEL = 3
_GZIP_FRAME = 31


class CodecError(ValueError):
    """The compressed bytes cannot be read."""


def _gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_FRAME)
    return compressor.compress(data) + compressor.flush()


def _lz4(data: bytes) -> bytes:
    # Brokers refuse linked blocks (KIP-57).
    compressor = cramjam.lz4.Compressor(level=_LZ4_FAST, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _lz4_decompress(data: _Bytes) -> bytes:
    content = decompress_single_block(data)
    return bytes(cramjam.lz4.decompress(data)) if content is None else content


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    Codec.NONE: lambda data: data,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: snappy_encode,
    Codec.LZ4: _lz4,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.compress(data, level=_ZSTD_LEVEL)),
}
_DECOMPRESS: dict[int, Callable[[_Bytes], bytes]] = {
    Codec.NONE: bytes,
    Codec.GZIP: gzip.decompress,
    # A memoryview would be taken for an unframed block.
    Codec.SNAPPY: lambda data: bytes(snappy_decode(bytes(data))),
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: lambda data: bytes(cramjam.zstd.decompress(data)),
}


def compress(codec: int, data: bytes) -> bytes:
    """Compress an encoded body as a Java producer would."""
    return _COMPRESS[codec](data)


def decompress(codec: int, data: _Bytes) -> bytes:
    """The encoded body of a batch.

    Raises:
        CodecError: unknown codec, or bytes that are not what they should be.
    """
    decoder = _DECOMPRESS.get(codec)
    if decoder is None:
        raise CodecError(f"codec {codec} does not exist")
    try:
        return decoder(data)
    except Exception as error:  # The libraries share no exception type.
        raise CodecError(f"its {Codec(codec).name.lower()} body cannot be read: {error}") from error
