"""A limit on how fast a task reads: a token bucket that may be overdrawn, so that the average holds."""

from __future__ import annotations

import time
from collections.abc import Callable

#: So much may be asked for at once, however low the limit: a fetch for less would not hold a batch.
_LEAST_BURST = 64 * 1024


class Throttle:
    """Bytes that may be read now; they grow again by the second, up to the worth of one."""

    def __init__(self, bytes_per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Args:
        bytes_per_second: more than 0.
        clock: seconds that do not jump.
        """
        self._rate = bytes_per_second
        self._clock = clock
        self._left = bytes_per_second
        self._seen = clock()

    @property
    def burst(self) -> int:
        """The most that one request should ask for."""
        return max(int(self._rate), _LEAST_BURST)

    def pause(self) -> float:
        """Seconds until something may be read; 0 when that is now."""
        now = self._clock()
        self._left = min(self._left + (now - self._seen) * self._rate, self._rate)
        self._seen = now
        return 0.0 if self._left > 0 else (1 - self._left) / self._rate

    def spend(self, size: int) -> None:
        """Count bytes, before they are asked for; negative for what was counted and did not come."""
        self._left -= size
