"""JSON from other programs: a syntax error, an invalid number, or deep nesting is a `ValueError`."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from mirror_lib.outside_limits import JSON_LEVELS


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON document.

    Raises:
        ValueError: the text is not JSON by RFC 8259 (`NaN` and `Infinity` are invalid), or is nested more deeply than
            `JSON_LEVELS`. The message contains no part of the text.
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        # The parser's message is harmless, but its exception contains the whole text.
        raise ValueError("the text is not JSON") from None
    level: list[Any] = [value]
    for _ in range(JSON_LEVELS + 1):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return value
    raise ValueError(f"the JSON is nested deeper than {JSON_LEVELS} levels")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
