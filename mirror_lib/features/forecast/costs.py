"""Estimates of a round's cost from earlier rounds of its flow. No I/O.

A round takes as long as its longest task, so its time depends on the bytes of the largest bin: `seconds = fixed +
bytes / rate`. The line is fitted by medians (Theil and Sen: the median of the slopes between all pairs of rounds, then
the median of the remainders), so that single rounds on a busy machine do not distort it. A round has half the weight of
one that is five rounds newer, and less the more its number of tasks differs: tasks share brokers and cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Self

from mirror_lib.ledger.rows import RoundRow
from mirror_lib.past_runs.costs import BinSize, Expectation

#: A round has half the weight of one that is this number of rounds newer.
_HALF_LIFE_ROUNDS = 5
#: The line is not used for bins larger than this multiple of the largest measured bin.
_BELIEVED_FACTOR = 10


def expected_cost(bins: Sequence[BinSize], rounds: Sequence[RoundRow]) -> Expectation | None:
    """Estimate a round with these bins from earlier rounds, newest first; None if none of them copied anything."""
    model = CostModel.fit(rounds, len(bins))
    return None if model is None else model.expect(bins)


@dataclass(frozen=True, slots=True)
class CostModel:
    """The cost of a flow's rounds."""

    #: Per round, regardless of its size.
    fixed_seconds: float
    #: Per byte of the largest bin.
    seconds_per_byte: float
    #: Seconds per byte of the fastest round, without opening and committing.
    best_seconds_per_byte: float
    #: Copied bytes per byte estimated from log sizes; None without such an estimate.
    bytes_per_estimated: float | None
    #: Copied bytes per planned offset; None without planned offsets.
    bytes_per_offset: float | None
    #: The largest bin of all rounds used.
    heaviest_bytes: int
    rounds: int

    @classmethod
    def fit(cls, rounds: Sequence[RoundRow], tasks: int) -> Self | None:
        """Fit a model to some rounds; None if none of them copied anything.

        Args:
            rounds: newest first.
            tasks: of the round to estimate.
        """
        measured = [each for each in rounds if each.heaviest_bytes > 0 and each.seconds > 0]
        if not measured:
            return None
        weights = [_weight(age, each.tasks, tasks) for age, each in enumerate(measured)]
        fixed, slope = _line(measured, weights)
        return cls(
            fixed_seconds=fixed,
            seconds_per_byte=slope,
            best_seconds_per_byte=min(each.copying_seconds / each.heaviest_bytes for each in measured),
            bytes_per_estimated=_median_of(
                (each.bytes / each.planned_bytes, weight)
                for each, weight in zip(measured, weights, strict=True)
                if each.planned_bytes
            ),
            bytes_per_offset=_median_of(
                (each.bytes / each.planned_records, weight)
                for each, weight in zip(measured, weights, strict=True)
                if each.planned_records
            ),
            heaviest_bytes=max(each.heaviest_bytes for each in measured),
            rounds=len(measured),
        )

    def expect(self, bins: Sequence[BinSize]) -> Expectation:
        """Estimate a round with these bins."""
        sizes = [self._bytes(each) for each in bins]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes):
            return Expectation(bytes=None, seconds=None, rounds=self.rounds)
        heaviest = max(known, default=0.0)
        beyond = heaviest > self.heaviest_bytes * _BELIEVED_FACTOR
        slope = self.best_seconds_per_byte if beyond else self.seconds_per_byte
        return Expectation(
            bytes=round(sum(known)),
            seconds=self.fixed_seconds + heaviest * slope,
            rounds=self.rounds,
            fixed_seconds=self.fixed_seconds,
            task_bytes_per_second=1 / slope if slope > 0 else None,
            beyond_experience=beyond,
        )

    def _bytes(self, size: BinSize) -> float | None:
        """Bytes that a bin will copy: a correction of the log sizes by what earlier rounds copied."""
        sized = size.bytes * (1.0 if self.bytes_per_estimated is None else self.bytes_per_estimated)
        if not size.unsized_offsets:
            return sized
        return None if self.bytes_per_offset is None else sized + size.unsized_offsets * self.bytes_per_offset


def _line(rounds: Sequence[RoundRow], weights: Sequence[float]) -> tuple[float, float]:
    """Fixed seconds and seconds per byte, neither below 0."""
    points = [(each.heaviest_bytes, each.seconds, weight) for each, weight in zip(rounds, weights, strict=True)]
    # The further two rounds are apart, the more precise is their slope.
    slope = _median_of(
        ((y - other_y) / (x - other_x), weight * other_weight * abs(x - other_x))
        for (x, y, weight), (other_x, other_y, other_weight) in combinations(points, 2)
        if x != other_x
    )
    if slope is None or slope <= 0:
        # Rounds of one size do not define a line: assume that opening and committing are the fixed part.
        opening_and_committing = _weighted_median(
            [
                (each.opening_seconds + each.committing_seconds, weight)
                for each, (_, _, weight) in zip(rounds, points, strict=True)
            ]
        )
        copying = _weighted_median(
            [(each.copying_seconds / x, weight) for each, (x, _, weight) in zip(rounds, points, strict=True)]
        )
        return opening_and_committing, copying
    fixed = _weighted_median([(y - slope * x, weight) for x, y, weight in points])
    if fixed < 0:
        return 0.0, _weighted_median([(y / x, weight) for x, y, weight in points])
    return fixed, slope


def _weight(age: int, tasks: int, wanted: int) -> float:
    """Weight of a round: by the number of newer rounds, and by the difference in the number of tasks."""
    alike = min(tasks, wanted) / max(tasks, wanted) if tasks and wanted else 1.0
    return float(0.5 ** (age / _HALF_LIFE_ROUNDS) * alike)


def _median_of(values: Iterable[tuple[float, float]]) -> float | None:
    found = list(values)
    return _weighted_median(found) if found else None


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """The value at which half of the weight is reached; the mean of two values if that is exactly between them."""
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    reached = 0.0
    for place, (value, weight) in enumerate(ordered):
        reached += weight
        if reached > half or place == len(ordered) - 1:
            return value
        if reached == half:
            return (value + ordered[place + 1][0]) / 2
    raise ValueError("a median of nothing")
