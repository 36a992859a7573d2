"""Files that only their owner and its group may read: they contain names of topics, groups and persons."""

from __future__ import annotations

import os
from pathlib import Path

#: Reduced by the umask. Other users never read what this project writes, except metrics for node_exporter.
_MODE = 0o640


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file; an existing one keeps its mode.

    Raises:
        OSError: the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE), "wb") as file:
        file.write(data)


def make_private(path: Path) -> None:
    """Create an empty file unless it exists, for a library that would make it readable for all users.

    Raises:
        OSError: it cannot be created.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE))


def open_lock(path: str | Path) -> int:
    """Return a descriptor of a lock file that only this user can access; create it if missing. Symlinks are rejected.

    Raises:
        OSError: it cannot be opened, or is a symlink (ELOOP).
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
