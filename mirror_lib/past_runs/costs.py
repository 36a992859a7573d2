"""The expected cost of a round, and how accurate such expectations were. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features
from mirror_lib.ledger.rows import RoundRow


@dataclass(frozen=True, slots=True)
class BinSize:
    """The size of one copy task's work in a plan."""

    #: From log sizes, as far as they are known.
    bytes: int
    #: Offsets of the partitions whose size in bytes is not known.
    unsized_offsets: int = 0


@dataclass(frozen=True, slots=True)
class Expectation:
    """The estimated bytes and duration of a round, from its plan to its commit."""

    #: None without log sizes, and without earlier rounds to derive a record size from.
    bytes: int | None
    #: Opening, copying and committing; None without earlier rounds.
    seconds: float | None
    #: Number of earlier rounds used.
    rounds: int
    #: Inputs of the estimate: seconds of a round regardless of its size, and bytes per second of one task.
    fixed_seconds: float | None = None
    task_bytes_per_second: float | None = None
    #: True if the round is much larger than any earlier one: `seconds` is based on the best measured speed.
    beyond_experience: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "bytes": self.bytes,
            "seconds": _round(self.seconds),
            "rounds": self.rounds,
            "fixed_seconds": _round(self.fixed_seconds),
            "task_bytes_per_second": _round(self.task_bytes_per_second),
            "beyond_experience": self.beyond_experience,
        }


def expect_round(bins: Sequence[BinSize], rounds: Sequence[RoundRow]) -> Expectation:
    """Estimate a round with these bins from earlier rounds, newest first; without any, or without the feature that
    estimates, from log sizes alone.
    """
    for estimate in installed_features().at(Hook.EXPECTATION):
        found: Expectation | None = estimate(bins, rounds)
        if found is not None:
            return found
    sized = all(not each.unsized_offsets for each in bins)
    return Expectation(bytes=sum(each.bytes for each in bins) if sized else None, seconds=None, rounds=0)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy of estimates, as ratios of actual to estimated: 1 is exact, 2 is twice as much."""

    rounds: int
    #: The median.
    seconds: float
    #: The ratio furthest from 1 in either direction.
    worst_seconds: float
    #: The median; None without an estimate of bytes.
    bytes: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "rounds": self.rounds,
            "seconds_ratio": _round(self.seconds),
            "worst_seconds_ratio": _round(self.worst_seconds),
            "bytes_ratio": _round(self.bytes),
        }


def accuracy(rounds: Iterable[RoundRow]) -> Accuracy | None:
    """The accuracy of the estimates of some committed rounds; None if none had an estimate."""
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


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
