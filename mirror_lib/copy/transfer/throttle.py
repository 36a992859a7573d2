"""A limit on how fast a task reads: its share of the job's limit, in a token bucket that may be overdrawn.

So the average rate holds, regardless of the size of a response.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mirror_lib.planning.model import CopyJob
from mirror_lib.topology.names import TopicPartition

#: Minimum burst, regardless of the limit: a smaller fetch would not hold a batch.
_LEAST_BURST = 64 * 1024
#: Share of the limit that is divided evenly instead of by expected bytes: sizes are estimates.
_EVEN_PART = 0.1


def task_bytes_per_second(job: CopyJob, source: TopicPartition) -> float | None:
    """Bytes per second that the task of a partition may read: its share by the bytes that it is expected to copy.

    All tasks of the job together stay within the job's limit. None: no limit.
    """
    if not job.bytes_per_second:
        return None
    weights = [sum(opened.plan.weight for opened in bin_) for bin_ in job.bins]
    mine = next(at for at, bin_ in enumerate(job.bins) if any(opened.plan.source == source for opened in bin_))
    return task_rates(job.bytes_per_second, weights)[mine]


def task_rates(limit: float, weights: Sequence[int]) -> list[float]:
    """A limit divided by weight, and a tenth of it evenly; the shares add up to the limit."""
    total, even = sum(weights), limit / len(weights)
    if not total:
        return [even] * len(weights)
    return [_EVEN_PART * even + (1 - _EVEN_PART) * limit * weight / total for weight in weights]


class Throttle:
    """Bytes that may be read now; they grow with time, up to one second's worth."""

    def __init__(self, bytes_per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Args:
        bytes_per_second: more than 0.
        clock: monotonic seconds.
        """
        self._rate = bytes_per_second
        self._clock = clock
        self._left = bytes_per_second
        self._seen = clock()

    @property
    def burst(self) -> int:
        """Maximum bytes of one request."""
        return max(int(self._rate), _LEAST_BURST)

    def pause(self) -> float:
        """Seconds until something may be read; 0 if it may be read now."""
        now = self._clock()
        self._left = min(self._left + (now - self._seen) * self._rate, self._rate)
        self._seen = now
        return 0.0 if self._left > 0 else (1 - self._left) / self._rate

    def spend(self, size: int) -> None:
        """Count bytes before they are requested; negative for bytes that were counted and did not come."""
        self._left -= size
