"""The words and calls of a SQL text, and positions in it for messages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from mirror_lib.problems import Severity


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Number of characters of a long line that are shown around a position.
_SHOWN = 100
_NAME = re.compile(r"[^\W\d]\w*\Z")
_OPENING = {"(": ")", "[": "]", "{": "}"}
#: The schema of Spark's own functions: `builtin.upper(key)`, `system.builtin.upper(key)`.
_BUILTIN_PATHS = (("builtin",), ("system", "builtin"))
#: Words that may come before a parenthesis and are not calls.
_KEYWORDS = _names(
    """
    all and as between by case cluster cross cube distinct div else end escape except exclude exists from full group
    having in inner intersect interval is join lateral like limit minus natural not offset on or order outer over
    partition rollup rows select semi sets sort table tablesample then union using values view when where with within
    array decimal dec numeric varchar char character map struct timestamp_ltz timestamp_ntz variant named columns
    """
)
_BEFORE_QUANTIFIER = frozenset({"like", "ilike", "rlike", "regexp"})


class Place(NamedTuple):
    """A position in a text; `line` and `column` count from 1."""

    line: int
    column: int
    #: The line, shortened if it is long, and below it a mark.
    excerpt: str

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@dataclass(frozen=True, slots=True)
class Finding:
    """An error in a SQL text, or a doubt about its meaning."""

    severity: Severity
    sentence: str
    advice: str
    place: Place | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        marked = f"\n{self.place.excerpt}" if self.place else ""
        return f"{where}{self.sentence}; {self.advice}{marked}"


class Word(NamedTuple):
    """A token of SQL."""

    text: str
    #: Offsets of the first character and after the last one.
    start: int
    end: int
    is_name: bool
    is_string: bool = False

    @property
    def lower(self) -> str:
        """The text in lower case, for comparing keywords and names of functions."""
        return self.text.lower()


class Call(NamedTuple):
    """A function with its arguments."""

    #: Lower case, with its path when it is not one of Spark's own.
    name: str
    start: int
    end: int
    #: How many, and the last word of each.
    arguments: tuple[Word, ...]
    #: Number of open brackets around it.
    depth: int
    #: The words before the name and after the closing parenthesis, lower case; "" at the ends of the text.
    before: str
    after: str


def place_at(text: str, start: int, end: int | None = None) -> Place:
    """Return the position of a part of a text, given by its offsets."""
    start = min(max(start, 0), len(text))
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    line = text[begin : len(text) if stop < 0 else stop].rstrip("\r")
    column = start - begin
    length = max(1, min((end or start + 1) - start, len(line) - column))
    first = max(0, column - _SHOWN // 2) if len(line) > _SHOWN else 0
    shown = line[first : first + _SHOWN]
    head, tail = "..." if first else "", "..." if first + _SHOWN < len(line) else ""
    # Tabs stay tabs, so that the mark is below the text.
    indent = "".join("\t" if char == "\t" else " " for char in shown[: column - first])
    mark = "^" * min(length, _SHOWN - min(column - first, _SHOWN - 1))
    excerpt = f"    {head}{shown}{tail}\n    {' ' * len(head)}{indent}{mark}"
    return Place(text.count("\n", 0, start) + 1, column + 1, excerpt)


def is_name(text: str) -> bool:
    """Return True if a token that is not a string is a word."""
    return _NAME.match(text) is not None


def find_unbalanced(words: Sequence[Word]) -> tuple[Word, str] | None:
    """Return the first bracket without its counterpart, and what is missing; None if all have theirs."""
    stack: list[Word] = []
    for word in words:
        if word.is_string:
            continue
        if word.text in _OPENING:
            stack.append(word)
        elif word.text in _OPENING.values() and (not stack or _OPENING[stack.pop().text] != word.text):
            return word, "has no opening counterpart"
    return (stack[-1], f"is never closed by {_OPENING[stack[-1].text]}") if stack else None


def comma_too_many(words: Sequence[Word]) -> Word | None:
    """Return the first comma with nothing before or after it."""
    if words and words[-1].text == "," and not words[-1].is_string:
        return words[-1]
    for before, word in pairwise(words):
        comma = next((each for each in (before, word) if each.text == "," and not each.is_string), None)
        other = word if comma is before else before
        alone = other.lower in ((",", "select", *_OPENING) if other is before else (",", "from", *_OPENING.values()))
        if comma is not None and alone and not other.is_string:
            return comma
    return None


def calls(words: Sequence[Word]) -> Iterator[Call]:
    """Yield every call of a function, in the order of the names; the words must be balanced."""
    closing, depths = _brackets(words)
    for index in range(1, len(words)):
        if words[index].text != "(" or words[index].is_string or not words[index - 1].is_name:
            continue
        name = words[index - 1]
        path, first = _path(words, index - 1)
        before = words[first - 1].lower if first else ""
        plain = not path and words[index - 1].lower
        if plain and (plain in _KEYWORDS or (plain in ("any", "some") and before in _BEFORE_QUANTIFIER)):
            # Types and keywords, and `array(...)`, `map(...)` and `struct(...)` are ignored.
            continue
        if plain == "filter" and before == ")":
            # The clause of an aggregate, which is found separately.
            continue
        end = closing[index]
        yield Call(
            name=".".join((*path, name.lower)),
            start=words[first].start,
            end=name.end,
            arguments=tuple(_arguments(words, index, end, depths)),
            depth=depths[index],
            before=before,
            after=words[end + 1].lower if end + 1 < len(words) else "",
        )


def _brackets(words: Sequence[Word]) -> tuple[dict[int, int], list[int]]:
    """Return the index of the closing bracket by that of the opening one, and the number of open ones before each
    word.
    """
    closing: dict[int, int] = {}
    depths: list[int] = []
    stack: list[int] = []
    for index, word in enumerate(words):
        if not word.is_string and word.text in _OPENING.values() and stack:
            closing[stack.pop()] = index
        depths.append(len(stack))
        if not word.is_string and word.text in _OPENING:
            stack.append(index)
    return closing, depths


def _path(words: Sequence[Word], index: int) -> tuple[tuple[str, ...], int]:
    """Return the qualifier of a function's name, without Spark's own schema, and the index of its first word."""
    path: list[str] = []
    first = index
    while first >= 2 and words[first - 1].text == "." and words[first - 2].is_name:
        first -= 2
        path.insert(0, words[first].lower)
    return ((), first) if tuple(path) in _BUILTIN_PATHS else (tuple(path), first)


def _arguments(words: Sequence[Word], opening: int, closing: int, depths: Sequence[int]) -> Iterator[Word]:
    for index in range(opening + 1, closing):
        ends = index + 1 == closing
        comma = not ends and words[index + 1].text == "," and depths[index + 1] == depths[opening] + 1
        if ends or (comma and not words[index + 1].is_string):
            yield words[index]
