"""Regular expressions with catastrophic backtracking, found by names that they nearly match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from mirror_lib.topology.bounded_pattern import SlowPatternError
from mirror_lib.topology.java_regex import compile_java

#: Maximum length of a topic's name.
_LONGEST_NAME: Final = 249
#: Characters that represent a class, and one that no name has: a mismatch at the end makes an expression backtrack.
_USUAL, _END = "a0-", "!"
_RUN = re.compile(r"[A-Za-z0-9_-]+")


@lru_cache(maxsize=256)
def has_catastrophic_backtracking(pattern: str) -> bool:
    """Return True if a Java regular expression is known to need too long for a topic name.

    Others are errors when they match a name, which is bounded in time as well.

    Raises:
        ValueError: as `compile_java`.
    """
    compiled = compile_java(pattern)
    try:
        for name in _names(pattern):
            compiled.fullmatch(name)
    except SlowPatternError:
        return True
    return False


def _names(pattern: str) -> Sequence[str]:
    """Return names that a pattern nearly matches: its parts repeated, with a wrong end."""
    parts = dict.fromkeys([*_USUAL, ".", *_RUN.findall(pattern), *(char for char in pattern if _RUN.fullmatch(char))])
    return [part * (_LONGEST_NAME // len(part)) + _END for part in parts if len(part) <= _LONGEST_NAME]
