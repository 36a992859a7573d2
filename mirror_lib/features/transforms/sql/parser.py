"""Parse Spark SQL with sqlglot: words, trees, and errors as findings.

This is the only module that calls sqlglot's parser. Importing sqlglot takes a noticeable part of a second, so modules
that may not need it import this one late.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ErrorLevel, ParseError, SqlglotError

from mirror_lib.features.transforms.sql.text import (
    Finding,
    Place,
    Word,
    comma_too_many,
    find_unbalanced,
    is_name,
    place_at,
)
from mirror_lib.problems import Severity

#: Blanks, `-- comment` and `/* comment */`. A comment of a line ends in no backslash, which continues it for Spark; one
#: in brackets holds no other, and is no hint.
_BETWEEN = re.compile(
    r"(?:[ \t\n]|\r\n|--(?:[^\r\n]*[^\r\n\\])?(?:\r?\n|\Z)|/\*(?!\+)(?:[^*/\r]|\r\n|\*(?!/)|/(?!\*))*\*/)*"
)
_STRING = re.compile(
    r"""'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | [rR](?:'[^']*'|"[^"]*") | [xX](?:'[0-9a-fA-F]*'|"[0-9a-fA-F]*")""",
    re.DOTALL | re.VERBOSE,
)
_QUOTED_NAME = re.compile(r"`(?:[^`]|``)*`", re.DOTALL)


def unlike_in_spark(text: str, words: Iterable[Word]) -> tuple[int, int] | None:
    """Return start and end of the first part that Spark may split otherwise; None when there is none."""
    end = 0
    for word in words:
        if word.start < end:
            # sqlglot splits `1L` into several tokens.
            continue
        if _BETWEEN.fullmatch(text, end, word.start) is None:
            return end, word.start
        shown = text[word.start : word.end]
        if word.is_string and _STRING.fullmatch(shown) is None:
            return word.start, word.end
        if not word.is_string and ("`" in shown or "'" in shown or '"' in shown) and not _QUOTED_NAME.fullmatch(shown):
            return word.start, word.end
        end = word.end
    return None if _BETWEEN.fullmatch(text, end) else (end, len(text))


DIALECT = "spark"

#: Quoted, raw, hexadecimal and other strings.
_STRINGS = frozenset(kind for kind in TokenType if kind.name.endswith("STRING"))
#: sqlglot's errors about a function that it knows with other arguments than Spark.
_ARGUMENTS = re.compile(r"(?:Required keyword|Required argument|The number of provided arguments)")
#: Functions in sqlglot that have their own syntax instead of arguments.
_SYNTAX = (exp.Binary, exp.Case, exp.If, exp.Cast, exp.Extract)
_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>|for (\w+)$|\b(\w+) with")
#: Syntax of Spark that sqlglot does not have.
_SPARK_ONLY = re.compile(r"(?<!:):(?!:)|>>>|![<>]|\b[xX]\s+['\"]")
_POSITION = re.compile(r"(\d+):(\d+)|line (\d+),? col(?:umn)?:? (\d+)", re.IGNORECASE)
_LAST_WORD = "Spark may still accept it: see `mirror transform preview`"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text parsed by sqlglot. `trees` is empty if that failed; `findings` say why."""

    words: tuple[Word, ...] = ()
    trees: tuple[exp.Expr, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def has_errors(self) -> bool:
        """True if the text is certainly wrong."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def read_words(text: str) -> Parsed:
    """Return the words of a text whose brackets are balanced."""
    variable = text.find("${")
    if variable >= 0:
        # Also in strings and comments: Spark replaces them before it parses the text.
        advice = "in a string write concat('$', '{'); for a variable of the file, check its provider and key"
        place = place_at(text, variable, variable + 2)
        return Parsed(findings=(Finding(Severity.ERROR, "Spark would replace ${...} by a setting", advice, place),))
    try:
        tokens = Dialect.get_or_raise(DIALECT).tokenize(text)
    except SqlglotError as error:
        return Parsed(findings=(_unreadable(text, error),))
    except Exception as error:  # sqlglot's own faults must not end a check: Spark has the last word.
        return Parsed(findings=(_gave_up(error),))
    words = tuple(_word(text, token) for token in tokens)
    unlike = unlike_in_spark(text, words)
    if unlike is not None:
        sentence = "Spark may parse this comment, string or character differently"
        advice = "write plain strings, and comments without nested comments or a trailing backslash"
        return Parsed(words, (), (Finding(Severity.ERROR, sentence, advice, place_at(text, *unlike)),))
    wrong = find_unbalanced(words)
    if wrong is not None:
        word, what = wrong
        place = place_at(text, word.start, word.end)
        return Parsed(words, (), (Finding(Severity.ERROR, f"the bracket {word.text} {what}", "correct it", place),))
    comma = comma_too_many(words)
    if comma is not None:
        # sqlglot ignores it.
        place = place_at(text, comma.start)
        return Parsed(words, (), (Finding(Severity.ERROR, "there is a comma too many", "remove it", place),))
    return Parsed(words)


def parse_expression(text: str) -> Parsed:
    """Parse a text that must be one expression."""
    return _parse(text, exp.Condition)


def parse_type(text: str) -> Parsed:
    """Parse a text that must be one data type."""
    return _parse(text, exp.DataType)


def parse_statements(text: str) -> Parsed:
    """Parse a text of one statement or more."""
    return _parse(text, None)


def _parse(text: str, kind: type[exp.Expr] | None) -> Parsed:
    read = read_words(text)
    if read.findings:
        return read
    try:
        return _parse_words(text, kind, read)
    except RecursionError as error:
        return Parsed(read.words, (), (_gave_up(error),))
    except Exception as error:  # As above.
        return Parsed(read.words, (), (_gave_up(error),))


def _parse_words(text: str, kind: type[exp.Expr] | None, read: Parsed) -> Parsed:
    try:
        return Parsed(read.words, _trees(text, kind, ErrorLevel.IMMEDIATE)[0])
    except ParseError as error:
        first = _first(error)
        if not _is_about_arguments(first):
            return Parsed(read.words, (), (_wrong_syntax(text, read, first),))
    # sqlglot knows the function with other arguments than Spark: other errors are reported, this one as a warning.
    trees, errors = _trees(text, kind, ErrorLevel.IGNORE)
    others = [each for each in errors if not _is_about_arguments(each)]
    if others:
        return Parsed(read.words, (), (_wrong_syntax(text, read, others[0]),))
    return Parsed(read.words, trees, (_other_arguments(text, read, first),))


def _trees(
    text: str, kind: type[exp.Expr] | None, level: ErrorLevel
) -> tuple[tuple[exp.Expr, ...], list[Mapping[str, Any]]]:
    dialect = Dialect.get_or_raise(DIALECT)
    parser = dialect.parser(error_level=level)
    tokens = dialect.tokenize(text)
    found = parser.parse(tokens, text) if kind is None else parser.parse_into(kind, tokens, text)
    errors: list[Mapping[str, Any]] = [details for each in parser.errors for details in each.errors]
    return tuple(tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)), errors


def _word(text: str, token: Token) -> Word:
    string = token.token_type in _STRINGS
    name = not string and (token.token_type is TokenType.IDENTIFIER or is_name(token.text))
    return Word(token.text, token.start, min(token.end + 1, len(text)), name, string)


def _first(error: ParseError) -> Mapping[str, Any]:
    return error.errors[0] if error.errors else {"description": str(error)}


def _is_about_arguments(details: Mapping[str, Any]) -> bool:
    """Return True if the error is about arguments; a missing operand of an operator is an error of the text instead."""
    description = str(details.get("description"))
    if not _ARGUMENTS.match(description):
        return False
    match = _CLASS.search(description)
    kind = getattr(exp, next((group for group in match.groups() if group), ""), None) if match else None
    return not isinstance(kind, type) or (issubclass(kind, exp.Func) and not issubclass(kind, _SYNTAX))


def _wrong_syntax(text: str, read: Parsed, details: Mapping[str, Any]) -> Finding:
    word = _word_of(text, read, details)
    place = place_at(text, word.start, word.end) if word else place_at(text, len(text.rstrip()))
    if word is not None and any(
        match.start() < word.end and word.start < match.end() for match in _SPARK_ONLY.finditer(text)
    ):
        sentence = f"`{text[word.start : word.end]}` is in a part that cannot be parsed here"
        return Finding(Severity.WARNING, sentence, _LAST_WORD, place)
    description = str(details.get("description"))
    shown = f"`{text[word.start : word.end]}`" if word else "the end"
    if _ARGUMENTS.match(description):
        sentence = f"an operand is missing near {shown}"
    elif "Expecting" in description or "Expected" in description:
        sentence = f"it is not valid SQL at {shown}: {_without_tokens(description)}"
    else:
        sentence = f"{shown} is unexpected here"
    return Finding(Severity.ERROR, sentence, "correct the Spark SQL", place)


def _other_arguments(text: str, read: Parsed, details: Mapping[str, Any]) -> Finding:
    word = _word_of(text, read, details)
    place = place_at(text, word.start, word.end) if word else None
    return Finding(Severity.WARNING, "a function has too many or too few arguments", _LAST_WORD, place)


def _word_of(text: str, read: Parsed, details: Mapping[str, Any]) -> Word | None:
    """Return the word of an error of sqlglot. It contains the text before, in and after it; columns differ by
    version.
    """
    before, marked, behind = (str(details.get(name) or "") for name in ("start_context", "highlight", "end_context"))
    found = text.find(before + marked + behind)
    if found < 0 or not marked:
        return None
    start = found + len(before)
    return next((word for word in read.words if word.start <= start < word.end), None)


def _unreadable(text: str, error: SqlglotError) -> Finding:
    """Return the finding for a quote or a comment that is never closed."""
    message = f"{error} {error.__cause__ or ''}"
    match = _POSITION.search(message.rsplit("from", 1)[-1])
    place = None
    if match:
        line, column = (int(group) for group in match.groups() if group)
        lines = text.split("\n")
        if 1 <= line <= len(lines):
            place = place_at(text, sum(len(each) + 1 for each in lines[: line - 1]) + max(column - 1, 0))
    return Finding(Severity.ERROR, "a quote or a comment is not closed", "close it", place or _last_quote(text))


def _last_quote(text: str) -> Place | None:
    offsets = [text.rfind(mark) for mark in ("'", '"', "`", "/*")]
    return place_at(text, max(offsets)) if max(offsets) >= 0 else None


def _gave_up(error: Exception) -> Finding:
    what = (
        "it is nested too deep to be checked here" if isinstance(error, RecursionError) else "it cannot be parsed here"
    )
    return Finding(Severity.WARNING, what, _LAST_WORD)


def _without_tokens(description: str) -> str:
    return re.sub(r"\s*but got .*|<[^>]*>|\bthis\b", "", description).strip().rstrip(".").lower()
