"""Files that only their owner and its group may read: they contain names of topics, groups and persons."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def draft_of(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield a path, accessible to this user only, whose file replaces `path` at the end, unless there is an error.

    A reader of `path` sees the old or the new content and never a part.

    Args:
        mode: of the new file; None keeps the mode that the draft was created with.

    Raises:
        OSError: the file cannot be written.
    """
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        draft = Path(folder, path.name)
        yield draft
        if mode is not None:
            draft.chmod(mode)
        draft.replace(path)


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
