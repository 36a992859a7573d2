"""A full page cache, as on every broker that has run for a while.

A log is appended to pages of memory. On a broker in use all memory is taken, so these are pages that held older, clean
data a moment ago. Where memory is free instead, they come from there, and on a virtual machine whose host takes free
memory back (free page reporting) each must be had from the host again: that took 3 s for a gigabyte on the machine of
docs/performance.md, more than the whole append, and whoever writes right after somebody else's topics were deleted
is spared it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import psutil

#: What is left free; the kernel begins to take pages back from the cache near this.
_FREE_BYTES = 512 * 1024 * 1024
_READ_BYTES = 1024 * 1024


class PageCache:
    """Fills the page cache by reading a file that has no content on disk; use as a context manager."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "page-cache"

    def __enter__(self) -> Self:
        with self._path.open("wb") as file:
            # More than there is: what is read twice without having left the cache would fill nothing.
            file.truncate(2 * psutil.virtual_memory().total)
        self._file = self._path.open("rb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def fill(self) -> None:
        """Read until almost no memory is free; what others hold in the cache stays, being newer or in use."""
        buffer, left = bytearray(_READ_BYTES), psutil.virtual_memory().total
        # The bound is for machines that give a process less of the cache than is free.
        while psutil.virtual_memory().free > _FREE_BYTES and left > 0:
            left -= _READ_BYTES
            if not self._file.readinto(buffer):
                self._file.seek(0)
