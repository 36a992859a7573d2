"""`./run bench growth`: what a run costs against partitions, record size, bytes, and idle topics.

Every point has topics of its own. On a warm Spark session one run copies everything, and the runs after it find nothing
new: the first says what copying costs, the others what looking costs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console

from mirror_lib.features.demo.jars import KAFKA_VERSION
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.comparison.report import goal_table
from tools.bench.copiers.phases import seconds_by_phase
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier, CopySetup, write_config
from tools.bench.growth.results import (
    ALL_SERIES,
    BYTES,
    IDLE_TOPICS,
    PARTITIONS,
    RECORD_SIZE,
    Cost,
    Point,
    Series,
    goals,
    series_table,
    to_plain,
)
from tools.bench.growth.source import Place, create, places, records_of, write
from tools.bench.interrupt import exit_code
from tools.bench.machine.description import describe, java_version

_WIDTH = 150
_MEGABYTE = 1_000_000
#: Maximum time of a run with thousands of partitions on a busy machine.
_RUN_SECONDS = 600.0
_HEAP_MEGABYTES = 3072
#: Indexes are preallocated with this size; 20,000 of the default's 10 MB exceed the disk.
_OVERRIDES = {"log.index.size.max.bytes": "1048576"}
_BUSY_PARTITIONS = 8
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The points of each series."""

    partitions: tuple[int, ...] = (10, 100, 1_000, 10_000)
    record_bytes: tuple[int, ...] = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
    #: The first one, and the last, are for idle runs; the four between double.
    megabytes: tuple[int, ...] = (1, 100, 500, 1_000, 2_000, 4_000)
    idle_topics: tuple[int, ...] = (0, 100, 1_000, 5_000)
    #: Of all points except those of `megabytes`.
    each_megabytes: int = 200
    idle_runs: int = 3


QUICK = Sizes((10, 100), (100, 1_000, 100_000), (1, 20, 40, 80), (0, 100), each_megabytes=10, idle_runs=1)


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured."""

    series: tuple[Series, ...] = ALL_SERIES
    sizes: Sizes = field(default_factory=Sizes)
    processes: int = 2


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One point, before it is measured."""

    series: Series
    amount: float
    partitions: int
    value_bytes: int
    total_bytes: int
    idle_topics: int = 0


def wanted(series: Sequence[Series], sizes: Sizes) -> tuple[_Wanted, ...]:
    """Return all points, in the order in which they are measured."""
    each = sizes.each_megabytes * _MEGABYTE
    known = {
        PARTITIONS: [_Wanted(PARTITIONS, number, number, 1_000, each) for number in sizes.partitions],
        RECORD_SIZE: [_Wanted(RECORD_SIZE, size, _BUSY_PARTITIONS, size, each) for size in sizes.record_bytes],
        BYTES: [_Wanted(BYTES, size, _BUSY_PARTITIONS, 1_000, size * _MEGABYTE) for size in sizes.megabytes],
        IDLE_TOPICS: [
            _Wanted(IDLE_TOPICS, number, _BUSY_PARTITIONS, 1_000, each, number) for number in sizes.idle_topics
        ],
    }
    return tuple(point for one in series for point in known[one])


def run(options: Options, pair: Pair, host: RelayHost, folder: Path, log: Log) -> tuple[Point, ...]:
    """Measure every point.

    Raises:
        BenchError: a run failed.
    """
    points = []
    for number, each in enumerate(wanted(options.series, options.sizes), 1):
        log(f"{each.series.name}: {each.amount:,g} {each.series.unit}")
        point = _Bench(options, pair, host, folder, number).measure(each)
        log(f"  copy {point.copy.seconds:.2f} s, nothing new {point.idle.seconds:.2f} s")
        points.append(point)
    return tuple(points)


@dataclass(frozen=True, slots=True)
class _Bench:
    options: Options
    pair: Pair
    host: RelayHost
    folder: Path
    number: int

    def measure(self, each: _Wanted) -> Point:
        prefix = f"growth{self.number}"
        busy = places(f"{prefix}-busy", each.partitions)
        idle = [Place(f"{prefix}-idle-{number:05}", 1) for number in range(each.idle_topics)]
        workload = records_of(each.value_bytes, each.total_bytes, each.partitions)
        source, target = self.pair.source, self.pair.target
        create(source.bootstrap_servers, [*busy, *idle])
        for place in busy:
            source.wait_until_led(place.topic, place.partitions)
        write(source.bootstrap_servers, workload, busy)
        setup = self._setup(f"{prefix}-.*")
        config = self.folder / f"{prefix}.properties"
        write_config(setup, config)
        began = time.monotonic()
        self.host.prepare(str(config), setup.flow)
        topics_seconds = time.monotonic() - began
        self.host.warm()
        self.pair.settle()
        copy = self._run(str(config), setup.flow)
        idle_runs = [self._run(str(config), setup.flow) for _ in range(self.options.sizes.idle_runs)]
        point = Point(
            series=each.series,
            amount=each.amount,
            records=workload.records,
            bytes=workload.payload_bytes,
            topics_seconds=topics_seconds,
            copy=copy,
            idle=sorted(idle_runs, key=lambda one: one.seconds)[len(idle_runs) // 2],
            arrived=sum(target.records(f"{setup.source_alias}.{one.topic}", one.partitions) for one in busy),
        )
        self.pair.forget(f"{setup.source_alias}.")
        source.delete([one.topic for one in (*busy, *idle)])
        return point

    def _setup(self, topics: str) -> CopySetup:
        return CopySetup(
            copier=Copier.MIRROR,
            round=self.number,
            topic=topics,
            source_bootstrap=self.pair.clear.source_bootstrap,
            target_bootstrap=self.pair.clear.target_bootstrap,
            tasks=self.options.processes,
        )

    def _run(self, config: str, flow: str) -> Cost:
        used = self.host.tree.cpu_seconds()
        self.host.begin(config, flow)
        answer = self.host.finish(_RUN_SECONDS)
        spent = self.host.tree.cpu_seconds() - used
        return Cost(answer.run_seconds, spent, seconds_by_phase(answer.phases, answer.run_seconds))


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    known = ", ".join(series.name for series in ALL_SERIES)
    parser = argparse.ArgumentParser(prog="bench growth", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Run small points only: about a minute.")
    parser.add_argument("--series", default="", help=f"Names to run, separated by commas: {known}.")
    parser.add_argument("--max-partitions", type=int, help="Skip points with more partitions or idle topics.")
    parser.add_argument("--max-megabytes", type=int, help="Skip points with more data.")
    parser.add_argument("--processes", type=int, default=2, help="tasks.max, and cores of the Spark session (2).")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    return parser.parse_args(argv)


def make_options(chosen: argparse.Namespace) -> Options:
    """Return what to measure, from the arguments.

    Raises:
        ValueError: a series is unknown.
    """
    names = [name.strip() for name in chosen.series.split(",") if name.strip()]
    unknown = [name for name in names if name not in {series.name for series in ALL_SERIES}]
    if unknown:
        raise ValueError(f"no such series: {', '.join(unknown)}.")
    sizes = QUICK if chosen.quick else Sizes()
    return Options(
        series=tuple(series for series in ALL_SERIES if not names or series.name in names),
        sizes=limited(sizes, chosen.max_partitions, chosen.max_megabytes),
        processes=chosen.processes,
    )


def limited(sizes: Sizes, partitions: int | None, megabytes: int | None) -> Sizes:
    """Return the points up to these sizes."""

    def below(known: tuple[int, ...], most: int | None) -> tuple[int, ...]:
        return known if most is None else tuple(each for each in known if each <= most)

    return Sizes(
        partitions=below(sizes.partitions, partitions),
        record_bytes=sizes.record_bytes,
        megabytes=below(sizes.megabytes, megabytes),
        idle_topics=below(sizes.idle_topics, partitions),
        each_megabytes=min(sizes.each_megabytes, megabytes or sizes.each_megabytes),
        idle_runs=sizes.idle_runs,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code: 1 if a copy lacks records."""
    chosen = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress = Console(stderr=True)
    return exit_code(lambda: _measure(chosen, progress), progress)


def _measure(chosen: argparse.Namespace, progress: Console) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def log(text: str) -> None:
        progress.print(f"[dim]{time.monotonic() - began:5.0f} s[/]  {text}", highlight=False)

    options = make_options(chosen)
    machine = describe(java=java_version(), kafka=KAFKA_VERSION)
    with tempfile.TemporaryDirectory(prefix="mirror-growth-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (
            RelayHost(cores=options.processes, directory=folder) as host,
            started_pair(
                folder, heap_megabytes=_HEAP_MEGABYTES, overrides=_OVERRIDES, full_page_cache=not chosen.quick
            ) as pair,
        ):
            host.wait_started()
            points = run(options, pair, host, folder, log)
    console.print(machine.line(), style="dim")
    for series in options.series:
        console.print(series_table(series, points))
    console.print(goal_table(goals(points)))
    if chosen.json is not None:
        document = {"machine": asdict(machine), "points": to_plain(points)}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(point.complete for point in points) else 1
