"""Files that a configuration file or a command line names: they may be pipes or devices, or far too large."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from mirror_lib.kernel_files import is_of_kernel
from mirror_lib.outside_limits import FILE_BYTES

#: Not to wait for a writer or for data, and not to become the process's terminal, if the file was replaced meanwhile.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PIECE = 1024 * 1024


def read_limited(path: Path, largest: int = FILE_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: it cannot be read, is not a regular file (EINVAL), or has more than `largest` bytes (EFBIG).
    """
    found = read_beginning(path, largest + 1)
    if len(found) > largest:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return found


def read_beginning(path: Path, most: int) -> bytes:
    """Return at most the first `most` bytes of a regular file.

    Raises:
        OSError: it cannot be read, or is not a regular file (EINVAL).
    """
    # Before it is opened: that alone has effects on some devices.
    _check(path.stat(), path)
    descriptor = os.open(path, _FLAGS)
    try:
        _check(os.fstat(descriptor), path)
        parts: list[bytes] = []
        left = most
        while left and (part := os.read(descriptor, min(left, _PIECE))):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _check(found: os.stat_result, path: Path) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode) or is_of_kernel(path.resolve()):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
