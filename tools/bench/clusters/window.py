"""The duration of a copy, observed from outside: by the end offsets of its target topic.

The same definition applies to every copier. The target's end offsets are summed every 20 ms until the first record is
there, then less often, and every 5 ms at the end (`topics.pause`). The window ends at the first look
that saw every record. It starts when the first record arrived, which is between the last look that saw nothing and the
first that saw something: the records of that first look are assumed to have arrived at the average rate of all later
ones, and never before the last empty look. Start-up, planning and commit are outside the window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Look(NamedTuple):
    """One observation of the target and of the copier."""

    #: Seconds on a monotonic clock.
    at: float
    #: Sum of the target topic's end offsets.
    records: int
    #: User and system seconds of the copier's processes so far.
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Window:
    """From the first record on the target to the last."""

    records: int
    start: float
    end: float
    cpu_seconds: float
    #: Records per second after half of them had arrived: independent of a slow first second.
    second_half_rate: float

    @property
    def seconds(self) -> float:
        """Length of the window."""
        return self.end - self.start

    @property
    def rate(self) -> float:
        """Records per second over the whole window."""
        return self.records / self.seconds


def copy_window(looks: Sequence[Look], records: int) -> Window:
    """Return the window in which `records` records arrived.

    Raises:
        ValueError: no look before the first record, or none that saw all of them.
    """
    first = next((index for index, look in enumerate(looks) if look.records > 0), None)
    last = next((index for index, look in enumerate(looks) if look.records >= records), None)
    if not first:
        raise ValueError("the target was not watched before its first record arrived")
    if last is None:
        raise ValueError(f"only {looks[-1].records} of {records} records arrived")
    empty, seen, end = looks[first - 1], looks[first], looks[last]
    start = empty.at
    if end.records > seen.records:
        rate = (end.records - seen.records) / (end.at - seen.at)
        start = max(start, seen.at - seen.records / rate)
    half = looks[next(index for index in range(first, last + 1) if looks[index].records * 2 >= records)]
    window_rate = records / (end.at - start)
    return Window(
        records=records,
        start=start,
        end=end.at,
        cpu_seconds=end.cpu_seconds - _cpu_at(looks, start),
        second_half_rate=(records - half.records) / (end.at - half.at) if end.at > half.at else window_rate,
    )


def _cpu_at(looks: Sequence[Look], at: float) -> float:
    """Return CPU seconds used by `at`, interpolated between two looks."""
    after = bisect_left(looks, at, key=lambda look: look.at)
    if looks[after].at == at or after == 0:
        return looks[after].cpu_seconds
    left, right = looks[after - 1], looks[after]
    share = (at - left.at) / (right.at - left.at)
    return left.cpu_seconds + share * (right.cpu_seconds - left.cpu_seconds)
