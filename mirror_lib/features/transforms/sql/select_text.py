"""The SELECT of a file, extended to keep columns that it does not name."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import RECORDS, SelectStatement
from mirror_lib.features.transforms.sql.parser import read_words
from mirror_lib.features.transforms.sql.text import Word

_OPENING, _CLOSING = "([{", ")]}"


class CarryingSelect(NamedTuple):
    """A statement for `SparkSession.sql`, whose argument `frame` is the DataFrame."""

    #: The user's own braces are doubled.
    text: str
    #: Number of `*` for all columns among the outputs.
    stars: int


def carry_columns(statement: SelectStatement, kept: Sequence[str]) -> CarryingSelect:
    """Return the statement with more columns before its own.

    The records get their name by a WITH: it is not visible in other sessions, and no table of that name hides it.

    Args:
        statement: one plain SELECT that `select_check` accepts.
        kept: names of columns of the frame, which no other column has.

    Raises:
        ConfigurationError: it is not a plain SELECT.
    """
    words = read_words(statement.text).words
    first = words[0] if words else None
    if first is None or first.lower != "select" or first.is_string or (len(words) > 1 and words[1].lower == "distinct"):
        raise ConfigurationError(
            f"{statement.file} is not a plain SELECT.", action=f"Write SELECT ... FROM {RECORDS} into it."
        )
    # `SELECT ALL x` is `SELECT x`; a column may be called `all`, too.
    all_rows = len(words) > 2 and words[1].lower == "all" and words[2].text not in (",", ".", "(")
    place = (words[1] if all_rows and words[2].lower not in ("from", "as") else first).end
    text = statement.text
    head, tail = (part.replace("{", "{{").replace("}", "}}") for part in (text[:place], text[place:]))
    columns = ", ".join(kept)
    return CarryingSelect(
        f"WITH {RECORDS} AS (SELECT * FROM {{frame}})\n{head} {columns}, {tail.lstrip(' ')}", _stars(words)
    )


def _stars(words: Sequence[Word]) -> int:
    """Return the number of outputs that are `*` or `name.*`."""
    depth, found = 0, 0
    for before, word in pairwise(words):
        if before.text in _OPENING and not before.is_string:
            depth += 1
        if word.text in _CLOSING and not word.is_string:
            depth -= 1
        if depth == 0 and not word.is_string and word.lower == "from":
            break
        if depth == 0 and word.text == "*" and not word.is_string and before.lower in ("select", ",", ".", "all"):
            found += 1
    return found
