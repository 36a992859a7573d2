"""Files that a configuration file names: they may be devices, or far larger than any file that is meant."""

from __future__ import annotations

import errno
import os
from pathlib import Path

#: Key stores and files of secrets have some kilobytes.
LARGEST = 16 * 1024 * 1024


def read_limited(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, or has more than `largest` bytes (EFBIG).
    """
    with path.open("rb") as file:
        found = file.read(largest + 1)
    if len(found) > largest:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return found
