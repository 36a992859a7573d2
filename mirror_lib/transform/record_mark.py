"""Which record a failure speaks of, in a form that survives Spark: errors of its workers come back as text alone."""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from mirror_lib.errors import NOWHERE, MirrorError, ReplicationError, Where

_MARK = re.compile(r"\[mirror-record place=(-?[0-9]{1,19}) offset=(-?[0-9]{1,19})\][ ]?([^\n]*)")


class RecordMark(NamedTuple):
    """A record among those that a Spark job reads, and what is wrong with it, as a text says.

    The text may be a record's own, quoted by Spark: that there is such a record, and that it fails, is to be seen.
    """

    #: The number of its partition in the bin, as in the hidden column of the frame.
    place: int
    #: Of the source.
    offset: int
    #: One line.
    what: str = ""


class UntransformableRecordError(ReplicationError):
    """A transform cannot take a record. Its text begins with the mark that `read_mark` finds again."""

    reason = "transform"


def mark(place: int, offset: int) -> str:
    """The mark of a record, to stand in the text of an error before what is wrong."""
    return f"[mirror-record place={place} offset={offset}]"


def read_mark(text: str) -> RecordMark | None:
    """The first mark in a text, such as that of an exception of Spark; None without one."""
    found = _MARK.search(text)
    return None if found is None else RecordMark(int(found[1]), int(found[2]), found[3].strip())


def refuse_record(error: Exception, place: int, offset: int, where: Where = NOWHERE) -> NoReturn:
    """Raise what goes wrong with a record so that the driver can tell which one it is.

    Args:
        error: what was raised. A `MirrorError` should not have a place of its own.
        place: of the record, as `RecordMark` has it.
        offset: likewise.
        where: the same for people.

    Raises:
        UntransformableRecordError: always.
    """
    if isinstance(error, MirrorError):
        what, action = error.what, error.action
    else:
        what, action = f"{type(error).__name__}: {error}".rstrip(": "), ""
    place_told = f"{where}: " if where != NOWHERE else ""
    told = " ".join(f"{place_told}{what}".split())
    raise UntransformableRecordError(f"{mark(place, offset)} {told}", action=action) from error
