"""How often a run that follows its writers begins a round: seldom enough that a steady flow costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

#: One copies what there was, the next what came meanwhile: a run that only catches up has no more, and never waits.
_ROUNDS_AT_ONCE = 2


class RoundPace:
    """Keeps the starts of a run's rounds apart (`mirror.run.round.seconds`).

    A round costs much the same however little it copies, so rounds without a pause cost several times the CPU of rounds
    a second apart. One that takes longer than that, for there is much to copy, is followed by the next at once.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Args:
        seconds: from the start of one round to the start of the next, at least; 0 keeps none apart.
        clock: seconds that do not jump.
        """
        self._seconds = seconds
        self._clock = clock
        self._begun = 0
        self._newest = 0.0

    def begin(self) -> None:
        """A round begins now."""
        self._begun += 1
        self._newest = self._clock()

    def next_start(self) -> float:
        """When the next round may begin at the earliest, by the clock."""
        if self._begun < _ROUNDS_AT_ONCE:
            return self._newest
        return self._newest + self._seconds
