"""Measurements, and derived values: medians, ratios, goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from tools.bench.clusters.window import Window
from tools.bench.copiers.settings import Copier
from tools.bench.limit.model import Bound, LimitRun, bound, bounds_by_round
from tools.bench.workloads.workload import BatchKind, Codec, Workload


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether a copy equals its source."""

    #: Records on the target, by log start and end offsets.
    target_records: int
    #: Records whose key, value, timestamp and headers were compared with the source's at the same offset.
    sampled: int
    differing: int


@dataclass(frozen=True, slots=True)
class OwnFigures:
    """Figures that only this project's run reports."""

    #: Duration of the copy stage, as reported by the run.
    copy_seconds: float
    #: Duration of the whole run: connecting, planning, claiming partitions, copying, committing.
    run_seconds: float
    #: CPU of the driver, the JVM and the Python workers over the whole run.
    run_cpu_seconds: float
    #: Memory of the largest Python worker before its first copy, and at its peak while copying.
    worker_idle_bytes: int
    worker_peak_bytes: int

    @property
    def worker_growth_bytes(self) -> int:
        """Memory that copying added to an idle worker."""
        return max(self.worker_peak_bytes - self.worker_idle_bytes, 0)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One copy of one workload."""

    workload: Workload
    copier: Copier
    round: int
    window: Window
    comparison: Comparison
    own: OwnFigures | None = None

    @property
    def complete(self) -> bool:
        """True if the target holds exactly the source's records, by counts and samples."""
        return self.comparison.target_records == self.workload.records and self.comparison.differing == 0


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Summarize at least one value."""
        known = sorted(values)
        return cls(median(known), known[0], known[-1])


@dataclass(frozen=True, slots=True)
class Line:
    """One workload and one copier, over all rounds."""

    workload: Workload
    copier: Copier
    rate: Spread
    second_half_rate: Spread
    cpu_seconds: Spread
    complete: bool

    @property
    def megabytes_per_second(self) -> float:
        """Uncompressed values per second, in 10^6 bytes."""
        return self.rate.median * self.workload.value_bytes / 1e6

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds for a million records."""
        return self.cpu_seconds.median * 1e6 / self.workload.records


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal of the comparison. `reached` is None if there is no measurement for it."""

    text: str
    limit: float
    value: float | None
    detail: str
    reached: bool | None


@dataclass(frozen=True, slots=True)
class Results:
    """All measurements of one run of the comparison."""

    workloads: tuple[Workload, ...]
    measurements: tuple[Measurement, ...]
    #: Seconds of runs that found nothing to copy, on the warm session.
    idle_seconds: tuple[float, ...]
    #: Fetching alone and producing alone.
    limit_runs: tuple[LimitRun, ...] = ()

    def line(self, workload: Workload, copier: Copier) -> Line | None:
        """Return the summary of a workload and copier, None if it was not measured."""
        rounds = [each for each in self.measurements if each.workload == workload and each.copier is copier]
        if not rounds:
            return None
        return Line(
            workload=workload,
            copier=copier,
            rate=Spread.of(each.window.rate for each in rounds),
            second_half_rate=Spread.of(each.window.second_half_rate for each in rounds),
            cpu_seconds=Spread.of(each.window.cpu_seconds for each in rounds),
            complete=all(each.complete for each in rounds),
        )

    def speedup(self, workload: Workload, peer: Copier) -> float | None:
        """Return this project's median rate as a multiple of the peer's."""
        return self._ratio(workload, peer, lambda line: line.rate.median)

    def cpu_share(self, workload: Workload, peer: Copier) -> float | None:
        """Return this project's median CPU seconds as a share of the peer's."""
        return self._ratio(workload, peer, lambda line: line.cpu_seconds.median)

    def bound(self, workload: Workload) -> Bound | None:
        """Return the limit itself, None if it was not measured."""
        return bound(self.limit_runs, workload)

    def share_of_bound(self, workload: Workload) -> Spread | None:
        """Return the bound's seconds as a share of this project's, round by round, since the machine varies between
        rounds.
        """
        bounds = bounds_by_round(self.limit_runs, workload)
        ours = [each for each in self.measurements if each.workload == workload and each.copier is Copier.MIRROR]
        shares = [bounds[each.round] / each.window.seconds for each in ours if each.round in bounds]
        return Spread.of(shares) if shares else None

    def _ratio(self, workload: Workload, peer: Copier, figure: Callable[[Line], float]) -> float | None:
        ours, theirs = self.line(workload, Copier.MIRROR), self.line(workload, peer)
        if ours is None or theirs is None or figure(theirs) == 0:
            return None
        return figure(ours) / figure(theirs)


_MM2 = (Copier.MM2_DEFAULT, Copier.MM2_TUNED)
#: All copiers that this project is compared with.
PEERS = tuple(copier for copier in Copier if copier is not Copier.MIRROR)
_MEGABYTE = 1024 * 1024


def goals(results: Results) -> tuple[Goal, ...]:
    """Return the goals, each judged by its worst workload."""
    full = [workload for workload in results.workloads if workload.kind is BatchKind.FULL and not workload.tls]
    compressed = [workload for workload in full if workload.codec is not Codec.NONE]
    plain = [workload for workload in full if workload.codec is Codec.NONE]
    small = [workload for workload in results.workloads if workload.kind is BatchKind.SMALL and not workload.tls]
    growth = [each.own.worker_growth_bytes / _MEGABYTE for each in results.measurements if each.own is not None]
    copies = len(results.measurements)
    complete = sum(each.complete for each in results.measurements)
    return (
        _speed("Full batches, lz4: times MM2 default", 8.0, results, compressed, Copier.MM2_DEFAULT),
        _speed("Full batches, lz4: times MM2 tuned", 3.0, results, compressed, Copier.MM2_TUNED),
        _speed("Full batches, uncompressed: times MM2 default", 5.0, results, plain, Copier.MM2_DEFAULT),
        _at_least(
            "Full batches: share of the bound",
            0.85,
            {each.name: share.median if (share := results.share_of_bound(each)) else None for each in full},
        ),
        _speed("Small batches: times MM2 default", 3.5, results, small, Copier.MM2_DEFAULT),
        _speed("Small batches: times the client loop", 1.2, results, small, Copier.CLIENT_LOOP),
        *(_cpu(f"CPU of the copier: share of {peer.label}", 0.25, results, peer) for peer in _MM2),
        _at_most("Nothing to copy, warm session: seconds added", 1.5, results.idle_seconds),
        _at_most("Memory of a copy task above an idle worker: MB", 512.0, growth),
        Goal(
            text="Share of copies that equal their source",
            limit=1.0,
            value=complete / copies if copies else None,
            detail=f"{complete} of {copies}",
            reached=complete == copies if copies else None,
        ),
    )


def _speed(text: str, limit: float, results: Results, workloads: Iterable[Workload], peer: Copier) -> Goal:
    return _at_least(text, limit, {workload.name: results.speedup(workload, peer) for workload in workloads})


def _at_least(text: str, limit: float, ratios: Mapping[str, float | None]) -> Goal:
    worst = min(((ratio, name) for name, ratio in ratios.items() if ratio is not None), default=None)
    if worst is None:
        return Goal(text, limit, None, "not measured", None)
    return Goal(text, limit, worst[0], f"worst: {worst[1]}", worst[0] >= limit)


def _cpu(text: str, limit: float, results: Results, peer: Copier) -> Goal:
    shares = {workload.name: results.cpu_share(workload, peer) for workload in results.workloads if not workload.tls}
    worst = max(((share, name) for name, share in shares.items() if share is not None), default=None)
    if worst is None:
        return Goal(text, limit, None, "not measured", None)
    return Goal(text, limit, worst[0], f"worst: {worst[1]}", worst[0] <= limit)


def _at_most(text: str, limit: float, values: Iterable[float]) -> Goal:
    known = tuple(values)
    if not known:
        return Goal(text, limit, None, "not measured", None)
    return Goal(text, limit, max(known), f"worst of {len(known)}", max(known) < limit)
