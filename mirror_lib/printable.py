"""Makes texts from other systems, such as group ids, principals and messages of brokers, safe to display.

An escape sequence controls a terminal, a line break forges a log line, characters that change the writing direction
hide text, and PostgreSQL rejects a text with a NUL character.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from typing import Any

#: Control characters in the project's own multi-line texts.
LINES = "\n\t"
_CONTINUED = "\n  "
_NEXT_LINE = re.compile(r"\n(?!  )")
#: The first parts of the names of this project's loggers.
_OWN = frozenset({"mirror", "mirror_lib", "spark_jobs"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    r"""The text with every non-printable character written as an escape, such as `\x1b` or `\u202e`.

    Args:
        text: anything.
        keep: characters that are not escaped.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escape(each) for each in text)


def _escape(character: str) -> str:
    return _SHORT.get(character) or character.encode("unicode_escape").decode()


class Lines(str):
    """A text of this project with several lines: as an argument of a log message it keeps its line breaks and tabs.

    Its names must be printable already.
    """

    __slots__ = ()


class PrintableFormatter(logging.Formatter):
    """Formats log records without control characters; line breaks stay unless a name contained them.

    Lines after the first are indented, so that none of them looks like a record of its own.
    """

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            arguments = _printable_arguments(record.args)
            # Other handlers get the original record.
            record = copy(record)
            record.args = arguments
        return indented(printable(super().format(record), LINES))


def indented(text: str) -> str:
    """Return a text whose lines after the first begin with two spaces at least."""
    return _NEXT_LINE.sub(_CONTINUED, text)


def make_logs_printable() -> None:
    """Make the log records of this project printable when they are created: in a process whose handlers are others'."""
    make = logging.getLogRecordFactory()
    if not isinstance(make, _PrintableRecords):
        logging.setLogRecordFactory(_PrintableRecords(make))


class _PrintableRecords:
    """Creates log records; those of this project's loggers have one text, and no arguments."""

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        # `logging.makeLogRecord` copies a record into one without a name.
        if (record.name or "").split(".", 1)[0] in _OWN:
            if isinstance(record.args, tuple):
                record.args = _printable_arguments(record.args)
            if record.exc_info and record.exc_info[1] is not None:
                make_printable(record.exc_info[1])
            with suppress(TypeError, ValueError):
                # A wrong number of arguments is reported by the handler.
                record.msg, record.args = indented(printable(record.getMessage(), LINES)), ()
        return record


def _printable_arguments(args: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(
        printable(each, LINES if isinstance(each, Lines) else "") if isinstance(each, str) else each for each in args
    )


def make_printable(error: BaseException) -> None:
    """Replace control characters in the texts of an exception and its causes, which another program will log."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        todo += [each.__cause__, each.__context__]
        if not str(each).replace("\n", "").isprintable() or "\n" in str(each):
            each.args = tuple(indented(printable(part, LINES)) if isinstance(part, str) else part for part in each.args)
