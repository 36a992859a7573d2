"""The lag of each record at its arrival, as far as the batch headers show it. Pure.

A batch's header has the create time of its oldest and of its newest record; the records between are assumed to be
spread evenly. The lag of a record is the time at which an observer on the target got its batch, minus its create time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Arrival(NamedTuple):
    """A batch with its time of arrival; times in epoch milliseconds."""

    at: int
    partition: int
    records: int
    first_timestamp: int
    max_timestamp: int


@dataclass(slots=True)
class LagHistogram:
    """Records by their lag in whole milliseconds. If the clock was set back in between, the lag is 0."""

    counts: Counter[int] = field(default_factory=Counter)

    def add(self, arrival: Arrival) -> None:
        """Count the records of a batch."""
        low = max(arrival.at - arrival.max_timestamp, 0)
        high = max(arrival.at - arrival.first_timestamp, low)
        points = min(arrival.records, high - low + 1)
        each, rest = divmod(arrival.records, points)
        for number in range(points):
            lag = low + (high - low) * number // max(points - 1, 1)
            self.counts[lag] += each + (1 if number < rest else 0)

    @property
    def records(self) -> int:
        """The number of counted records."""
        return self.counts.total()

    def percentile(self, percent: float) -> float:
        """Return the smallest lag, in seconds, that at least this share of the records did not exceed.

        Raises:
            ValueError: nothing was counted.
        """
        wanted, seen = self.records * percent / 100, 0
        for lag in sorted(self.counts):
            seen += self.counts[lag]
            if seen >= wanted:
                return lag / 1000
        raise ValueError("no record was seen")


@dataclass(frozen=True, slots=True)
class Lag:
    """The distribution of the lag over a span of time, in seconds."""

    records: int
    median: float
    p99: float
    most: float

    @classmethod
    def of(cls, arrivals: Iterable[Arrival], *, created_from: int, created_to: int) -> Lag:
        """Return the lag of records created in this span, whenever they arrived; a batch belongs to the span of its
        oldest record.

        Raises:
            ValueError: there are none.
        """
        histogram = LagHistogram()
        for arrival in arrivals:
            if created_from <= arrival.first_timestamp < created_to:
                histogram.add(arrival)
        return cls(
            records=histogram.records,
            median=histogram.percentile(50),
            p99=histogram.percentile(99),
            most=histogram.percentile(100),
        )


@dataclass(frozen=True, slots=True)
class Second:
    """One second of the time line, by time of arrival."""

    #: Since the beginning of the load.
    number: int
    records: int
    #: The largest lag of its arrivals, in seconds; None without arrivals.
    most: float | None


def time_line(arrivals: Iterable[Arrival], began: int) -> tuple[Second, ...]:
    """Return every second from the beginning of the load to the last arrival, including those without arrivals."""
    by_second: dict[int, list[Arrival]] = {}
    for arrival in arrivals:
        by_second.setdefault((arrival.at - began) // 1000, []).append(arrival)
    if not by_second:
        return ()
    return tuple(_second(number, by_second) for number in range(min(0, *by_second), max(by_second) + 1))


def _second(number: int, by_second: Mapping[int, list[Arrival]]) -> Second:
    seen = by_second.get(number, [])
    lags = [max(arrival.at - arrival.first_timestamp, 0) for arrival in seen]
    return Second(number, sum(arrival.records for arrival in seen), max(lags) / 1000 if lags else None)
