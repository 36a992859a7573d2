"""Handling of local state: the folder of jars that projects may share, and locks."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mirror_lib.config.local_state import state_dir
from mirror_lib.private_files import open_lock

#: Overrides the folder of fetched jars, so that clones and test runs fetch them once.
JARS_DIR_VARIABLE = "MIRROR_JARS_DIR"


def jars_dir() -> Path:
    """Return the folder with one sub-folder per set of jars; not created here."""
    override = os.environ.get(JARS_DIR_VARIABLE)
    return Path(override).absolute() if override else state_dir() / "jars"


@contextmanager
def exclusive(lock_file: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a file lock that ends with this process at the latest.

    Args:
        lock_file: created if missing, and never deleted: deleting it would let two holders in.
        waiting: called once if another process holds the lock, before waiting for it.
    """
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(open_lock(lock_file), "a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
