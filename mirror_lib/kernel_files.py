"""Files that look regular and are none."""

from __future__ import annotations

from pathlib import Path


def is_of_kernel(path: Path) -> bool:
    """Return True for files of the kernel: /proc/self/environ has all variables of this process."""
    return path.parts[1:2] in (("proc",), ("sys",))
