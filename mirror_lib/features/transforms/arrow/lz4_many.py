"""Decompresses many small LZ4 frames at once, for log comparisons.

Separate from `lz4_frames`, since the copy task must not load numpy: Spark forks its workers before heavy imports.
"""

from __future__ import annotations

from collections.abc import Iterable

import cramjam
import numpy as np
from numpy.typing import NDArray

from mirror_lib.records.compression.lz4_frames import (
    BLOCK_CHECKSUM,
    CHECKSUM_SIZE,
    CONTENT_CHECKSUM,
    CONTENT_SIZE,
    DICTIONARY,
    END_MARK,
    HEAD,
    LARGEST,
    MAGIC,
    SMALLEST_BLOCKS,
    UNCOMPRESSED_BLOCK,
    VERSION,
    VERSION_BITS,
)

#: Size of the buffer in which contents are collected.
_SCRATCH = 16 * LARGEST


class LaidOut:
    """Consecutive contents, such as the decompressed bytes of many small frames."""

    def __init__(self, largest: int) -> None:
        """Start empty.

        Args:
            largest: maximum size of all contents in bytes; soon after that, `ValueError` is raised.
        """
        self._largest = largest
        self._scratch = memoryview(bytearray(_SCRATCH))
        self._filled = 0
        self._full: list[bytes] = []
        self._before = 0
        #: The start of each content, and the end of the last one.
        self.bounds = [0]

    def add_blocks(self, data: bytes, starts: Iterable[int], ends: Iterable[int]) -> None:
        """Decompress blocks of frames that `single_blocks` found.

        Raises:
            Exception: a block is damaged.
        """
        decompress_into, add = cramjam.lz4.decompress_block_into, self.bounds.append
        scratch, filled, before = self._scratch, self._filled, self._before
        for start, end in zip(starts, ends, strict=True):
            if filled + LARGEST > _SCRATCH:
                self._filled = filled
                self._empty()
                filled, before = 0, self._before
            filled += decompress_into(data[start:end], scratch[filled:], output_len=LARGEST)
            add(before + filled)
        self._filled = filled

    def add(self, content: bytes) -> None:
        """Add a content unchanged."""
        self._empty()
        self._full.append(content)
        self._before += len(content)
        self.bounds.append(self._before)

    def _empty(self) -> None:
        self._full.append(bytes(self._scratch[: self._filled]))
        self._before += self._filled
        self._filled = 0
        if self._before > self._largest:
            raise ValueError(f"the contents take more than {self._largest} bytes")

    def join(self) -> bytes:
        """All contents."""
        self._empty()
        return b"".join(self._full)


def single_blocks(
    octets: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """Select the frames that `decompress_single_block` would read, with start and end of their blocks.

    Args:
        starts: start of each frame in `octets`.
        ends: end of each.
    """
    fits = ends - starts >= HEAD.size + len(END_MARK)
    # The shortest frames would be read beyond their end; the result does not count then.
    safe = np.where(fits, starts, 0)
    head = octets[safe[:, None] + np.arange(HEAD.size)]
    magic, block = (
        np.ascontiguousarray(head[:, at : at + 4]).view("<u4")[:, 0].astype(np.int64) for at in (0, HEAD.size - 4)
    )
    flags = head[:, 4].astype(np.int64)
    fits &= (magic == MAGIC) & (head[:, 5] == SMALLEST_BLOCKS)
    fits &= flags & (VERSION_BITS | CONTENT_SIZE | DICTIONARY) == VERSION
    fits &= block & UNCOMPRESSED_BLOCK == 0
    first = starts + HEAD.size
    after = first + block + np.where(flags & BLOCK_CHECKSUM, CHECKSUM_SIZE, 0) + len(END_MARK)
    fits &= after + np.where(flags & CONTENT_CHECKSUM, CHECKSUM_SIZE, 0) == ends
    mark = np.where(fits, after - len(END_MARK), 0)
    fits &= ~octets[mark[:, None] + np.arange(len(END_MARK))].any(axis=1)
    return fits, first, first + block
