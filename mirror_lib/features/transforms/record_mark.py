"""Marks the record of a failure in a form that survives Spark: its workers return errors as text alone."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from mirror_lib.errors import NOWHERE, MirrorError, ReplicationError, Where

_MARK = re.compile(r"\[mirror-record place=(-?[0-9]{1,19}) offset=(-?[0-9]{1,19})\][ ]?([^\n]*)")


class RecordMark(NamedTuple):
    """A record among those that a Spark job reads, and its error, parsed from a text.

    The text may come from a record, quoted by Spark: the caller must check that the record exists and fails.
    """

    #: Number of its partition in the bin, as in the hidden column of the frame.
    place: int
    #: Of the source.
    offset: int
    #: One line.
    what: str = ""


class UntransformableRecordError(ReplicationError):
    """A transform rejects a record. The text begins with the mark that `read_mark` finds."""

    reason = "transform"


def mark(place: int, offset: int) -> str:
    """Return the mark of a record, to be put before the message of an error."""
    return f"[mirror-record place={place} offset={offset}]"


def read_mark(text: str) -> RecordMark | None:
    """Return the first mark in a text, such as that of an exception of Spark; None without one."""
    found = _MARK.search(text)
    return None if found is None else RecordMark(int(found[1]), int(found[2]), found[3].strip())


def refuse_record(error: Exception, place: int, offset: int, where: Where = NOWHERE) -> NoReturn:
    """Raise the error of a record so that the driver can identify the record.

    Args:
        error: the original error. A `MirrorError` should not have its own coordinates.
        place: of the record, as in `RecordMark`.
        offset: likewise.
        where: the same for display.

    Raises:
        UntransformableRecordError: always.
    """
    if isinstance(error, MirrorError):
        what, action = error.what, error.action
    else:
        what, action = f"{type(error).__name__}: {error}".rstrip(": "), ""
    prefix = f"{where}: " if where != NOWHERE else ""
    message = " ".join(f"{prefix}{what}".split())
    raise UntransformableRecordError(f"{mark(place, offset)} {message}", action=action) from error
