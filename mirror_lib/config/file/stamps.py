"""Whether files are still what they were when they were read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileStamp:
    """A file at the moment before it was read. One that was not there has neither time nor size.

    Attributes:
        path: links are followed, for mounted secrets change by another target of a link.
        changed_ns: nanoseconds since the epoch.
        size: bytes.
        inode: tells a file that was put in the place of another in the same moment.
    """

    path: Path
    changed_ns: int | None = None
    size: int | None = None
    inode: int | None = None

    @classmethod
    def of(cls, path: Path) -> FileStamp:
        """The file as it is now."""
        try:
            found = path.stat()
        except OSError:
            return cls(path)
        return cls(path, found.st_mtime_ns, found.st_size, found.st_ino)


def unchanged(stamps: Iterable[FileStamp]) -> bool:
    """Whether every file is what it was."""
    return all(FileStamp.of(stamp.path) == stamp for stamp in stamps)
