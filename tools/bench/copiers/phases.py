"""Time of a run by phase: clocks around the functions that `replicate` calls, in the bench alone.

The run itself is not changed and is not aware of it. A function with another name in a later version of this project is
not timed; its time is then in `other`.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

#: Phase -> its functions: module and the name by which the module calls them.
_TIMED: Sequence[tuple[str, str, str]] = (
    ("gather", "mirror_lib.copy.flow_plan", "gather_facts"),
    ("plan", "mirror_lib.copy.flow_plan", "plan_round"),
    ("open", "mirror_lib.copy.run", "open_partitions"),
    ("commit", "mirror_lib.copy.run", "commit_round"),
)
#: The runner is passed to `replicate` and timed by its caller.
COPY = "copy"
#: In the order of a round.
PHASES = ("gather", "plan", "open", COPY, "commit")


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One phase once, on a monotonic clock that all processes of a machine share."""

    phase: str
    began: float
    seconds: float


class PhaseClock:
    """Records when each phase began and how long it took."""

    def __init__(self) -> None:
        self._noted: list[PhaseTime] = []

    def taken(self) -> tuple[PhaseTime, ...]:
        """Return the phases since the last call, in the order in which they ended."""
        noted, self._noted = self._noted, []
        return tuple(noted)

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a clock around it."""

        @wraps(function)
        def with_clock(*arguments: Any, **options: Any) -> Any:
            began = time.monotonic()
            try:
                return function(*arguments, **options)
            finally:
                self._noted.append(PhaseTime(phase, began, time.monotonic() - began))

        return with_clock

    @contextmanager
    def watching(self, timed: Iterable[tuple[str, str, str]] = _TIMED) -> Iterator[None]:
        """Put clocks around the functions of a run, and remove them at the end."""
        kept: list[tuple[Any, str, Any]] = []
        for phase, module_name, name in timed:
            module = importlib.import_module(module_name)
            if (function := getattr(module, name, None)) is not None:
                kept.append((module, name, function))
                setattr(module, name, self.timed(phase, function))
        try:
            yield
        finally:
            for module, name, function in kept:
                setattr(module, name, function)


def seconds_by_phase(times: Iterable[PhaseTime], whole: float) -> dict[str, float]:
    """Return the seconds of each phase, summed, and `other`: the rest of the whole."""
    spent = dict.fromkeys(PHASES, 0.0)
    for each in times:
        spent[each.phase] = spent.get(each.phase, 0.0) + each.seconds
    spent["other"] = max(whole - sum(spent.values()), 0.0)
    return spent


def rounds_of(times: Iterable[PhaseTime]) -> tuple[tuple[PhaseTime, ...], ...]:
    """Return the phases of each round: a round begins with gathering facts from the clusters."""
    rounds: list[list[PhaseTime]] = []
    for each in sorted(times, key=lambda one: one.began):
        if each.phase == PHASES[0] or not rounds:
            rounds.append([])
        rounds[-1].append(each)
    return tuple(tuple(phases) for phases in rounds)
