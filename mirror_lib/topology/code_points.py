"""Sets of Unicode code points, and the named ones of Java regexes (`\\d`, `\\p{Alpha}`, `\\p{Lu}`...).

Java character classes support nesting and intersection, Python's do not; converting them to plain ranges first makes
the two equal.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

LAST = sys.maxunicode
#: Distance between an ASCII capital and its small letter.
_CASE = 32


@dataclass(frozen=True, slots=True)
class CodePoints:
    """A set of code points as sorted, disjoint, non-adjacent inclusive ranges."""

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, ranges: Iterable[tuple[int, int]]) -> CodePoints:
        """Ranges in any order, sorted and merged."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(merged[-1][1], last))
            else:
                merged.append((first, last))
        return cls(tuple(merged))

    @classmethod
    def chars(cls, text: str) -> CodePoints:
        """The characters of a text."""
        return cls.of((ord(char), ord(char)) for char in text)

    def __or__(self, other: CodePoints) -> CodePoints:
        return CodePoints.of(self.ranges + other.ranges)

    def __and__(self, other: CodePoints) -> CodePoints:
        return ~(~self | ~other)

    def __invert__(self) -> CodePoints:
        edges = [(-1, -1), *self.ranges, (LAST + 1, LAST + 1)]
        return CodePoints(tuple((a[1] + 1, b[0] - 1) for a, b in pairwise(edges) if a[1] + 1 <= b[0] - 1))

    def __contains__(self, code: int) -> bool:
        return any(first <= code <= last for first, last in self.ranges)

    def fold_ascii(self) -> CodePoints:
        """The set with both cases of its ASCII letters: Java's `(?i)` without `(?u)`."""
        other_case = (self & _UPPER).shift(_CASE), (self & _LOWER).shift(-_CASE)
        return self | other_case[0] | other_case[1]

    def shift(self, by: int) -> CodePoints:
        """The set with every member shifted."""
        return CodePoints(tuple((first + by, last + by) for first, last in self.ranges))

    def pattern(self) -> str:
        """A Python regex that matches one character of the set."""
        if not self.ranges:
            return "(?!)"
        if self == ALL:
            return r"[\s\S]"
        if len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]:
            return re.escape(chr(self.ranges[0][0]))
        outside = ~self
        negated = len(outside.ranges) < len(self.ranges)
        body = "".join(_range_text(*pair) for pair in (outside if negated else self).ranges)
        return f"[{'^' if negated else ''}{body}]"


def _range_text(first: int, last: int) -> str:
    return _char_text(first) if first == last else f"{_char_text(first)}-{_char_text(last)}"


def _char_text(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_UPPER = CodePoints(((65, 90),))
_LOWER = CodePoints(((97, 122),))
_DIGIT = CodePoints(((48, 57),))
_ALPHA = _UPPER | _LOWER
_PUNCT = CodePoints.chars(r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")
_SPACE = CodePoints.chars(" \t\n\x0b\f\r")
ALL = CodePoints(((0, LAST),))
NEWLINE = CodePoints.chars("\n")
#: The line terminators of `.`, `^` and `$` (java.util.regex.Pattern, "Line terminators").
LINE_TERMINATORS = CodePoints.chars("\n\r\x85\u2028\u2029")

#: `\d` and similar; a capital letter is the complement.
ESCAPES = {
    "d": _DIGIT,
    "w": _ALPHA | _DIGIT | CodePoints.chars("_"),
    "s": _SPACE,
    "h": CodePoints.chars(" \t\xa0\u1680\u180e\u202f\u205f\u3000") | CodePoints(((0x2000, 0x200A),)),
    "v": CodePoints.chars("\n\x0b\f\r\x85\u2028\u2029"),
}
ESCAPES |= {letter.upper(): ~points for letter, points in ESCAPES.items()}

_POSIX = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": CodePoints(((0, 127),)),
    "Alpha": _ALPHA,
    "Digit": _DIGIT,
    "Alnum": _ALPHA | _DIGIT,
    "Punct": _PUNCT,
    "Graph": _ALPHA | _DIGIT | _PUNCT,
    "Print": _ALPHA | _DIGIT | _PUNCT | CodePoints.chars(" "),
    "Blank": CodePoints.chars(" \t"),
    "Cntrl": CodePoints(((0, 0x1F), (0x7F, 0x7F))),
    "XDigit": _DIGIT | CodePoints.chars("abcdefABCDEF"),
    "Space": _SPACE,
}
_MINOR = {"L": "ultmo", "M": "nce", "N": "dlo", "Z": "slp", "C": "cfson", "P": "dsecoif", "S": "mcko"}
_CATEGORIES = frozenset([major + minor for major, minors in _MINOR.items() for minor in minors])
_MAJOR = frozenset(_MINOR)
_CASED = ("Lu", "Ll", "Lt")


def named_set(name: str, *, ignore_case: bool) -> CodePoints:
    r"""The set for Java's `\p{name}`.

    Unicode general categories come from Python's own Unicode tables, which may have another version than Java's; topic
    names are ASCII, where all versions agree.

    Raises:
        ValueError: the property has no exact counterpart here.
    """
    if name in _POSIX:
        return _POSIX[name].fold_ascii() if ignore_case else _POSIX[name]
    if name == "all":
        return ALL
    if name == "L1":
        return CodePoints(((0, 255),))
    if name == "LC":
        return _of_categories(*_CASED)
    if name == "LD":
        return _of_categories("L", "Nd")
    category = _category_of(name)
    if category is None:
        raise ValueError(
            f"the character property \\p{{{name}}} of Java has no exact counterpart here; "
            "write the characters as a class such as [a-zA-Z0-9]"
        )
    return _of_categories(*(_CASED if ignore_case and category in _CASED else (category,)))


def _category_of(name: str) -> str | None:
    key, equals, value = name.partition("=")
    if equals:
        name = value if key.lower() in ("gc", "general_category") else ""
    elif name.startswith("Is"):
        name = name[2:]
    return name if name in _CATEGORIES or name in _MAJOR else None


@lru_cache(maxsize=8)
def _of_categories(*categories: str) -> CodePoints:
    return CodePoints.of(
        (code, code) for code in range(LAST + 1) if unicodedata.category(chr(code)).startswith(categories)
    )
