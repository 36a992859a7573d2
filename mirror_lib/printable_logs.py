"""Log records whose texts are safe to display, in processes with own handlers and in those of other programs."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections.abc import Callable
from copy import copy
from types import TracebackType
from typing import Any

from mirror_lib.printable import END_OF_GROUP, LINES, Lines, indented, printable, without_controls
from mirror_lib.printable_errors import printable_error

#: The first parts of the names of this project's loggers.
_OWN = frozenset({"mirror", "mirror_lib", "spark_jobs"})


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


def make_logs_printable() -> None:
    """Make log records printable when they are created: in a process whose handlers are others'."""
    make = logging.getLogRecordFactory()
    if not isinstance(make, _PrintableRecords):
        logging.setLogRecordFactory(_PrintableRecords(make))


def make_output_printable() -> None:
    """Make warnings, and exceptions that end the process or a thread, printable: in a process of this project."""
    warn = warnings.formatwarning
    if logging.lastResort is not None:
        # Warnings of libraries go to the terminal as well.
        logging.lastResort.setFormatter(PrintableFormatter())
    end, end_thread = sys.excepthook, threading.excepthook

    def warning(*given: Any, **named: Any) -> str:
        return indented(printable(warn(*given, **named).rstrip("\n"), LINES)) + "\n"

    def show(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        shown = printable_error(error)
        end(type(shown), shown, shown.__traceback__)

    def show_of_thread(ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None:
            shown = printable_error(ended.exc_value)
            ended = threading.ExceptHookArgs((type(shown), shown, shown.__traceback__, ended.thread))
        end_thread(ended)

    warnings.formatwarning = warning
    sys.excepthook, threading.excepthook = show, show_of_thread


class _PrintableRecords:
    """Creates log records; those of this project's loggers have one text, and no arguments.

    Those of other loggers are changed only if necessary, and keep their arguments if possible: handlers may use them.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        if record.exc_info and record.exc_info[1] is not None:
            shown = printable_error(record.exc_info[1])
            record.exc_info = (type(shown), shown, shown.__traceback__)
        # `logging.makeLogRecord` copies a record into one without a name.
        is_own = (record.name or "").split(".", 1)[0] in _OWN
        is_mark = record.msg == END_OF_GROUP and not record.args
        if is_mark or (not is_own and _is_safe(_message(record))):
            return record
        if isinstance(record.args, tuple):
            record.args = _printable_arguments(record.args)
        message = _message(record)
        if message is not None and (is_own or not _is_safe(message)):
            record.msg, record.args = indented(printable(message, LINES)), ()
        return record


def _message(record: logging.LogRecord) -> str | None:
    """Return the text of a record; None if it has none, such as for a wrong number of arguments."""
    try:
        return record.getMessage()
    except Exception:
        # The handler reports it.
        return None


def _is_safe(message: str | None) -> bool:
    return message is None or message.isprintable() or message == indented(without_controls(message, LINES))


def _printable_arguments(args: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(
        printable(each, LINES if isinstance(each, Lines) else "") if isinstance(each, str) else each for each in args
    )
