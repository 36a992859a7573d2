"""LZ4 frames of small batches, which contain one block: read without the cost of a frame decoder.

A frame decoder's set-up costs more than decompressing a kilobyte. It handles all other frames. The frame's own
checksums are not checked, since the batch's CRC covers all its bytes.
"""

from __future__ import annotations

import struct
import threading

import cramjam

MAGIC = 0x184D2204
#: Frame magic, flags, block descriptor, header checksum, size of the first block (LZ4 frame format 1.6).
HEAD = struct.Struct("<IBBBI")
VERSION_BITS, VERSION = 0xC0, 0x40
BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM, DICTIONARY = 0x10, 0x08, 0x04, 0x01
UNCOMPRESSED_BLOCK = 0x80000000
SMALLEST_BLOCKS = 0x40
CHECKSUM_SIZE = 4
END_MARK = b"\0\0\0\0"
#: The decompressed size of one block of the smallest block size; Java clients use no other.
LARGEST = 64 * 1024


class _Space(threading.local):
    """A buffer that each thread reuses."""

    def __init__(self) -> None:
        self.buffer = bytearray(LARGEST)


_space = _Space()


def decompress_single_block(frame: bytes | memoryview) -> bytes | None:
    """The content of a frame with one compressed block of at most 64 kB; None for any other frame.

    Raises:
        Exception: the block is damaged.
    """
    size = len(frame)
    if size < HEAD.size + len(END_MARK):
        return None
    magic, flags, descriptor, _, block = HEAD.unpack_from(frame)
    if magic != MAGIC or flags & (VERSION_BITS | CONTENT_SIZE | DICTIONARY) != VERSION or descriptor != SMALLEST_BLOCKS:
        return None
    end = HEAD.size + block
    after = end + (CHECKSUM_SIZE if flags & BLOCK_CHECKSUM else 0) + len(END_MARK)
    total = after + (CHECKSUM_SIZE if flags & CONTENT_CHECKSUM else 0)
    if block & UNCOMPRESSED_BLOCK or total != size or frame[after - len(END_MARK) : after] != END_MARK:
        return None
    buffer = _space.buffer
    filled = cramjam.lz4.decompress_block_into(frame[HEAD.size : end], buffer, output_len=LARGEST)
    return bytes(buffer[:filled])
