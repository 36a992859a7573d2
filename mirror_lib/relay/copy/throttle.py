"""A limit on how fast a task reads: its part of the job's, in a token bucket that may be overdrawn.

So the average holds, whatever a request brings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mirror_lib.relay.model import CopyJob
from mirror_lib.topology import TopicPartition

#: So much may be asked for at once, however low the limit: a fetch for less would not hold a batch.
_LEAST_BURST = 64 * 1024
#: Of a task's part of the limit, what does not depend on how many bytes it is expected to copy: sizes are estimates.
_EVEN_PART = 0.1


def task_bytes_per_second(job: CopyJob, source: TopicPartition) -> float | None:
    """What the task that copies a partition may read in a second: its part by the bytes that it is expected to copy.

    All tasks of the job together may read what the job may. None: as much as it can.
    """
    if not job.bytes_per_second:
        return None
    weights = [sum(opened.plan.weight for opened in bin_) for bin_ in job.bins]
    mine = next(at for at, bin_ in enumerate(job.bins) if any(opened.plan.source == source for opened in bin_))
    return task_rates(job.bytes_per_second, weights)[mine]


def task_rates(limit: float, weights: Sequence[int]) -> list[float]:
    """A limit divided by weight, and a tenth of it evenly; the parts add up to the limit."""
    total, even = sum(weights), limit / len(weights)
    if not total:
        return [even] * len(weights)
    return [_EVEN_PART * even + (1 - _EVEN_PART) * limit * weight / total for weight in weights]


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
