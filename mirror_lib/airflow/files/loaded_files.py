"""Configuration files of DAGs: read once in a process that parses several DAG files, or one file repeatedly."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirror_lib.config import loader as reading
from mirror_lib.config.file.stamps import are_unchanged
from mirror_lib.config.loader import InvalidConfigurationError, ReadablePart
from mirror_lib.config.secrets.lookup_context import without_lookups
from mirror_lib.problems import Problem, Severity

_KEPT = 8
_kept: dict[Path, ReadablePart] = {}


@contextmanager
def pause_gc() -> Iterator[None]:
    """Make DAGs with garbage collection off: none of them is garbage, and collecting takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def load_readable(path: Path) -> ReadablePart:
    """Return the readable part of a file; reload it when it, or a file that its providers read, has changed.

    Only for parsing: Airflow's connections are not looked up. Tasks read the file anew, because its variables may have
    other values by then, and reject a file with errors.

    Raises:
        InvalidConfigurationError: the file cannot be read.
    """
    if path.exists() and not path.is_file():
        # Reading a pipe would wait for its writer, and block the DAGs of all other files.
        problem = Problem(severity=Severity.ERROR, message="not a regular file: Airflow has to read it repeatedly")
        raise InvalidConfigurationError(str(path), (problem,))
    known = _kept.pop(path, None)
    if known is None or not are_unchanged(known.sources):
        with without_lookups():
            known = reading.load_readable(path)
    # Least recently used entries are evicted first.
    _kept[path] = known
    while len(_kept) > _KEPT:
        del _kept[next(iter(_kept))]
    return known
