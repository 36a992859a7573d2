"""A full page cache, as on every broker that has run for a while.

A log is appended to pages of memory. On a broker in use all memory is taken, so these are pages that held older, clean
data until now. If memory is free instead, they are taken from there, and on a virtual machine whose host reclaims free
memory (free page reporting) the host has to provide each page again: that took 3 s for a gigabyte on the machine of
docs/engineering/performance-notes.md, more than the whole append, while a copier that writes right after other topics
were deleted avoids it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import psutil

#: Read between two checks; the cache is full when this lowers free memory by less than an eighth of it.
_STEP_BYTES = 256 * 1024 * 1024
_READ_BYTES = 1024 * 1024


class PageCache:
    """Fills the page cache by reading a file that has no content on disk; use as a context manager."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "page-cache"

    def __enter__(self) -> Self:
        with self._path.open("wb") as file:
            # More than the total memory: data that is read twice while it is still cached would fill nothing.
            file.truncate(2 * psutil.virtual_memory().total)
        self._file = self._path.open("rb", buffering=0)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def fill(self) -> None:
        """Read until the kernel reclaims pages for it; other cached data stays, because it is newer or in use."""
        most = psutil.virtual_memory().total
        for _ in range(0, most, _STEP_BYTES):
            before = psutil.virtual_memory().free
            self._read(_STEP_BYTES)
            if before - psutil.virtual_memory().free < _STEP_BYTES // 8:
                return

    def _read(self, size: int) -> None:
        buffer = bytearray(_READ_BYTES)
        for _ in range(0, size, _READ_BYTES):
            if not self._file.readinto(buffer):
                self._file.seek(0)
