"""The limit: the sum of fetching alone and producing alone, each in the fastest way on this machine.

Brokers and copier share the cores, so a copy can hardly take less time than both halves one after the other, each by a
client that does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from mirror_lib.config.copy_settings import CopySettings
from tools.bench.workloads.workload import Workload

_COPY = CopySettings()
_MEBIBYTE = 1024 * 1024


class Half(StrEnum):
    """One of the two halves of a copy."""

    FETCHING = "fetching"
    PRODUCING = "producing"


@dataclass(frozen=True, slots=True)
class FetchWay:
    """How a process reads its partitions from their leader.

    Attributes:
        connections: to the leader; the partitions are split over them.
        outstanding: requests in flight on each connection; the partitions are split over these too.
        max_bytes: of one response.
        partition_bytes: of one partition in it.
    """

    name: str
    connections: int
    outstanding: int
    max_bytes: int
    partition_bytes: int


@dataclass(frozen=True, slots=True)
class ProduceWay:
    """How a process appends to its partitions at their leader, always with acks=all.

    Attributes:
        connections: to the leader; the partitions are split over them.
        in_flight: requests in flight on each connection.
        idempotent: with a producer id and sequence numbers, as the copy does.
    """

    name: str
    connections: int
    in_flight: int
    idempotent: bool


#: Always two requests in flight for a leader; the copy's own sizes come first.
FETCH_WAYS: tuple[FetchWay, ...] = (
    FetchWay("as the copy asks", 1, 2, _COPY.fetch_max_bytes, _COPY.fetch_partition_max_bytes),
    FetchWay("two connections", 2, 1, _COPY.fetch_max_bytes, _COPY.fetch_partition_max_bytes),
    FetchWay("two connections, 1 MB answers", 2, 1, _MEBIBYTE, _MEBIBYTE // 2),
)
#: At most the five requests that brokers keep in order for an idempotent producer.
PRODUCE_WAYS: tuple[ProduceWay, ...] = (
    ProduceWay("as the copy sends", 1, _COPY.produce_max_in_flight, idempotent=True),
    ProduceWay("two connections", 2, 5, idempotent=True),
    ProduceWay("not idempotent", 1, 5, idempotent=False),
)


@dataclass(frozen=True, slots=True)
class LimitRun:
    """One half of one workload, done once by all processes together.

    Attributes:
        seconds: from the first request of any process to the last response to any.
        cpu_seconds: user and system time of the processes in between.
    """

    workload: Workload
    half: Half
    way: str
    round: int
    records: int
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Ways:
    """How both halves are measured, each in one or several ways."""

    fetching: tuple[FetchWay, ...] = FETCH_WAYS
    producing: tuple[ProduceWay, ...] = PRODUCE_WAYS


@dataclass(frozen=True, slots=True)
class Fastest:
    """The way in which a half was fastest, by the median over the rounds."""

    way: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Bound:
    """The lower bound for the duration of a copy of a workload."""

    workload: Workload
    fetching: Fastest
    producing: Fastest

    @property
    def seconds(self) -> float:
        """Both halves one after the other."""
        return self.fetching.seconds + self.producing.seconds

    @property
    def rate(self) -> float:
        """Records per second at the bound."""
        return self.workload.records / self.seconds

    def rate_of(self, half: Half) -> float:
        """Return the records per second of one half alone."""
        return self.workload.records / (self.fetching if half is Half.FETCHING else self.producing).seconds


def bound(runs: Iterable[LimitRun], workload: Workload) -> Bound | None:
    """Return the bound of a workload; None unless both halves were measured."""
    own = [run for run in runs if run.workload == workload]
    fetching, producing = (_fastest([run for run in own if run.half is half]) for half in Half)
    return Bound(workload, fetching, producing) if fetching is not None and producing is not None else None


def fastest_ways(runs: Iterable[LimitRun], workload: Workload) -> Ways:
    """Return the fastest way of each half, with which the bound is measured afterwards.

    Of several equally fast ways, the luckiest one wins. The runs by which it was chosen would make the bound too high,
    so its speed is measured by other runs.
    """
    found = bound(runs, workload)
    if found is None:
        return Ways()
    return Ways(
        tuple(way for way in FETCH_WAYS if way.name == found.fetching.way),
        tuple(way for way in PRODUCE_WAYS if way.name == found.producing.way),
    )


def bounds_by_round(runs: Iterable[LimitRun], workload: Workload) -> dict[int, float]:
    """Return the seconds of both halves in each round, in the ways of the bound; rounds that lack a half are
    skipped.
    """
    own = [run for run in runs if run.workload == workload]
    found = bound(own, workload)
    if found is None:
        return {}
    ways = {Half.FETCHING: found.fetching.way, Half.PRODUCING: found.producing.way}
    halves: dict[int, list[float]] = {}
    for run in own:
        if run.way == ways[run.half]:
            halves.setdefault(run.round, []).append(run.seconds)
    return {number: sum(seconds) for number, seconds in halves.items() if len(seconds) == len(ways)}


def _fastest(runs: Sequence[LimitRun]) -> Fastest | None:
    """Compare medians first: the best of all single runs would be the luckiest one."""
    ways = dict.fromkeys(run.way for run in runs)
    medians = [Fastest(way, median(run.seconds for run in runs if run.way == way)) for way in ways]
    return min(medians, key=lambda each: each.seconds, default=None)
