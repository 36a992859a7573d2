"""Files that only their owner and its group may read: they hold names of topics, groups and people."""

from __future__ import annotations

import os
from pathlib import Path

#: Less what the umask takes. Others never read what this project writes, with one exception: metrics for node_exporter.
_MODE = 0o640


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file; one that exists keeps its mode.

    Raises:
        OSError: it cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE), "wb") as file:
        file.write(data)


def make_private(path: Path) -> None:
    """Make an empty file where there is none, for a library that would make it readable for everybody.

    Raises:
        OSError: it cannot be made.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE))


def open_lock(path: str | Path) -> int:
    """Return a descriptor of a lock file of this user alone, made where there is none. No symlink is followed.

    Raises:
        OSError: it cannot be opened, or is a symlink (ELOOP).
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
