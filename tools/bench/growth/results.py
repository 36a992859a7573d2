"""The cost of a run by the amount of something, and whether it grows faster than that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import log
from typing import Any

from rich.table import Table

from tools.bench.comparison.results import Goal
from tools.bench.copiers.phases import PHASES

#: A copy is linear in bytes if no size costs more than this many times the value of the line through all of them.
LINEAR_WITHIN = 1.25
#: An idle run is nearly independent of the existing data if the largest costs at most this much more than the smallest.
IDLE_SECONDS_MORE = 0.25


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of growth: everything else is constant."""

    name: str
    #: What is counted along it.
    unit: str
    #: True if the points are idle runs, which find nothing new, instead of copies.
    idle: bool = False


PARTITIONS = Series("partitions", "partitions")
RECORD_SIZE = Series("record-size", "B a record")
BYTES = Series("bytes", "MB")
IDLE_TOPICS = Series("idle-topics", "idle topics")
ALL_SERIES = (PARTITIONS, RECORD_SIZE, BYTES, IDLE_TOPICS)


@dataclass(frozen=True, slots=True)
class Cost:
    """One run; seconds."""

    seconds: float
    #: User and system time of driver, JVM and workers.
    cpu_seconds: float
    #: By phase, as far as it is known.
    phases: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Point:
    """One place along a series."""

    series: Series
    amount: float
    records: int
    #: Of values, uncompressed.
    bytes: int
    #: Time to create the target topics.
    topics_seconds: float
    #: The run that copies everything.
    copy: Cost
    #: The runs after it, which find nothing new: the median one.
    idle: Cost
    #: Records in the target topics afterwards.
    arrived: int

    @property
    def complete(self) -> bool:
        """True if all records are on the target."""
        return self.arrived == self.records


@dataclass(frozen=True, slots=True)
class Line:
    """Seconds = fixed + slope x amount, by the least squares of the relative differences."""

    fixed: float
    slope: float
    #: The largest ratio of a measured value to the line.
    worst_ratio: float


def fit(points: Sequence[tuple[float, float]]) -> Line | None:
    """Return the straight line with the least relative differences to some (amount, seconds); None for fewer than two.

    Each difference counts in proportion to the measured seconds: otherwise the largest amount would dominate.
    """
    if len({amount for amount, _ in points}) < 2 or any(seconds <= 0 for _, seconds in points):
        return None
    weights = [1 / seconds**2 for _, seconds in points]
    total = sum(weights)
    middle = sum(weight * amount for weight, (amount, _) in zip(weights, points, strict=True)) / total
    level = sum(weight * seconds for weight, (_, seconds) in zip(weights, points, strict=True)) / total
    spread = sum(weight * (amount - middle) ** 2 for weight, (amount, _) in zip(weights, points, strict=True))
    together = sum(
        weight * (amount - middle) * (seconds - level)
        for weight, (amount, seconds) in zip(weights, points, strict=True)
    )
    slope = together / spread
    fixed = level - slope * middle
    ratios = [seconds / said for amount, seconds in points if (said := fixed + slope * amount) > 0]
    return Line(fixed, slope, max(ratios, default=float("inf")))


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return how the costs grow between the last two points: 1 is linear, 2 quadratic; None if unknown."""
    known = [(amount, seconds) for amount, seconds in points if amount > 0 and seconds > 0]
    if len(known) < 2 or known[-1][0] == known[-2][0]:
        return None
    (before, cheap), (after, dear) = known[-2:]
    return log(dear / cheap) / log(after / before)


def goals(points: Sequence[Point]) -> tuple[Goal, ...]:
    """Return the goals: copies linear in bytes, idle runs nearly independent of the data."""
    sizes = [point for point in points if point.series == BYTES]
    line = fit([(point.bytes / 1e9, point.copy.seconds) for point in sizes])
    idle = [point.idle.seconds for point in sizes]
    more = max(idle) - min(idle) if len(idle) > 1 else None
    complete = sum(point.complete for point in points)
    return (
        Goal(
            text="Copies against bytes: measured seconds, times what a straight line says",
            limit=LINEAR_WITHIN,
            value=line.worst_ratio if line else None,
            detail=f"{line.fixed:.2f} s + {line.slope:.2f} s per GB" if line else "not measured",
            reached=line.worst_ratio <= LINEAR_WITHIN if line else None,
        ),
        Goal(
            text="Idle runs against data size: seconds that the slowest takes above the fastest",
            limit=IDLE_SECONDS_MORE,
            value=more,
            detail=f"{min(idle):.2f} to {max(idle):.2f} s" if idle else "not measured",
            reached=None if more is None else more <= IDLE_SECONDS_MORE,
        ),
        Goal(
            text="Copies with all records: share",
            limit=1.0,
            value=complete / len(points) if points else None,
            detail=f"{complete} of {len(points)}",
            reached=complete == len(points) if points else None,
        ),
    )


def series_table(series: Series, points: Sequence[Point]) -> Table:
    """Return one series: the copy with its phases, and the idle run after it."""
    here = [point for point in points if point.series == series]
    table = Table(title=_title(series, here), title_justify="left")
    heads = (
        series.unit,
        "records",
        "MB",
        "topics made",
        "copy run",
        *PHASES,
        "CPU",
        "s per GB",
        "idle run",
        "idle CPU",
    )
    for head in heads:
        table.add_column(head, justify="right")
    for point in here:
        table.add_row(
            f"{point.amount:,g}",
            f"{point.records:,}",
            f"{point.bytes / 1e6:,.0f}",
            f"{point.topics_seconds:.2f}",
            f"{point.copy.seconds:.2f}",
            *(f"{point.copy.phases.get(phase, 0.0):.2f}" for phase in PHASES),
            f"{point.copy.cpu_seconds:.2f}",
            f"{point.copy.seconds / point.bytes * 1e9:.2f}" if point.bytes else "-",
            f"{point.idle.seconds:.2f}",
            f"{point.idle.cpu_seconds:.2f}",
        )
    return table


def _title(series: Series, points: Sequence[Point]) -> str:
    grown = exponent([(point.amount, point.copy.seconds) for point in points])
    idle = exponent([(point.amount, point.idle.seconds) for point in points])
    exponents = [
        f"{what} ~ amount^{value:.2f}" for what, value in (("copy", grown), ("idle", idle)) if value is not None
    ]
    return f"Seconds against {series.name}" + (f" (between the last two: {', '.join(exponents)})" if exponents else "")


def to_plain(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the results for JSON."""
    return [{**asdict(point), "series": point.series.name} for point in points]
