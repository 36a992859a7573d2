"""The codecs of record batches, and decompression in pieces."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "codecs": ["CodecError", "compress", "decompress", "decompress_up_to"],
        "lz4_many": ["LaidOut", "single_blocks"],
        "streaming": ["pieces"],
    },
)
