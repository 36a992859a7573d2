"""Java properties files, read as `java.util.Properties` reads them, with line numbers."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import javaproperties

from mirror_lib.config.file.comments import COMMENT_TODO, without_comment
from mirror_lib.config.model import Problem, Severity
from mirror_lib.errors import ConfigurationError

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_COMMENT = re.compile(r"[ \t\f]*[#!]")
_ONLY_BACKSLASH = re.compile(r"[ \t\f]*\\[\r\n]*\Z")
_CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
#: A key with neither separator nor line end, as a whole natural line.
_ONLY_KEY = re.compile(r"(?:[^=:\s\\]|\\.)+\Z")
#: Before other letters, Java's `Properties` removes a single backslash without an error.
_LOST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\[A-Za-eg-mo-qsv-z0-9]")
#: In this order: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "UTF-8"),
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One assignment; `line` is where it starts, counted from 1. Values keep their trailing blanks."""

    key: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class PropertiesFile:
    """The assignments of a file in their order, repeated keys included."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def effective(self) -> Mapping[str, Entry]:
        """The effective assignment of each key: the last one."""
        return {entry.key: entry for entry in self.entries}


def read_properties(data: bytes, origin: str) -> PropertiesFile:
    """Read the bytes of a file that is of no use if a part of it cannot be read (`parse_properties`).

    Args:
        origin: what the file is called in messages.

    Raises:
        ConfigurationError: it names all lines that cannot be read.
    """
    parsed = parse_properties(data)
    broken = [problem for problem in parsed.problems if problem.severity is Severity.ERROR]
    if broken:
        lines = "; ".join(f"line {problem.line}: {problem.message}" for problem in broken)
        ways_on = dict.fromkeys(problem.suggestion for problem in broken if problem.suggestion)
        raise ConfigurationError(
            f"{origin} cannot be read: {lines}.",
            action=f"In these lines: {'; '.join(ways_on)}." if ways_on else "Correct these lines.",
        )
    return parsed


def parse_properties(data: bytes) -> PropertiesFile:
    """Read the bytes of a properties file (ISO-8859-1, as `Properties.load(InputStream)` does).

    Broken escapes, repeated keys, and what looks like a trailing comment are reported as problems, never raised. So is
    a byte order mark; the rest of the file is read without it, so that its other problems are found too.
    """
    text, marked = _without_mark(data)
    reader = _LineReader(text)
    entries: list[Entry] = []
    problems = [] if marked is None else [marked]
    while not reader.at_end:
        # An error ends the library's generator, so it is restarted after the broken line to find the other problems.
        try:
            for entry, written in _entries(reader):
                entries.append(entry)
                problems += _doubts(entry, written)
        except javaproperties.InvalidUEscapeError as error:
            problems.append(
                Problem(
                    severity=Severity.ERROR,
                    message=f"invalid escape {error.escape}: \\u must be followed by four hexadecimal digits",
                    line=reader.logical_line,
                    suggestion="write a single backslash as \\\\",
                )
            )
    if reader.ends_with_only_backslash:
        # Java reads it as an assignment with empty key and value.
        entries.append(Entry("", "", reader.logical_line))
    # A mark of another encoding makes the end unreadable, and is reported already.
    garbled = marked is not None and marked.severity is Severity.ERROR
    if entries and reader.ends_within(entries[-1]) and not garbled:
        problems.append(_cut_off(entries[-1]))
    return PropertiesFile(tuple(entries), (*problems, *_repetitions(entries)))


def byte_order_mark(data: bytes) -> Problem | None:
    """Return the problem of a file with a byte order mark, which Java reads as the beginning of the first key."""
    return _without_mark(data)[1]


def _without_mark(data: bytes) -> tuple[str, Problem | None]:
    for mark, encoding in _MARKS:
        if not data.startswith(mark):
            continue
        if encoding == "UTF-8":
            text = data[len(mark) :].decode("iso-8859-1")
            # For Java the first line is not a comment, so a backslash at its end joins the second line to it.
            first = text.splitlines()[0] if text else ""
            harmless = (_COMMENT.match(first) or not first.strip(" \t\f")) and not _CONTINUED.search(first)
            severity = Severity.WARNING if harmless else Severity.ERROR
            message = (
                "the file starts with a byte order mark (UTF-8 with BOM), which Java reads as part of the first key"
            )
            suggestion = "save the file as UTF-8 without BOM"
        else:
            text = data.decode(encoding, errors="replace")
            severity = Severity.ERROR
            message = f"the file starts with a byte order mark and is {encoding}, which Java cannot read"
            suggestion = "save the file as ASCII, or as UTF-8 without BOM"
        return text, Problem(severity=severity, message=message, line=1, suggestion=suggestion)
    return data.decode("iso-8859-1"), None


def _entries(reader: _LineReader) -> Iterator[tuple[Entry, str]]:
    """Yield the assignments with their text in the file."""
    for element in javaproperties.parse(reader):
        if isinstance(element, javaproperties.KeyValue):
            yield Entry(element.key, element.value, reader.logical_line), element.source


class _LineReader:
    """Yields natural lines and knows where the current logical line began."""

    def __init__(self, text: str) -> None:
        self._lines = [line for line in _LINE.findall(text) if line]
        self._next = 0
        self._continued = False
        self._ended_so = False
        self.logical_line = 0

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._lines)

    def ends_within(self, last: Entry) -> bool:
        """Return True if the last line is a key without value and line end: a full disk, or a file that is being
        written.
        """
        return last.line == len(self._lines) and bool(_ONLY_KEY.match(self._lines[-1].lstrip(" \t\f")))

    @property
    def ends_with_only_backslash(self) -> bool:
        """True if the file ends within a logical line that is one backslash."""
        return bool(self._lines) and self._next > 0 and self._ended_so

    def readline(self) -> str:
        if self.at_end:
            return ""
        line: str = self._lines[self._next]
        self._next += 1
        if not self._continued:
            self.logical_line = self._next
            # Java begins a new logical line after one that is only a backslash, so a comment may follow it.
            self._ended_so = bool(_ONLY_BACKSLASH.match(line)) and self.at_end
            if _ONLY_BACKSLASH.match(line):
                return "\n"
            if _COMMENT.match(line):
                return line
        self._continued = bool(_CONTINUED.search(line.rstrip("\r\n")))
        return line


def _cut_off(entry: Entry) -> Problem:
    # The flows of the existing lines would run with the defaults of the missing ones.
    return Problem.error(
        f"the file ends in the middle of a line, after {entry.key}",
        entry,
        "write the file under another name and rename it; if nothing is missing, end the line with =",
    )


def _doubts(entry: Entry, written: str) -> Iterator[Problem]:
    if _LOST_BACKSLASH.search(written):
        # The value may be a secret.
        yield Problem.warning(
            f"a backslash before a letter or a digit is removed from the value of {entry.key}",
            entry,
            "write \\\\ for a backslash, such as \\\\d in a regex",
        )
    if without_comment(entry.value) != entry.value:
        yield Problem.warning(
            f"the text after # is part of the value of {entry.key}",
            entry,
            COMMENT_TODO,
        )
    stripped = entry.value.strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'":
        yield Problem.warning(
            f"the quotes are part of the value of {entry.key}",
            entry,
            "remove the quotes: properties files do not use them",
        )
    if not without_comment(entry.value).isascii() or not entry.key.isascii():
        yield Problem.warning(
            f"{entry.key} contains characters outside ASCII, which Java reads as ISO-8859-1",
            entry,
            "if the file is UTF-8, write such characters as \\uXXXX",
        )


def _is_cut(entry: Entry) -> bool:
    """Return True if the key ends within the arrow of a flow."""
    return "=" in entry.value and (entry.key.endswith("->") or entry.value.startswith(("->", ">")))


def _repetitions(entries: list[Entry]) -> Iterator[Problem]:
    seen: dict[str, Entry] = {}
    for entry in entries:
        earlier = seen.get(entry.key)
        # Lines such as `A -> B.topics = x` have the key A in common, and were not meant to.
        if earlier is not None and not _is_cut(earlier):
            yield Problem.warning(f"{entry.key} is set again; the value in line {earlier.line} has no effect", entry)
        seen[entry.key] = entry
