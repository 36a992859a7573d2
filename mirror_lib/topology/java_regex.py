"""Translates Java's regular expressions to Python's, so that patterns written for MM2 keep their meaning.

`java.util.regex.Pattern` (Java 17) is parsed and rewritten for `re`, and matched by the package `regex`, which can stop
a match: character classes become plain ranges, `.`, `^`, `$`, `\\Z` get Java's line terminators, inline flags are
applied to their scope. Everything is ASCII-only unless stated otherwise, as in Java without its `u` and `U` flags.
`\\b` is that of Java 19 and later. Syntax without an exact counterpart raises `ValueError`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import regex

from mirror_lib.outside_limits import PATTERN_CHARACTERS, PATTERN_PARTS, PATTERN_ROW
from mirror_lib.topology.bounded_pattern import BoundedPattern
from mirror_lib.topology.code_points import ALL, ESCAPES, LINE_TERMINATORS, NEWLINE, CodePoints, named_set
from mirror_lib.topology.pattern_time import counted_pattern_time, why_no_pattern_time


@lru_cache(maxsize=4096)
def compile_java(pattern: str) -> BoundedPattern:
    """A Java regex, compiled; its `fullmatch` is Java's `matches()`, bounded in time.

    Raises:
        ValueError: Java would reject it, it cannot be translated exactly, or the time of its file is over
            (`limited_pattern_time`).
    """
    if why := why_no_pattern_time():
        raise ValueError(f"the Java regex {_shown(pattern)!r} {why}; write simpler ones")
    try:
        with counted_pattern_time():
            translation = _Translation(pattern)
            translated = translation.run()
            # The package `regex` takes more than Java does, such as look-behind without an obvious width.
            quick = re.compile(translated, re.ASCII)
            return BoundedPattern(pattern, translated, quick if translation.ways <= _FEW_WAYS else None)
    except (re.error, regex.error, OverflowError, RecursionError) as error:
        hint = " (lookbehind must be of one width)" if "look-behind" in str(error) else ""
        raise ValueError(f"the Java regex {_shown(pattern)!r} cannot be used here: {error}{hint}") from error


def _shown(pattern: str) -> str:
    return pattern if len(pattern) <= 80 else f"{pattern[:77]}..."


#: An expression with this many repetitions of single characters in a row takes at most the square of a name's length.
_FEW_WAYS, _MANY_WAYS = 2, 1_000
#: Characters of a class that is compared range by range with each character of a name.
_LONG_CLASS = 2_000
_MANY_BRANCHES = 50
#: A plain name as users write it: its dots match any character unless they are escaped.
_NAME = re.compile(r"(?:[\w:@.-]|\\[.-])+", re.ASCII)
_UNESCAPED_DOT = re.compile(r"(?<!\\)\.")
_BRACKET_OR_ESCAPE = re.compile(r"[\\()\[\]{}]")


@dataclass(frozen=True, slots=True)
class PatternList:
    """A list of names and Java regexes. Names are looked up: matching all members with all topics is quadratic."""

    text: str
    #: Members that are names.
    names: frozenset[str] = field(compare=False, default=frozenset())
    #: Names in which dots match anything, by length and the places of these dots.
    dotted: Mapping[int, Mapping[tuple[int, ...], Collection[str]]] = field(compare=False, default_factory=dict)
    #: All other members.
    pattern: BoundedPattern | None = field(compare=False, default=None)

    def fullmatch(self, name: str) -> bool:
        """True if a member matches the whole name."""
        return (
            name in self.names
            or any(with_dots(name, dots) in names for dots, names in self.dotted.get(len(name), {}).items())
            or (self.pattern is not None and self.pattern.fullmatch(name) is not None)
        )


def _dots(pattern: str) -> tuple[int, ...]:
    """The places in a name at which its pattern has unescaped dots."""
    return tuple(at - pattern.count("\\", 0, at) for at in (dot.start() for dot in _UNESCAPED_DOT.finditer(pattern)))


def with_dots(name: str, places: tuple[int, ...]) -> str:
    """A name with dots at places where a dot would match its character; a line terminator is not matched."""
    characters = list(name)
    for place in places:
        if ord(characters[place]) not in LINE_TERMINATORS:
            characters[place] = "."
    return "".join(characters)


#: The list that matches nothing.
NO_PATTERNS = PatternList("(?!)")


def compile_list(patterns: Sequence[str]) -> PatternList | None:
    """Several Java regexes as one; None, which matches nothing, without any.

    They are joined by `|`, as in MM2 (`MirrorUtils.compilePatternList`), so a flag such as `(?i)` in one of them
    applies to those after it.

    Raises:
        ValueError: see `compile_java`.
    """
    return _compile_list(tuple(patterns)) if patterns else None


@lru_cache(maxsize=4096)
def _compile_list(patterns: tuple[str, ...]) -> PatternList:
    names: set[str] = set()
    dotted: dict[int, dict[tuple[int, ...], set[str]]] = {}
    rest: list[str] = []
    for member, pattern in enumerate(patterns):
        if _NAME.fullmatch(pattern):
            name = pattern.replace("\\", "")
            names.add(name)
            if dots := _dots(pattern):
                dotted.setdefault(len(name), {}).setdefault(dots, set()).add(name)
        elif _BRACKET_OR_ESCAPE.search(pattern):
            # A group or flag that opens here may extend into the members after it.
            rest += patterns[member:]
            break
        else:
            rest.append(pattern)
    return PatternList("|".join(patterns), frozenset(names), dotted, compile_java("|".join(rest)) if rest else None)


def translate(pattern: str) -> str:
    """The Python text of a Java regex, to be compiled with `re.ASCII`.

    Raises:
        ValueError: see `compile_java`.
    """
    return _Translation(pattern).run()


Replacement = Callable[[Any], str]


def compile_replacement(replacement: str, pattern: BoundedPattern) -> Replacement:
    r"""Java's replacement text (`$1`, `${name}`, `\$`) for matches of one pattern (`Matcher.appendReplacement`).

    Raises:
        ValueError: the text refers to a group that the pattern does not have, or is incomplete.
    """
    parts: list[str | int] = []
    position = 0
    while position < len(replacement):
        char = replacement[position]
        position += 1
        if char == "\\":
            if position == len(replacement):
                raise ValueError(f"the replacement {replacement!r} ends with a backslash; write \\\\ for one")
            parts.append(replacement[position])
            position += 1
        elif char == "$":
            group, position = _group_reference(replacement, position, pattern)
            parts.append(group)
        else:
            parts.append(char)
    return _Expansion(tuple(parts))


@dataclass(frozen=True, slots=True)
class _Expansion:
    """A class and not a closure, so that it can be pickled."""

    parts: tuple[str | int, ...]

    def __call__(self, match: regex.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self.parts)


def _group_reference(text: str, position: int, pattern: BoundedPattern) -> tuple[int, int]:
    named_group = re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(text, position)
    if named_group:
        if named_group[1] not in pattern.group_numbers:
            raise ValueError(
                f"the replacement {text!r} refers to group {named_group[1]}, which the regex does not have"
            )
        return pattern.group_numbers[named_group[1]], named_group.end()
    if position == len(text) or text[position] not in "0123456789":
        raise ValueError(f"the replacement {text!r} has a $ without a group; write \\$ for the character")
    group = int(text[position])
    if group > pattern.groups:
        raise ValueError(f"the replacement {text!r} refers to group {group}; the regex has {pattern.groups}")
    position += 1
    # Java takes further digits while such a group exists.
    while (
        position < len(text) and text[position] in "0123456789" and group * 10 + int(text[position]) <= pattern.groups
    ):
        group = group * 10 + int(text[position])
        position += 1
    return group, position


_SIMPLE_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_BEFORE_LAST_TERMINATOR = r"(?=(?:\r\n|[\n\r\x85\u2028\u2029])?\Z)(?!(?<=\r)\n)"


_REPETITION = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}")


class _Translation:
    """One pass over one pattern: a recursive descent that follows `java.util.regex.Pattern`."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._text = _without_quoting(pattern)
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        #: Parts of what was read last, counted repetitions written out; and of all counted repetitions together.
        self._parts = self._repeated = 0
        #: Single characters in a row up to here.
        self._row = 0
        #: Characters and ranges of all classes so far.
        self._written = 0
        #: Repetitions of single characters in a row; `_MANY_WAYS` and more if others can multiply them.
        self.ways = 0
        self._opened = 0
        self._closed: set[int] = set()
        self._names: dict[str, int] = {}

    def run(self) -> str:
        body = self._alternatives()
        if self._at < len(self._text):
            raise self._error("has a closing parenthesis without an opening one")
        return body

    # Reading

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, length: int = 1) -> str:
        taken = self._peek(length)
        if len(taken) < length:
            raise self._error("ends unexpectedly")
        self._at += length
        return taken

    def _took(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _error(self, what: str) -> ValueError:
        return ValueError(f"the Java regex {self._pattern!r} {what}")

    def _write_out(self, characters: int) -> None:
        self._written += characters
        if self._written > PATTERN_CHARACTERS:
            raise ValueError(f"the Java regex {_shown(self._pattern)!r} has too many classes of characters")

    # Structure

    def _alternatives(self) -> str:
        return "|".join(self._branches())

    def _branches(self) -> list[str]:
        branches: list[str] = []
        most = 0
        before, longest = self._row, 0
        while not branches or self._took("|"):
            self.ways, self._row = 0, before
            branches.append(self._sequence())
            most, longest = max(most, self.ways), max(longest, self._row)
        self._row = longest
        # Each of several groups in a row may match in several ways, and many members may each take the square.
        is_nested = self._peek() == ")"
        many = len(branches) > 1 if is_nested else len(branches) > _MANY_BRANCHES and most > 1
        self.ways = most + (_MANY_WAYS if many else 0)
        return branches

    def _sequence(self) -> str:
        parts = []
        while self._peek() not in ("", "|", ")"):
            before, self._parts = self._parts, 1
            ways, self.ways = self.ways, 0
            is_single = self._peek() != "("
            atom = self._atom()
            if is_single and atom is not None:
                self._write_out(len(atom))
                self.ways += _MANY_WAYS if len(atom) > _LONG_CLASS else 0
            parts.append(self._quantify(atom, is_single=is_single))
            if parts[-1] != (atom or ""):
                self._row = 0
            elif is_single:
                self._row += 1
                if self._row > PATTERN_ROW:
                    shown = _shown(self._pattern)
                    raise ValueError(f"the Java regex {shown!r} has more than {PATTERN_ROW:,} characters in a row")
            self._parts += before
            self.ways += ways
        return "".join(parts)

    def _quantify(self, atom: str | None, *, is_single: bool) -> str:
        if atom is None:
            # Only flags: nothing to repeat.
            return ""
        found = _REPETITION.match(self._text, self._at)
        if found is None:
            if self._peek() == "{":
                raise self._error("has a { that begins no repetition; write [{] for the character")
            return atom
        self._at = found.end()
        self.ways += 1 if is_single else _MANY_WAYS
        mode = self._take() if self._peek() in ("+", "?") else ""
        if self._peek() in ("*", "+", "?", "{"):
            raise self._error("repeats a repetition; put parentheses around the first")
        bounds = re.findall(r"\d+", found[0])
        if len(bounds) == 2 and int(bounds[0]) > int(bounds[1]):
            raise self._error(f"repeats {found[0]}, where the second number must not be smaller")
        if bounds and int(bounds[0]) > 1:
            self._parts *= int(bounds[0])
            self._repeated += self._parts
            if self._repeated > PATTERN_PARTS:
                raise self._error(f"has repetitions that repeat more than {PATTERN_PARTS:,} parts")
        return f"(?:{atom}){found[0]}{mode}"

    def _atom(self) -> str | None:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return self._class().pattern()
        if char == "\\":
            return self._escape()
        if char == ".":
            return self._dot()
        if char == "^":
            return self._line_start()
        if char == "$":
            return self._line_end()
        if char in "*+?":
            todo = "write .* for any text" if char == "*" else f"write [{char}] for the character"
            raise self._error(f"has a {char} with nothing to repeat; {todo}")
        if char == "{":
            raise self._error("has a { with nothing to repeat; write [{] for the character")
        return self._literal(ord(char)).pattern()

    def _literal(self, code: int) -> CodePoints:
        return self._fold(CodePoints(((code, code),)))

    def _fold(self, points: CodePoints) -> CodePoints:
        return points.fold_ascii() if "i" in self._flags else points

    def _dot(self) -> str:
        if "s" in self._flags:
            return ALL.pattern()
        return (~(NEWLINE if "d" in self._flags else LINE_TERMINATORS)).pattern()

    def _line_start(self) -> str:
        if "m" not in self._flags:
            return r"\A"
        # In Java no line starts at the end of the text, not even in an empty text.
        return (r"(?:\A|(?<=\n))" if "d" in self._flags else rf"(?:\A|{_LINE_BEFORE})") + r"(?!\Z)"

    def _line_end(self) -> str:
        if "m" not in self._flags:
            return r"(?=\n?\Z)" if "d" in self._flags else _BEFORE_LAST_TERMINATOR
        return r"(?=\n|\Z)" if "d" in self._flags else r"(?:(?=[\n\r\x85\u2028\u2029]|\Z)(?!(?<=\r)\n))"

    # Groups and flags

    def _group(self) -> str | None:
        before = self._flags
        number = None
        if not self._took("?"):
            opening, number = "(", self._open()
        elif self._peek(2) in ("<=", "<!"):
            sign = self._take(2)
            # Python's lookbehind has a fixed width, Java's alternatives may differ: each gets its own lookbehind.
            body = self._split_lookbehind(sign)
            self._flags = before
            return body
        elif self._took("<"):
            opening, number = self._named_group()
        elif self._peek() in (":", "=", "!", ">"):
            opening = "(?" + self._take()
        else:
            if self._inline_flags():
                return None
            opening = "(?:"
        body = self._alternatives()
        if not self._took(")"):
            raise self._error("has an opening parenthesis without a closing one")
        self._flags = before
        if number is not None:
            self._closed.add(number)
        return f"{opening}{body})"

    def _split_lookbehind(self, sign: str) -> str:
        branches = self._branches()
        if not self._took(")"):
            raise self._error("has an opening parenthesis without a closing one")
        each = [f"(?{sign}{branch})" for branch in branches]
        if len(each) == 1:
            return each[0]
        # After none of the alternatives, or after one of them.
        return f"(?:{''.join(each)})" if sign == "<!" else f"(?:{'|'.join(each)})"

    def _open(self) -> int:
        self._opened += 1
        return self._opened

    def _named_group(self) -> tuple[str, int]:
        name = self._name()
        if name in self._names:
            raise self._error(f"has two groups named {name}")
        self._names[name] = number = self._open()
        return f"(?P<{name}>", number

    def _name(self) -> str:
        found = re.compile("([a-zA-Z][a-zA-Z0-9]*)>").match(self._text, self._at)
        if found is None:
            raise self._error("has a group whose name is not letters and digits between < and >")
        self._at = found.end()
        return found[1]

    def _inline_flags(self) -> bool:
        """Read `i-s:` or `i-s)`; true for the second form, which applies to the end of the enclosing group."""
        on = True
        flags = set(self._flags)
        while (char := self._take()) not in (":", ")"):
            if char == "-" and on:
                on = False
            elif char in "imsd":
                (flags.add if on else flags.discard)(char)
            elif char in "xuU":
                if on:
                    raise self._error(f"uses the flag {char}, which is not supported here")
            else:
                raise self._error(f"has an unknown flag {char!r}")
        self._flags = frozenset(flags)
        return char == ")"

    # Escapes

    def _escape(self) -> str:
        char = self._take()
        if char in "123456789":
            return self._back_reference(char)
        if char == "k":
            if not self._took("<"):
                raise self._error(r"has a \k without a name; write \k<name>")
            name = self._name()
            if self._names.get(name) not in self._closed:
                raise self._error(f"refers to the group {name} where there is no such group yet")
            return self._reference(str(self._names[name]))
        fixed = {
            "A": r"\A",
            "z": r"\Z",
            "Z": r"(?=\n?\Z)" if "d" in self._flags else _BEFORE_LAST_TERMINATOR,
            "B": r"(?!\b)",
        }
        if char in fixed:
            return fixed[char]
        if char == "b" and self._peek(3) != "{g}":
            return r"\b"
        self._at -= 1
        points, _ = self._set_escape()
        return points.pattern()

    def _back_reference(self, digits: str) -> str:
        while self._peek() and self._peek() in "0123456789" and int(digits + self._peek()) <= self._opened:
            digits += self._take()
        if int(digits) not in self._closed:
            raise self._error(f"refers to group {digits} where there is no such group yet")
        return self._reference(digits)

    def _reference(self, number: str) -> str:
        self.ways += _MANY_WAYS
        return f"(?i:\\{number})" if "i" in self._flags else f"(?:\\{number})"

    def _set_escape(self) -> tuple[CodePoints, int | None]:
        """After a backslash, in and out of classes: the matched code points; the code point if there is only one."""
        char = self._take()
        if char in ESCAPES:
            return ESCAPES[char], None
        if char in "pP":
            return self._property(negated=char == "P"), None
        code = self._character(char)
        return self._literal(code), code

    def _property(self, *, negated: bool) -> CodePoints:
        name = self._take_braced() if self._took("{") else self._take()
        try:
            points = named_set(name, ignore_case="i" in self._flags)
        except ValueError as error:
            raise self._error(f"cannot be used: {error}") from None
        return ~points if negated else points

    def _take_braced(self) -> str:
        end = self._text.find("}", self._at)
        if end < 0:
            raise self._error("has a { without a }")
        inside = self._text[self._at : end]
        self._at = end + 1
        return inside

    def _character(self, char: str) -> int:
        if char in _SIMPLE_ESCAPES:
            return ord(_SIMPLE_ESCAPES[char])
        if char == "c":
            return ord(self._take()) ^ 64
        if char == "0":
            return self._number(r"[0-3][0-7]{2}|[0-7]{1,2}", 8)
        if char == "x":
            return self._number(r"[0-9a-fA-F]{2}", 16) if self._peek() != "{" else self._in_braces()
        if char == "u":
            return self._utf16()
        if char == "N" and self._took("{"):
            name = self._take_braced()
            try:
                return ord(unicodedata.lookup(name))
            except KeyError:
                raise self._error(f"names an unknown character {name}") from None
        if char.isascii() and char.isalnum():
            raise self._error(f"uses \\{char}, which does not exist in Java or has no exact counterpart here")
        return ord(char)

    def _number(self, digits: str, base: int) -> int:
        found = re.compile(digits).match(self._text, self._at)
        if found is None:
            raise self._error("has a character number with too few digits")
        self._at = found.end()
        return int(found[0], base)

    def _in_braces(self) -> int:
        self._take()
        digits = self._take_braced()
        if not re.fullmatch("[0-9a-fA-F]{1,6}", digits) or int(digits, 16) > 0x10FFFF:
            raise self._error(f"has an invalid character number {digits!r}")
        return int(digits, 16)

    def _utf16(self) -> int:
        code = self._number("[0-9a-fA-F]{4}", 16)
        if 0xD800 <= code < 0xDC00:
            low = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self._text, self._at)
            if low:
                self._at = low.end()
                return 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return code

    # Character classes

    def _class(self) -> CodePoints:
        """After `[`: unions and intersections, where a leading `^` negates all that follows."""
        negated = self._took("^")
        points: CodePoints | None = None
        operand = self._union()
        while self._took("&&"):
            if operand is not None:
                points = operand if points is None else points & operand
                self._write_out(len(points.ranges))
            operand = self._union(after_intersection=True)
            if operand is None:
                raise self._error("has an && without a right side")
        if operand is None:
            raise self._error("has an empty character class")
        points = operand if points is None else points & operand
        if not self._took("]"):
            raise self._error("has a [ without a ]")
        return ~points if negated else points

    def _union(self, *, after_intersection: bool = False) -> CodePoints | None:
        ranges: list[tuple[int, int]] = []
        is_empty = True
        while True:
            char = self._peek()
            if not char:
                raise self._error("has a [ without a ]")
            if self._peek(2) == "&&" or (char == "]" and (not is_empty or after_intersection)):
                return None if is_empty else CodePoints.of(ranges)
            if char == "[":
                self._take()
                member = self._class()
                if after_intersection and self._peek() not in ("[", "]", "&", ""):
                    # `Pattern.clazz` assigns the rest to the right side, and forgets the class.
                    raise self._error("has characters behind a class after an &&, where Java drops the class")
            elif char == "&" and after_intersection:
                raise self._error("has a single & after an &&, which Java parses unexpectedly; write \\&")
            else:
                member = self._range()
            ranges += member.ranges
            self._write_out(len(member.ranges))
            is_empty = False

    def _range(self) -> CodePoints:
        points, first = self._member()
        if first is None or self._peek() != "-" or self._peek(2)[1:] in ("[", "]", ""):
            return points
        self._take()
        _, last = self._member()
        if last is None or last < first:
            raise self._error("has a range in a character class whose end is before its start")
        return self._fold(CodePoints(((first, last),)))

    def _member(self) -> tuple[CodePoints, int | None]:
        char = self._take()
        if char == "\\":
            if self._peek(2) == "v-":
                raise self._error(
                    "has \\v before a hyphen in a class, where Java takes it for one character; write \\x0B"
                )
            return self._set_escape()
        return self._literal(ord(char)), ord(char)


_LINE_BEFORE = r"(?:(?<=[\n\x85\u2028\u2029])|(?<=\r)(?!\n))"


def _without_quoting(pattern: str) -> str:
    r"""The pattern with `\Q...\E` written as single escapes, as Java does first of all (`RemoveQEQuoting`)."""
    out: list[str] = []
    position = 0
    while position < len(pattern):
        if pattern.startswith("\\Q", position):
            end = pattern.find("\\E", position + 2)
            quoted = pattern[position + 2 : end if end >= 0 else None]
            out.extend(_quote(char, first=index == 0) for index, char in enumerate(quoted))
            position = end + 2 if end >= 0 else len(pattern)
        elif pattern[position] == "\\":
            out.append(pattern[position : position + 2])
            position += 2
        else:
            out.append(pattern[position])
            position += 1
    return "".join(out)


def _quote(char: str, *, first: bool) -> str:
    if char.isascii() and char.isdigit():
        # Prevents that the digit continues a number before the quote.
        return f"\\x3{char}" if first else char
    return char if not char.isascii() or char.isalpha() else f"\\{char}"
