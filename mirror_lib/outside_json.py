"""JSON that other programs wrote: a syntax error, a number that is none, or deep nesting is a `ValueError`."""

from __future__ import annotations

import json
from typing import Any, NoReturn

#: Levels of objects and arrays. Java's Jackson stops at 1000; documents of this project's peers have fewer than ten.
LARGEST_DEPTH = 64


def parse_json(text: str | bytes, largest_depth: int = LARGEST_DEPTH) -> Any:
    """Return the value of a JSON document.

    Raises:
        ValueError: the text is no JSON by RFC 8259 (`NaN` and `Infinity` are none), or is nested more deeply than
            `largest_depth`. The message repeats nothing of the text.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # The parser's message is harmless, but its exception holds the whole text.
        raise ValueError("the text is no JSON") from None
    level: list[Any] = [value]
    for _ in range(largest_depth + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise ValueError(f"the JSON has more than {largest_depth} levels")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
