"""Configuration files of DAGs: read once in a process that parses several DAG files, or one file again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mirror_lib.config import InvalidConfigurationError, ReadablePart
from mirror_lib.config import loader as reading
from mirror_lib.config.file import unchanged
from mirror_lib.config.secrets import without_lookups
from mirror_lib.problems import Problem, Severity

_KEPT = 8
_kept: dict[Path, ReadablePart] = {}


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


def load_readable(path: Path) -> ReadablePart:
    """What can be read of a file as it is now; read again when it changes, or one that its providers read.

    Only for parsing: Airflow's connections are not asked for. Tasks read the file anew, for a variable in it may stand
    for something else by then, and refuse one with errors.

    Raises:
        InvalidConfigurationError: the file cannot be read.
    """
    if path.exists() and not path.is_file():
        # Reading a pipe would wait for its writer, and the DAGs of all other files with it.
        problem = Problem(severity=Severity.ERROR, message="it is no regular file: Airflow reads it again and again")
        raise InvalidConfigurationError(str(path), (problem,))
    known = _kept.pop(path, None)
    if known is None or not unchanged(known.sources):
        with without_lookups():
            known = reading.load_readable(path)
    # The one that was used last is the last to go.
    _kept[path] = known
    while len(_kept) > _KEPT:
        del _kept[next(iter(_kept))]
    return known
