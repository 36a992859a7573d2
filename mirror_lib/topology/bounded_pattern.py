"""A compiled expression whose matches are bounded in time: authors of files and forms choose expressions."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

import regex

from mirror_lib.errors import ConfigurationError
from mirror_lib.outside_limits import PATTERN_SECONDS, PATTERN_SECONDS_A_MINUTE
from mirror_lib.topology.pattern_time import counted_pattern_time, why_no_pattern_time

#: No usual match takes as long, unless the machine stops the process in between.
_SLOW_SECONDS: Final = 0.005
_WINDOW_SECONDS: Final = 60.0
_SHOWN: Final = 80
#: Topics have at most 249 characters; groups may have more.
_USUAL_LENGTH: Final = 1_000


class SlowPatternError(ConfigurationError):
    """An expression takes too long to match."""


class BoundedPattern:
    """A Java regex, compiled. After it has taken too long once, it is an error at once.

    The engine stops by the processor time of the process, so that the load of the machine does not matter.
    """

    __slots__ = ("_compiled", "_error", "_quick", "_spent", "_window", "java")

    def __init__(self, java: str, translated: str, quick: re.Pattern[str] | None = None) -> None:
        """Compile.

        Args:
            java: as written.
            translated: for the engine.
            quick: the same for the standard library, if no name of usual length can take long: it is four times faster.

        Raises:
            regex.error: the engine rejects it.
        """
        self.java = java
        self._compiled = regex.compile(translated, regex.ASCII | regex.V0)
        self._quick = quick
        self._error: str | None = None
        self._spent = self._window = 0.0

    def __reduce__(self) -> tuple[object, tuple[str]]:
        from mirror_lib.topology.java_regex import compile_java

        return compile_java, (self.java,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundedPattern) and self.java == other.java

    def __hash__(self) -> int:
        return hash(self.java)

    def __repr__(self) -> str:
        return f"BoundedPattern({self.java!r})"

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self._compiled.groups)

    @property
    def group_numbers(self) -> dict[str, int]:
        """Number of each named group."""
        return dict(self._compiled.groupindex)

    def fullmatch(self, text: str) -> regex.Match[str] | re.Match[str] | None:
        """Return the match of a whole text (Java `matches()`).

        Raises:
            SlowPatternError: the expression takes too long.
        """
        if self._quick is not None and len(text) <= _USUAL_LENGTH:
            return self._quick.fullmatch(text)
        return self._within(self._compiled.fullmatch, text)

    def replace_first(self, replacement: Callable[[regex.Match[str]], str], text: str) -> str:
        """Return a text with its first match replaced (Java `replaceFirst`).

        Raises:
            SlowPatternError: the expression takes too long.
        """
        return str(self._within(self._compiled.sub, replacement, text, 1))

    def _within(self, search: Callable[..., Any], *arguments: object) -> Any:
        if why := self._error or why_no_pattern_time():
            raise self._slow(why)
        began = time.perf_counter()
        try:
            with counted_pattern_time():
                found = search(*arguments, timeout=PATTERN_SECONDS)
        except TimeoutError:
            self._error = f"takes more than {PATTERN_SECONDS:g} s to match a single name"
            raise self._slow(self._error) from None
        taken = time.perf_counter() - began
        if taken > _SLOW_SECONDS:
            self._note(began, taken)
        return found

    def _note(self, began: float, taken: float) -> None:
        if began - self._window > _WINDOW_SECONDS:
            self._window, self._spent = began, 0.0
        self._spent += taken
        if self._spent > PATTERN_SECONDS_A_MINUTE:
            self._error = f"takes more than {PATTERN_SECONDS_A_MINUTE:g} s to match names"
            raise self._slow(self._error)

    def _slow(self, why: str) -> SlowPatternError:
        shown = self.java if len(self.java) <= _SHOWN else f"{self.java[: _SHOWN - 3]}..."
        return SlowPatternError(
            f"the regular expression {shown!r} {why}.",
            action="It has nested repetitions that can match the same characters, as (a+)+: write it without the inner "
            "or the outer one.",
        )
