"""Files that only their owner and its group may read: they contain names of topics, groups and persons.

All files of this project are created here: exclusively, under names that nobody can guess, and never through a link
that another user has made.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mirror_lib.kernel_files import is_of_kernel

#: Reduced by the umask. Other users never read what this project writes, except metrics for node_exporter.
_MODE = 0o640
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def write_private(path: Path, content: str | bytes) -> None:
    """Write a file; an existing one keeps its mode. It is replaced, unless its folder belongs to others.

    Raises:
        OSError: the file cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    path = without_foreign_links(path)
    found = _stat(path)
    if found is not None and (
        _is_of_system(path) or not stat.S_ISREG(found.st_mode) or not os.access(path.parent, os.W_OK)
    ):
        # /dev/stdout may lead to a regular file, and must stay what it is.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC), "wb") as file:
            file.write(data)
        return
    mode = None if found is None else stat.S_IMODE(found.st_mode)
    with draft_of(path, mode) as draft, os.fdopen(os.open(draft, _NEW, _MODE), "wb") as file:
        file.write(data)


@contextmanager
def draft_of(path: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield a path, accessible to this user only, whose file or folder replaces `path` at the end, unless there is an
    error.

    A reader of `path` sees the old or the new content and never a part.

    Args:
        mode: of the new file; None keeps the mode that the draft was created with.

    Raises:
        OSError: the file cannot be written.
    """
    path = without_foreign_links(path)
    if _is_of_system(path):
        raise PermissionError(errno.EPERM, "it is the system's, and is not replaced", str(path))
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        # If another user may rename the folder, the descriptor still is this one.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if os.geteuid() not in (0, os.fstat(descriptor).st_uid):
                raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), folder)
            yield Path(folder, path.name)
            if mode is not None:
                os.chmod(path.name, mode, dir_fd=descriptor)
            os.replace(path.name, path, src_dir_fd=descriptor)
        finally:
            os.close(descriptor)


def make_private(path: Path) -> None:
    """Create an empty file unless it exists, for a library that would make it readable for all users.

    Raises:
        OSError: it cannot be created.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE))


def open_log(path: Path) -> int:
    """Return a descriptor that appends to a file; create it and its folder if missing.

    Raises:
        OSError: it cannot be opened, or is another user's in a folder that all users may write.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path = without_foreign_links(path)
    refuse_foreign(path)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, _MODE)


def open_lock(path: str | Path) -> int:
    """Return a descriptor of a lock file that only this user can access; create it if missing. Symlinks are rejected.

    Raises:
        OSError: it cannot be opened, is a symlink (ELOOP), or is another user's in a folder that all users may write.
    """
    refuse_foreign(Path(path))
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def without_foreign_links(path: Path) -> Path:
    """Return the absolute path with its links followed; what they lead to need not exist.

    Raises:
        OSError: another user may have made one of the links (ELOOP).
    """
    done, todo, links = Path("/"), [*path.absolute().parts[1:]][::-1], 0
    while todo:
        part = todo.pop()
        if part == "..":
            done = done.parent
            continue
        here = done / part
        found = _lstat(here)
        if found is None or not stat.S_ISLNK(found.st_mode):
            done = here
            continue
        links += 1
        if links > _MOST_LINKS or is_foreign(here):
            raise OSError(errno.ELOOP, "another user may have made this link", str(here))
        if _is_of_system(here):
            # Links to open files lead nowhere as texts.
            return here.joinpath(*todo[::-1])
        led = here.readlink()
        done = Path("/") if led.is_absolute() else done
        todo += [part for part in led.parts if part != "/"][::-1]
    return done


def is_foreign(path: Path) -> bool:
    """Return True if another user may have put this entry there: all users may write its folder, and it belongs to
    neither root, this user, nor the owner of the folder (as the kernel's `protected_symlinks` and `protected_regular`).
    """
    found, folder = _lstat(path), _stat(path.parent)
    if found is None or folder is None or not folder.st_mode & stat.S_IWOTH:
        return False
    return found.st_uid not in (0, os.geteuid(), folder.st_uid)


def refuse_foreign(path: Path) -> None:
    """Refuse a file of another user in a folder that all users may write.

    Raises:
        OSError: it is one (EPERM).
    """
    if is_foreign(path):
        raise PermissionError(
            errno.EPERM, "it belongs to another user, in a folder that all users may write", str(path)
        )


def others_may_replace(path: Path) -> Path | None:
    """Return the file or the folder above it that other users may write or replace; None if there is none.

    Args:
        path: without links.
    """
    for here in (path, *path.parents):
        found = here.stat()
        shared = found.st_mode & _OTHERS_WRITE and not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX)
        if shared or found.st_uid not in (0, os.geteuid()):
            return here
    return None


def is_private_folder(path: Path) -> bool:
    """Return True if it is a folder, not a link, that only this user may write."""
    found = _lstat(path)
    return (
        found is not None
        and stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not found.st_mode & _OTHERS_WRITE
    )


def _is_of_system(path: Path) -> bool:
    """Return True for what no file replaces: devices, and open files of processes."""
    return is_of_kernel(path) or (path.parts[1:2] == ("dev",) and path.parts[1:3] != ("dev", "shm"))


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def write_atomically(path: Path, text: str) -> None:
    """Replace a small file so that a reader sees the old or the new text and never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(path) as draft:
        write_private(draft, text)
