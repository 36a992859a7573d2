"""The codecs of record batches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "codecs": [
            "Bytes",
            "CodecError",
            "compress",
            "decompress",
            "decompress_once",
            "decompress_up_to",
            "gunzip",
            "unsnap",
        ],
        "lz4_frames": [
            "BLOCK_CHECKSUM",
            "CHECKSUM_SIZE",
            "CONTENT_CHECKSUM",
            "CONTENT_SIZE",
            "DICTIONARY",
            "END_MARK",
            "HEAD",
            "LARGEST",
            "MAGIC",
            "SMALLEST_BLOCKS",
            "UNCOMPRESSED_BLOCK",
            "VERSION",
            "VERSION_BITS",
        ],
        "zstd_frames": ["zstd_windows"],
    },
)
