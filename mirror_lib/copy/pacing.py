"""The pace of a run's rounds: slow enough that a steady flow costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

#: The first copies the lag, the second what came meanwhile: a run that only catches up has no more, and never waits.
_ROUNDS_AT_ONCE = 2


class RoundPace:
    """Keeps the starts of a run's rounds apart (`mirror.run.round.seconds`).

    A round has nearly the same cost regardless of how little it copies, so rounds without a pause cost several times
    the CPU of rounds a second apart. A round that takes longer than that is followed by the next at once.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Args:
        seconds: minimum time from the start of one round to the start of the next; 0 disables it.
        clock: monotonic seconds.
        """
        self._seconds = seconds
        self._clock = clock
        self._started = 0
        self._newest = 0.0

    def begin(self) -> None:
        """Record that a round begins now."""
        self._started += 1
        self._newest = self._clock()

    def next_start(self) -> float:
        """The earliest time at which the next round may begin, by the clock."""
        if self._started < _ROUNDS_AT_ONCE:
            return self._newest
        return self._newest + self._seconds
