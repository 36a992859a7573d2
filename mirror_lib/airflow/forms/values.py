"""Validate form values beyond their JSON schema.

Airflow compares a run's values with the schema when the run is triggered, and responds with 400. The first task checks
the rest: numbers that are NaN, control characters, and this project's own formats.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mirror_lib.airflow.forms.slow_patterns import has_catastrophic_backtracking
from mirror_lib.config.first_start import parse_first_start
from mirror_lib.outside_limits import PATTERN_SECONDS_A_LIST
from mirror_lib.planning.backfills import FROM_CUTOVER
from mirror_lib.topology.java_regex import compile_java

#: Names of formats in a field's schema; Airflow checks those of JSON schema.
JAVA_REGEX: Final = "java-regex"
BOUND, FIRST_BOUND = "log-bound", "first-log-bound"
#: Airflow's own name for a text of several lines.
LINES: Final = "multiline"
#: Control characters and surrogates, which no database accepts.
_FORBIDDEN = frozenset({"Cc", "Cs"})
_LAYOUT = "\r\n\t"
_SHOWN = 60


def value_problems(field: str, value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of the value of a field.

    Args:
        schema: of the field.
    """
    if isinstance(value, list):
        began = time.process_time()
        for each in value:
            if time.process_time() - began > PATTERN_SECONDS_A_LIST:
                yield f"{field}: its values take more than {PATTERN_SECONDS_A_LIST:g} s to check; write simpler ones"
                break
            yield from value_problems(field, each, schema.get("items", {}))
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{field} is {value}, but must be a number"
    elif isinstance(value, str):
        problem = _text_problem(value, schema.get("format"))
        if problem is not None:
            yield f"{field}: {_shorten(value)} {problem}"


def _text_problem(text: str, expected: str | None) -> str | None:
    text, allowed = text.strip(), _LAYOUT if expected == LINES else ""
    for char in text:
        if unicodedata.category(char) in _FORBIDDEN and char not in allowed:
            return f"contains the control character U+{ord(char):04X}"
    check = _FORMATS.get(expected or "")
    return check(text) if check is not None and text else None


def _regex_problem(text: str) -> str | None:
    try:
        compile_java(text)
    except ValueError as error:
        return f"is not a valid Java regular expression: {error}"
    if has_catastrophic_backtracking(text):
        return (
            "takes more than a second to match a single name: it has nested repetitions that can match the same "
            "characters. Write it without the inner or the outer one"
        )
    return None


def _bound_problem(text: str) -> str | None:
    try:
        parse_first_start(text)
    except ValueError as error:
        return f"must be {error}"
    return None


def _first_bound_problem(text: str) -> str | None:
    problem = None if text.lower() == FROM_CUTOVER else _bound_problem(text)
    return problem and f"{problem}; or {FROM_CUTOVER}"


_FORMATS: Mapping[str, Callable[[str], str | None]] = {
    JAVA_REGEX: _regex_problem,
    BOUND: _bound_problem,
    FIRST_BOUND: _first_bound_problem,
}


def _shorten(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}...")
