"""Exceptions whose texts are safe to display, for programs that log them as they are: Airflow, Spark, Python itself.

The texts of an exception are those of its causes and contexts, of its notes and of the members of its groups too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from mirror_lib.printable import LINES, indented, printable

_NO_TEXT = "(its text cannot be made)"


def printable_error(error: BaseException) -> BaseException:
    """Return the exception without control characters, and without lines that look like lines of a log.

    Texts are replaced in the exceptions themselves. One that makes its text in another way, or a group, is replaced by
    a stand-in with the same name, text and traceback.
    """
    found = list(_related(error))
    shown: dict[int, BaseException] = {}
    for each in found:
        _clean_notes(each)
        if not isinstance(each, BaseExceptionGroup):
            shown[id(each)] = _cleaned(each)
    for each in found:
        _clean_group(each, shown)
    for each in found:
        _link(each, shown)
    return shown[id(error)]


def _related(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            todo += each.exceptions


def _cleaned(error: BaseException) -> BaseException:
    if _is_clean(error):
        return error
    with suppress(Exception):
        error.args = tuple(_safe(part) if isinstance(part, str) else part for part in error.args)
    if _is_clean(error):
        return error
    kind = Exception if isinstance(error, Exception) else BaseException
    named = type(
        printable(type(error).__name__),
        (kind,),
        {"__module__": type(error).__module__, "__qualname__": printable(type(error).__qualname__)},
    )
    stand_in: BaseException = named(_safe(_text(error)))
    return stand_in


def _clean_group(error: BaseException, shown: dict[int, BaseException]) -> None:
    if not isinstance(error, BaseExceptionGroup) or id(error) in shown:
        return
    # For a group that is related to itself.
    shown[id(error)] = error
    for each in error.exceptions:
        _clean_group(each, shown)
    members = [shown[id(each)] for each in error.exceptions]
    if not _is_safe(error.message) or any(a is not b for a, b in zip(members, error.exceptions, strict=True)):
        shown[id(error)] = BaseExceptionGroup(_safe(error.message), members)


def _link(error: BaseException, shown: dict[int, BaseException]) -> None:
    there, is_alone = shown[id(error)], error.__suppress_context__
    there.__traceback__ = error.__traceback__
    if there is not error:
        there.__notes__ = getattr(error, "__notes__", [])
    there.__cause__ = None if error.__cause__ is None else shown[id(error.__cause__)]
    there.__context__ = None if error.__context__ is None else shown[id(error.__context__)]
    there.__suppress_context__ = is_alone


def _clean_notes(error: BaseException) -> None:
    notes = getattr(error, "__notes__", None)
    if notes is None:
        return
    listed = notes if isinstance(notes, list) else [notes]
    # Each begins a line.
    error.__notes__ = ["  " + _safe(each if isinstance(each, str) else _text(each)).lstrip() for each in listed]


def _is_clean(error: BaseException) -> bool:
    if isinstance(error, SyntaxError) and not all(
        printable(each.strip()) == each.strip() for each in (error.filename, error.text) if each
    ):
        # Tracebacks show the line.
        return False
    return _is_safe(_text(error))


def _is_safe(text: str) -> bool:
    return text.isprintable() or text == _safe(text)


def _safe(text: str) -> str:
    return indented(printable(text, LINES))


def _text(of: object) -> str:
    try:
        return str(of)
    except Exception:
        return _NO_TEXT
