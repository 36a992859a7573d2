"""Check whether Spark has sent a Python worker all of its input.

If an earlier stage fails, Spark closes the connection to the worker, and Arrow takes that for the end of its stream:
the function in the worker sees its rows end as if there were no more. Its result is then ignored, since the task has
failed; but lasting side effects would remain.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from io import BufferedReader, BufferedRWPair
from typing import Any

from mirror_lib.errors import MirrorError


def to_the_end(rows: Iterable[Any], *, must_know: bool) -> Iterator[Any]:
    """The rows of a worker's input.

    Args:
        must_know: raise if it cannot be checked whether the rows are complete.

    Raises:
        MirrorError: they are incomplete, because an earlier stage has failed.
    """
    yield from rows
    ended = _has_ended()
    if ended is False:
        raise MirrorError(
            "the rows of a Spark task ended early, because the part that produces them failed.",
            action="See Spark's own error for the cause.",
        )
    if ended is None and must_know:
        raise MirrorError(
            "this PySpark does not show whether the rows of a task are complete, which is needed to commit "
            "transactions.",
            action="Use the PySpark version that this package requires, or exactly.once.source.support=disabled.",
        )


def _has_ended() -> bool | None:
    """True if Spark has marked the end of the rows, False if they broke off, None if that cannot be seen."""
    connection = _connection()
    if connection is None:
        return None
    try:
        return bool(connection.peek(1))
    except OSError:
        return False


def _connection() -> BufferedReader | BufferedRWPair | None:
    """The worker's input stream (`infile` of PySpark's `worker.main`, which does not expose it)."""
    frame = sys._getframe()  # noqa: SLF001 - there is no other way to it
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "main" and frame.f_code.co_filename.endswith("worker.py"):
            found = frame.f_locals.get("infile")
            return found if isinstance(found, (BufferedReader, BufferedRWPair)) else None
    return None
