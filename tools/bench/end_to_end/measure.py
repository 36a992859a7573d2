"""`./run bench end-to-end`: from the moment a copy is asked for to its end, with everything that it takes to begin.

Warm: a run on a warm Spark session against tuned MM2 from the start of its JVM. Cold: one batch with nothing warm, and
MM2 as it comes, started at the same moment on the same machine; and each of them alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich.console import Console

from mirror_lib.features.demo.driver_host import DriverHost
from mirror_lib.features.demo.jars import KAFKA_VERSION
from mirror_lib.features.demo.spark_connect import SparkConnectServer
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.comparison.report import goal_table
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier, CopySetup
from tools.bench.end_to_end.contest import (
    Contestant,
    RunningMirrorMaker,
    Started,
    Timing,
    WarmSession,
    measure,
    mirror_run,
    spark_connect,
    spark_submit,
)
from tools.bench.end_to_end.hosted_driver import hosted_driver
from tools.bench.end_to_end.results import Race, Result, goals, timing_table, to_plain
from tools.bench.interrupt import exit_code
from tools.bench.machine.description import describe, java_version
from tools.bench.workloads.loading import load, write
from tools.bench.workloads.workload import Workload, select

_WIDTH = 118
Log = Callable[[str], None]
#: How a warm run is started, and how a cold one.
SESSION, CONNECT, HOSTED = "session", "connect", "connect-hosted"
_WARM_WAYS = (SESSION, CONNECT, HOSTED)
SUBMIT, COMMAND = "spark-submit", "mirror-run"


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured.

    Attributes:
        races: the selected ones.
        warm_ways: `session` uses a process that is driver and session in one; `connect` starts a driver process that
            uses the session of a Spark Connect server; `connect-hosted` has a driver host fork that driver.
        warm_peers: the copiers for comparison.
        cold_way: `spark-submit`, like the DAG, or the command `mirror run`.
        remote: a running Spark Connect server; one is started if none is named.
        warm_up: warm up the target's broker before the first copy, which would otherwise include its JVM's warm-up.
    """

    workloads: tuple[Workload, ...]
    races: tuple[Race, ...] = tuple(Race)
    warm_ways: tuple[str, ...] = _WARM_WAYS
    warm_peers: tuple[Copier, ...] = (Copier.MM2_TUNED,)
    cold_way: str = SUBMIT
    remote: str = ""
    rounds: int = 1
    partitions: int = 8
    processes: int = 2
    warm_up: bool = True


def run(options: Options, pair: Pair, folder: Path, log: Log) -> tuple[Result, ...]:
    """Measure the selected races.

    Raises:
        BenchError: a copy failed.
    """
    return _Bench(options, pair, folder, log).run()


@dataclass
class _Bench:
    options: Options
    pair: Pair
    folder: Path
    log: Log
    _results: list[Result] = field(default_factory=list)
    _copies: int = 0

    def run(self) -> tuple[Result, ...]:
        for workload in self.options.workloads:
            self._load(workload)
            # Cold first: a warm session takes memory and caches, and its JVM is not quite idle.
            cold = [race for race in (Race.COLD_TOGETHER, Race.COLD_ALONE) if race in self.options.races]
            for race in cold:
                for number in range(1, self.options.rounds + 1):
                    self._cold(race, workload, number)
            if Race.WARM in self.options.races:
                self._warm(workload)
            self.pair.source.delete([workload.name])
        return tuple(self._results)

    def _load(self, workload: Workload) -> None:
        self.log(f"{workload.name}: writing {workload.records:,} records")
        self.pair.source.create(workload.name, self.options.partitions)
        load(self.pair.source.bootstrap_servers, workload, self.options.partitions)
        if self.options.warm_up:
            practice = replace(workload, name=f"warm-up-{workload.name}")
            self.pair.target.create(practice.name, self.options.partitions)
            write(self.pair.target.bootstrap_servers, practice, self.options.partitions)
            self.pair.target.delete([practice.name])

    def _cold(self, race: Race, workload: Workload, number: int) -> None:
        ours = self._contestant(workload, Copier.MIRROR, self.options.cold_way, self._cold_start())
        # The command creates the topics itself.
        ours = replace(ours, topics_first=self.options.cold_way == SUBMIT)
        peer = self._mm2(workload, Copier.MM2_DEFAULT)
        if race is Race.COLD_TOGETHER:
            self._measure(race, workload, number, [ours, peer])
        else:
            self._measure(race, workload, number, [ours])
            self._measure(race, workload, number, [peer])

    def _cold_start(self) -> Callable[[Contestant], Started]:
        return (spark_submit if self.options.cold_way == SUBMIT else mirror_run)(self.options.processes)

    def _warm(self, workload: Workload) -> None:
        for way in self.options.warm_ways:
            with self._warm_start(way) as start:
                # The first run of a session includes one-time work: this one is not measured.
                self._measure_none(workload, self._contestant(workload, Copier.MIRROR, way, start))
                for number in range(1, self.options.rounds + 1):
                    contestant = self._contestant(workload, Copier.MIRROR, way, start)
                    self._measure(Race.WARM, workload, number, [contestant])
        for peer in self.options.warm_peers:
            for number in range(1, self.options.rounds + 1):
                self._measure(Race.WARM, workload, number, [self._mm2(workload, peer)])

    @contextmanager
    def _warm_start(self, way: str) -> Iterator[Callable[[Contestant], Started]]:
        with ExitStack() as stack:
            self.log(f"warming a session for {way}")
            if way == SESSION:
                directory = self.folder / f"session-{self._copies}"
                directory.mkdir()
                host = stack.enter_context(RelayHost(cores=self.options.processes, directory=directory))
                host.wait_started()

                def start(contestant: Contestant) -> Started:
                    return WarmSession(host).start(contestant)

                yield start
                return
            remote, server_pid = self.options.remote, None
            if not remote:
                server = SparkConnectServer(self.folder / f"connect-{self._copies}")
                stack.callback(server.stop)
                remote = server.start(master=f"local[{self.options.processes}]").url
                server_pid = server.process.pid if server.process else None
            if way == CONNECT:
                yield spark_connect(remote, server_pid)
                return
            drivers = DriverHost(self.folder / f"drivers-{self._copies}")
            stack.callback(drivers.stop)
            yield hosted_driver(drivers.start(), remote, server_pid)

    def _mm2(self, workload: Workload, copier: Copier) -> Contestant:
        contestant = self._contestant(workload, copier, copier.label, RunningMirrorMaker.start)
        return replace(contestant, topics_first=False)

    def _contestant(
        self, workload: Workload, copier: Copier, label: str, start: Callable[[Contestant], Started]
    ) -> Contestant:
        self._copies += 1
        setup = CopySetup(
            copier=copier,
            round=self._copies,
            topic=workload.name,
            source_bootstrap=self.pair.clear.source_bootstrap,
            target_bootstrap=self.pair.clear.target_bootstrap,
            tasks=self.options.processes,
        )
        return Contestant(label, setup, self.folder / setup.source_alias, start)

    def _measure(self, race: Race, workload: Workload, number: int, contestants: Sequence[Contestant]) -> None:
        names = " and ".join(each.label for each in contestants)
        self.log(f"{workload.name}, {race.value}, round {number}: {names}")
        for timing in self._timings(workload, contestants):
            self._results.append(Result(race, workload.name, number, timing))
            self.log(f"  {timing.label}: last record {timing.last_record:.2f} s, done {timing.done:.2f} s")

    def _measure_none(self, workload: Workload, contestant: Contestant) -> None:
        self._timings(workload, [contestant])

    def _timings(self, workload: Workload, contestants: Sequence[Contestant]) -> tuple[Timing, ...]:
        self.pair.settle()
        timings = measure(self.pair, workload, self.options.partitions, contestants)
        for each in contestants:
            self.pair.forget(f"{each.setup.source_alias}.")
        return timings


_RACES = {"warm": (Race.WARM,), "cold": (Race.COLD_TOGETHER, Race.COLD_ALONE), "all": tuple(Race)}


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    parser = argparse.ArgumentParser(prog="bench end-to-end", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--races", choices=sorted(_RACES), default="all", help="Races to run (all).")
    parser.add_argument("--workloads", default="1kb-lz4", help="Workloads to run, separated by commas (1kb-lz4).")
    parser.add_argument("--warm-ways", default="", help=f"Ways to run warm: {', '.join(_WARM_WAYS)} (all).")
    parser.add_argument("--cold-way", choices=(SUBMIT, COMMAND), default=SUBMIT, help=f"({SUBMIT})")
    parser.add_argument("--remote", default="", metavar="URL", help="Use this running Spark Connect server.")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="Number of rounds (1).")
    parser.add_argument("--partitions", type=int, default=8, help="Partitions of each topic (8).")
    parser.add_argument("--processes", type=int, default=2, help="tasks.max of all copiers, and cores of Spark (2).")
    parser.add_argument(
        "--scale", type=float, default=1.0, metavar="F", help="Multiply the number of records by this factor."
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    return parser.parse_args(argv)


def make_options(chosen: argparse.Namespace) -> Options:
    """Return what to measure, from the arguments.

    Raises:
        ValueError: a workload or way is unknown.
    """
    workloads = select(chosen.workloads, quick=False)
    if chosen.scale != 1.0:
        workloads = tuple(each.scaled(max(round(each.records * chosen.scale), 1)) for each in workloads)
    ways = tuple(name.strip() for name in chosen.warm_ways.split(",") if name.strip())
    unknown = [name for name in ways if name not in _WARM_WAYS]
    if unknown:
        raise ValueError(f"no such way: {', '.join(unknown)}. Known: {', '.join(_WARM_WAYS)}.")
    return Options(
        workloads=workloads,
        races=_RACES[chosen.races],
        warm_ways=ways or _WARM_WAYS,
        cold_way=chosen.cold_way,
        remote=chosen.remote,
        rounds=chosen.repeat,
        partitions=chosen.partitions,
        processes=chosen.processes,
        warm_up=chosen.scale >= 1.0,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code: 1 if a copy does not equal its source."""
    chosen = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress = Console(stderr=True)
    return exit_code(lambda: _measure(chosen, progress), progress)


def _measure(chosen: argparse.Namespace, progress: Console) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)

    def log(text: str) -> None:
        progress.print(text, highlight=False)

    options = make_options(chosen)
    machine = describe(java=java_version(), kafka=KAFKA_VERSION)
    with (
        tempfile.TemporaryDirectory(prefix="mirror-end-to-end-", ignore_cleanup_errors=True) as name,
        started_pair(Path(name), full_page_cache=options.warm_up) as pair,
    ):
        results = run(options, pair, Path(name), log)
    console.print(machine.line(), style="dim")
    console.print(timing_table(results))
    console.print(goal_table(goals(results)))
    if chosen.json is not None:
        document = {
            "machine": asdict(machine),
            "options": asdict(options),
            "results": to_plain(results),
            "goals": [asdict(goal) for goal in goals(results)],
        }
        chosen.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(each.timing.equal for each in results) else 1
