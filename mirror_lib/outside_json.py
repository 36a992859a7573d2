"""JSON from other programs: a syntax error, an invalid number, or deep nesting is a `ValueError`."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from mirror_lib.outside_limits import JSON_ELEMENTS, JSON_LEVELS

#: A string, or a sign that comes with another value. Without backtracking; a string without an end has all of the text,
#: so that its end is not searched again from each of its quotes.
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|([,\[{])', re.DOTALL)


def parse_json(text: str | bytes, *, levels: int = JSON_LEVELS) -> Any:
    """Return the value of a JSON document.

    Args:
        levels: most levels of nesting.

    Raises:
        ValueError: the text is not JSON by RFC 8259 (`NaN` and `Infinity` are invalid), is nested more deeply, or has
            more values than `JSON_ELEMENTS`. The message contains no part of the text.
    """
    if _elements(text) > JSON_ELEMENTS:
        raise ValueError(f"the JSON has more than {JSON_ELEMENTS:,} values")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # The parser's message is harmless, but its exception contains the whole text.
        raise ValueError("the text is not JSON") from None
    level: list[Any] = [value]
    for _ in range(levels + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise ValueError(f"the JSON is nested deeper than {levels} levels")


def _elements(text: str | bytes) -> int:
    """Return at least the number of values, without making them: a few bytes of text may take a hundred of memory."""
    if len(text) <= JSON_ELEMENTS:
        return 0
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text), "replace")
    found = strings = 0
    for token in _TOKEN.finditer(text):
        if token.lastindex is None:
            strings += 1
        else:
            found += 1
        # A member has two strings; other texts are no JSON.
        if found > JSON_ELEMENTS or strings > 2 * (JSON_ELEMENTS + 1):
            return JSON_ELEMENTS + 1
    return found


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
