"""Detect files that changed since they were read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileStamp:
    """The state of a file before it was read. A missing file has neither time nor size.

    Attributes:
        path: with links followed, because mounted secrets change by changing the target of a link.
        changed_ns: nanoseconds since the epoch.
        size: bytes.
        inode: detects a file that was replaced by another within the same timestamp.
    """

    path: Path
    changed_ns: int | None = None
    size: int | None = None
    inode: int | None = None

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """Return the present state of the file."""
        try:
            found = path.stat()
        except OSError:
            return cls(path)
        return cls(path, found.st_mtime_ns, found.st_size, found.st_ino)


def are_unchanged(stamps: Iterable[FileStamp]) -> bool:
    """Return True if no file has changed."""
    return all(FileStamp.of(stamp.path) == stamp for stamp in stamps)
