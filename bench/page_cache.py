"""A full page cache, as on every broker that has run for a while.

A log is appended to pages of memory. On a broker in use all memory is taken, so these are pages that held older, clean
data a moment ago. Where memory is free instead, they come from there, and on a virtual machine whose host takes free
memory back (free page reporting) each must be had from the host again: that took 3 s for a gigabyte on the machine of
docs/engineering/performance-notes.md, more than the whole append, and whoever writes right after somebody else's topics were deleted
is spared it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import psutil

#: Read between two looks; it is full when so much lowers what is free by less than an eighth of it.
_STEP_BYTES = 256 * 1024 * 1024
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
        """Read until the kernel takes pages back for it; what others hold in the cache stays, being newer or in use."""
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
