"""A corrected copy of a properties file: misspelt keys are renamed, lines without effect become comments. Pure.

Only certain corrections are made; values are not changed.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.model import Problem, Severity

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")


@dataclass(frozen=True, slots=True)
class Change:
    """One corrected line; values are not repeated, since they may be secrets."""

    line: int
    what: str


@dataclass(frozen=True, slots=True)
class FixedFile:
    """The bytes of the copy, and what differs from the original."""

    data: bytes
    changes: tuple[Change, ...]


def fix(data: bytes, problems: Iterable[Problem], keep: Collection[str] = ()) -> FixedFile:
    """Apply the certain corrections of a file's problems.

    Args:
        data: the original; no line is added or removed, so its line numbers apply to the copy.
        problems: of the original.
        keep: keys whose lines stay as they are.
    """
    changes: list[Change] = []
    if data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
        changes.append(Change(1, "removed the byte order mark"))
    lines = [line for line in _LINE.findall(data.decode("iso-8859-1")) if line]
    places: dict[str, list[int]] = {}
    for entry in parse_properties(data).entries:
        places.setdefault(entry.key, []).append(entry.line)
    for problem in problems:
        if problem.key in keep:
            continue
        # Of a repeated key only the last line is reported.
        found = places.pop(problem.key or "", [])
        new = problem.rename_to
        if new is None and problem.severity is not Severity.NO_EFFECT:
            if found:
                places[problem.key or ""] = found
            continue
        for line in found:
            if new is not None and new not in places and _rename_key(lines, line, problem.key or "", new):
                changes.append(Change(line, f"renamed {problem.key} to {new}"))
            else:
                _comment_out(lines, line)
                changes.append(Change(line, f"commented out {problem.key}"))
        if new is not None:
            places.setdefault(new, [])
    return FixedFile("".join(lines).encode("iso-8859-1"), tuple(sorted(changes, key=lambda change: change.line)))


def fix_safely(data: bytes, check: Callable[[bytes], Collection[Problem]]) -> tuple[FixedFile, tuple[Change, ...]]:
    """Apply the corrections that make no other error; also return the lines that stay misspelt because of that.

    Args:
        data: the original.
        check: returns the problems of a file's content.
    """
    problems = check(data)
    before = set(_errors(problems))

    def new_error(keep: Collection[str]) -> str | None:
        """Return an error of the copy that the original does not have."""
        errors = _errors(check(fix(data, problems, keep).data))
        return next((message for line, message in errors if (line, message) not in before), None)

    def left(problem: Problem, error: str) -> Change:
        why = f"{problem.key} is not renamed to {problem.rename_to}, which would make an error: {error}"
        return Change(problem.line or 0, why)

    renamed = {each.key: each for each in problems if each.key is not None and each.rename_to is not None}
    kept: dict[str, str] = {}
    while (error := new_error(kept)) is not None and len(kept) < len(renamed):
        others = [key for key in renamed if key not in kept]
        cause = next((key for key in others if new_error((*kept, key)) != error), None)
        # Without a cause, several renames make the error together.
        kept |= dict.fromkeys(others if cause is None else [cause], error)
    return fix(data, problems, kept), tuple(left(renamed[key], error) for key, error in kept.items())


def _errors(problems: Iterable[Problem]) -> list[tuple[int | None, str]]:
    return [(each.line, each.message) for each in problems if each.severity is Severity.ERROR]


def _rename_key(lines: list[str], line: int, old: str, new: str) -> bool:
    """Return True if the line has the key as written, so that it could be replaced."""
    text = lines[line - 1]
    start = len(text) - len(text.lstrip(" \t\f"))
    if not old or not text.startswith(old, start):
        return False
    lines[line - 1] = text[:start] + new + text[start + len(old) :]
    return True


def _comment_out(lines: list[str], line: int) -> None:
    """Turn an assignment into comments: a comment ends with its natural line, so each continued line becomes one."""
    at = line - 1
    while at < len(lines):
        is_continued = bool(_CONTINUED.search(lines[at].rstrip("\r\n")))
        lines[at] = f"# {lines[at]}"
        at += 1
        if not is_continued:
            return
