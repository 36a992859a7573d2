"""LZ4 frames of small batches, which hold one block: read without the cost of a frame decoder.

A frame decoder's set-up costs more than decompressing a kilobyte. Any frame of another shape is left to it. The frame's
own checksums are not looked at, since the batch's CRC covers every byte of them.
"""

from __future__ import annotations

import struct
import threading

import cramjam

_MAGIC = 0x184D2204
#: Frame magic, flags, block descriptor, header checksum, size of the first block (LZ4 frame format 1.6).
_HEAD = struct.Struct("<IBBBI")
_VERSION_BITS, _VERSION = 0xC0, 0x40
_BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM, _DICTIONARY = 0x10, 0x08, 0x04, 0x01
_UNCOMPRESSED_BLOCK = 0x80000000
_CHECKSUM_SIZE = 4
_END_MARK = b"\0\0\0\0"
#: What one block of the smallest block size may become; Java clients write no other.
_LARGEST = 64 * 1024


class _Space(threading.local):
    """A buffer that each thread uses again and again."""

    def __init__(self) -> None:
        self.buffer = bytearray(_LARGEST)


_space = _Space()


def decompress_single_block(frame: bytes | memoryview) -> bytes | None:
    """The content of a frame with one compressed block of at most 64 kB, None when it is any other frame.

    Raises:
        Exception: the block is damaged.
    """
    size = len(frame)
    if size < _HEAD.size + len(_END_MARK):
        return None
    magic, flags, descriptor, _, block = _HEAD.unpack_from(frame)
    if magic != _MAGIC or flags & (_VERSION_BITS | _CONTENT_SIZE | _DICTIONARY) != _VERSION or descriptor != 0x40:
        return None
    end = _HEAD.size + block
    after = end + (_CHECKSUM_SIZE if flags & _BLOCK_CHECKSUM else 0) + len(_END_MARK)
    total = after + (_CHECKSUM_SIZE if flags & _CONTENT_CHECKSUM else 0)
    if block & _UNCOMPRESSED_BLOCK or total != size or frame[after - len(_END_MARK) : after] != _END_MARK:
        return None
    buffer = _space.buffer
    filled = cramjam.lz4.decompress_block_into(frame[_HEAD.size : end], buffer, output_len=_LARGEST)
    return bytes(buffer[:filled])
