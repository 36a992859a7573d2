"""What a round is expected to cost, from what earlier rounds of its flow cost. No I/O.

A round lasts as long as its longest task, so seconds go with the bytes of the heaviest bin: `seconds = fixed +
bytes / rate`. The line is fitted by medians (Theil and Sen: the median of the slopes between all pairs of rounds, then
the median of what is left), so that single rounds on a busy machine do not bend it. A round weighs half as much as one
that is five rounds younger, and less the more its number of tasks differs: tasks share brokers and cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any, Self

from mirror_lib.ledger import RoundRow

#: So many rounds make the weight of an older one half as much.
_HALF_LIFE_ROUNDS = 5
#: The line is not believed for a bin so many times as heavy as the heaviest that was measured.
_BELIEVED_FACTOR = 10


@dataclass(frozen=True, slots=True)
class BinSize:
    """What one task of a plan has to copy."""

    #: By the sizes of the logs, as far as they are known.
    bytes: int
    #: Offsets of the partitions whose bytes are not known.
    unsized_offsets: int = 0


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a round is expected to copy, and how long it takes from its plan to its commit."""

    #: None where sizes are not told, and no earlier round tells how large records are.
    bytes: int | None
    #: Of opening, copying and committing; None where earlier rounds tell nothing.
    seconds: float | None
    #: Earlier rounds that it was made of.
    rounds: int
    #: What it was made of: seconds of a round however little it copies, and what one task copies in a second.
    fixed_seconds: float | None = None
    task_bytes_per_second: float | None = None
    #: There is much more to copy than any earlier round did: `seconds` goes by the best speed that was ever seen.
    beyond_experience: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "bytes": self.bytes,
            "seconds": _rounded(self.seconds),
            "rounds": self.rounds,
            "fixed_seconds": _rounded(self.fixed_seconds),
            "task_bytes_per_second": _rounded(self.task_bytes_per_second),
            "beyond_experience": self.beyond_experience,
        }


@dataclass(frozen=True, slots=True)
class CostModel:
    """What rounds of a flow cost."""

    #: Of a round however little it copies.
    fixed_seconds: float
    #: For each byte of the heaviest bin.
    seconds_per_byte: float
    #: The same of the fastest round, opening and committing left out.
    best_seconds_per_byte: float
    #: Bytes copied for each byte that the log sizes promised; None where they promised none.
    bytes_per_estimated: float | None
    #: Bytes copied for each offset that was planned; None where none was.
    bytes_per_offset: float | None
    #: Of the round that was the largest in this.
    heaviest_bytes: int
    rounds: int

    @classmethod
    def fit(cls, rounds: Sequence[RoundRow], tasks: int) -> Self | None:
        """The model of some rounds, None when none of them copied anything.

        Args:
            rounds: newest first.
            tasks: of the round that is to be judged.
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
        """What a round with these bins costs."""
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
        """What is copied of a bin: not all that a log holds on disk, and more where the estimate was too small."""
        sized = size.bytes * (1.0 if self.bytes_per_estimated is None else self.bytes_per_estimated)
        if not size.unsized_offsets:
            return sized
        return None if self.bytes_per_offset is None else sized + size.unsized_offsets * self.bytes_per_offset


def expect_round(bins: Sequence[BinSize], rounds: Sequence[RoundRow]) -> Expectation:
    """What a round with these bins costs by earlier ones, newest first; without any, what the log sizes alone tell."""
    model = CostModel.fit(rounds, len(bins))
    if model is not None:
        return model.expect(bins)
    sized = all(not each.unsized_offsets for each in bins)
    return Expectation(bytes=sum(each.bytes for each in bins) if sized else None, seconds=None, rounds=0)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How good expectations were, as ratios of what was and what was expected: 1 is right, 2 is twice as much."""

    rounds: int
    #: The median.
    seconds: float
    #: The ratio furthest from 1, to either side.
    worst_seconds: float
    #: The median; None where no bytes were expected.
    bytes: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "rounds": self.rounds,
            "seconds_ratio": _rounded(self.seconds),
            "worst_seconds_ratio": _rounded(self.worst_seconds),
            "bytes_ratio": _rounded(self.bytes),
        }


def accuracy(rounds: Iterable[RoundRow]) -> Accuracy | None:
    """How good the expectations of some committed rounds were; None when nothing was expected of any."""
    judged = [each for each in rounds if each.committed_at is not None and each.expected_seconds and each.seconds > 0]
    if not judged:
        return None
    seconds = [each.seconds / each.expected_seconds for each in judged if each.expected_seconds]
    sizes = [each.bytes / each.expected_bytes for each in judged if each.expected_bytes]
    return Accuracy(
        rounds=len(judged),
        seconds=median(seconds),
        worst_seconds=max(seconds, key=lambda ratio: max(ratio, 1 / ratio)),
        bytes=median(sizes) if sizes else None,
    )


def _line(rounds: Sequence[RoundRow], weights: Sequence[float]) -> tuple[float, float]:
    """Fixed seconds and seconds per byte, neither below 0."""
    points = [(each.heaviest_bytes, each.seconds, weight) for each, weight in zip(rounds, weights, strict=True)]
    # The further two rounds are apart, the more their slope tells.
    slope = _median_of(
        ((y - other_y) / (x - other_x), weight * other_weight * abs(x - other_x))
        for (x, y, weight), (other_x, other_y, other_weight) in combinations(points, 2)
        if x != other_x
    )
    if slope is None or slope <= 0:
        # Rounds of one size do not tell a line: what is not copying is fixed, for want of anything better.
        beside = _weighted_median(
            [
                (each.opening_seconds + each.committing_seconds, weight)
                for each, (_, _, weight) in zip(rounds, points, strict=True)
            ]
        )
        copying = _weighted_median(
            [(each.copying_seconds / x, weight) for each, (x, _, weight) in zip(rounds, points, strict=True)]
        )
        return beside, copying
    fixed = _weighted_median([(y - slope * x, weight) for x, y, weight in points])
    if fixed < 0:
        return 0.0, _weighted_median([(y / x, weight) for x, y, weight in points])
    return fixed, slope


def _weight(age: int, tasks: int, wanted: int) -> float:
    """Of a round: by how many are younger, and by how far its number of tasks is from the one in question."""
    alike = min(tasks, wanted) / max(tasks, wanted) if tasks and wanted else 1.0
    return float(0.5 ** (age / _HALF_LIFE_ROUNDS) * alike)


def _median_of(values: Iterable[tuple[float, float]]) -> float | None:
    found = list(values)
    return _weighted_median(found) if found else None


def _weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """The value at which half of the weight is reached; between two values where it is reached exactly there."""
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


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
