"""Configuration files of DAGs: read once in a process that parses several DAG files, or one file again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from mirror_lib.config import load as reading
from mirror_lib.config.model import MirrorConfig

_KEPT = 8


@contextmanager
def uncollected() -> Iterator[None]:
    """Make DAGs without looking for garbage: all of them stay, and looking through them takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def load(path: Path) -> MirrorConfig:
    """The configuration of a file as it is now; read again when its time or size is another one.

    Only for parsing: tasks read the file anew, for a variable in it may stand for something else by then.

    Raises:
        InvalidConfigurationError: the file cannot be read or has errors.
    """
    try:
        found = path.stat()
    except OSError:
        return reading.load(path)
    return _load(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=_KEPT)
def _load(path: Path, changed_ns: int, size: int) -> MirrorConfig:
    del changed_ns, size
    return reading.load(path)
