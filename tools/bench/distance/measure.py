"""`./run bench distance`: a local copy, and the same over a high-latency line to the source or to the target.

The line delays, limits and loses data (`testbed.wan`), and the report contains its theoretical maximum: the rest is due
to the copy. The copy tasks run in separate processes, without Spark.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from mirror_lib.config.loader import load as load_config
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM
from mirror_lib.features.demo.jars import KAFKA_VERSION
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.topics.flow import apply_flow_topics
from tools.bench.clusters.window import Look, copy_window
from tools.bench.comparison.report import goal_table
from tools.bench.comparison.samples import compare
from tools.bench.copiers.settings import Copier, CopySetup, properties, render
from tools.bench.distance.copy_processes import CopyProcesses
from tools.bench.distance.model import Allowed, Case, allowed, data_connections, lossy_workload
from tools.bench.distance.options import Options, make_options, parse_arguments
from tools.bench.distance.results import Copied, distance_table, goals, to_plain
from tools.bench.distance.sites import Sites, log_bounds, started_sites
from tools.bench.errors import BenchError
from tools.bench.interrupt import exit_code
from tools.bench.machine.description import describe, java_version
from tools.bench.machine.process_tree import ProcessTree
from tools.bench.workloads.loading import load
from tools.bench.workloads.workload import Workload
from tools.testbed.mm2 import MirrorMaker
from tools.testbed.wan_direction import LineQuality

#: Maximum time from the start of a copier to its first record on the target, and from the last to the end of the run.
_FIRST_RECORD_SECONDS, _COMMIT_SECONDS = 180.0, 120.0
_MM2_HEAP_MEGABYTES = 2048
_WIDTH = 220
Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A workload that is on the source."""

    workload: Workload
    batch_bytes: int


def run(options: Options, sites: Sites, folder: Path, log: Log) -> tuple[Copied, ...]:
    """Make every copy; a failed one is among the results, and the others continue.

    Raises:
        BenchError: the source cannot be filled.
    """
    with CopyProcesses(options.processes) as processes:
        return _Bench(options, sites, processes, folder, log).run()


class _Bench:
    def __init__(self, options: Options, sites: Sites, processes: CopyProcesses, folder: Path, log: Log) -> None:
        self._options, self._sites, self._processes = options, sites, processes
        self._folder, self._log = folder, log
        self._copies = 0
        self._loaded: dict[str, _Loaded] = {}

    def run(self) -> tuple[Copied, ...]:
        options = self._options
        if options.warm_up:
            self._copy(Case.LOCAL, Copier.MIRROR, 0)
        return tuple(
            self._copy(case, copier, number)
            for number in range(1, options.rounds + 1)
            for copier in options.copiers
            for case in options.cases
        )

    def _copy(self, case: Case, copier: Copier, number: int) -> Copied:
        self._copies += 1
        source, target = self._sites.servers(case)
        loaded = self._load(self._workload(case))
        setup = CopySetup(
            copier,
            self._copies,
            loaded.workload.name,
            source,
            target,
            self._options.processes,
            own=self._options.settings,
        )
        copied = Copied(
            case,
            copier,
            number,
            loaded.workload.records,
            loaded.workload.payload_bytes,
            loaded.batch_bytes,
            self._allowed(case, copier),
        )
        self._log(f"{copier.label}, {case.value}, {'warm-up' if number == 0 else f'round {number}'}")
        self._sites.pair.settle()
        try:
            with self._sites.line(case, self._options.quality, seed=number) as line:
                copied = self._measure(setup, loaded.workload, copied)
                copied = replace(copied, line_cpu_seconds=line.cpu_seconds() if line else 0.0)
            copied = replace(copied, equal=self._equal(setup, loaded.workload))
        except MirrorError as error:
            copied = replace(copied, failure=str(error))
        self._sites.pair.forget(f"{setup.source_alias}.")
        self._log(f"  {copied.failure or f'{copied.per_second(copied.bytes / 1e6):,.1f} MB/s, equal: {copied.equal}'}")
        return copied

    def _measure(self, setup: CopySetup, workload: Workload, copied: Copied) -> Copied:
        directory = self._folder / setup.source_alias
        directory.mkdir()
        ours = copied.copier is Copier.MIRROR
        text = render(properties(setup))
        report: RunReport | None = None
        began = time.monotonic()
        if ours:
            (directory / "mirror.properties").write_text(text, encoding="utf-8")
            with self._driver(directory / "mirror.properties", setup.flow) as driver:
                looks = self._watch(setup, workload, self._processes.cpu_seconds, lambda: _running(driver))
                report = driver.result(_COMMIT_SECONDS)
                _check(report)
        else:
            maker = MirrorMaker(directory, heap_megabytes=_MM2_HEAP_MEGABYTES, jvm_flags=KAFKA_DEFAULT_JVM)
            with maker:
                maker.start(text)
                looks = self._watch(setup, workload, ProcessTree(maker.pid).cpu_seconds, lambda: _alive(maker))
        try:
            window = copy_window(looks, workload.records)
        except ValueError as error:
            raise BenchError(f"{copied.case.value}: {error}.") from error
        return replace(
            copied,
            seconds=window.seconds,
            cpu_seconds=window.cpu_seconds,
            copy_seconds=report.copy_seconds if report else None,
            run_seconds=time.monotonic() - began if report else None,
        )

    @contextmanager
    def _driver(self, path: Path, name: str) -> Iterator[Future[RunReport]]:
        """A run of the flow, in a thread: while records are copied it only waits for the processes."""
        flow = load_config(path).flow(name)
        _sync_topics(flow)
        ledger = Ledger.open(f"sqlite:///{path.with_suffix('.sqlite3')}")
        ledger.migrate()
        with ThreadPoolExecutor(max_workers=1) as pool:
            options = RunOptions(trigger="bench")
            driver = pool.submit(
                replicate, flow, ledger=ledger, make_runner=lambda: self._processes.copy, options=options
            )
            try:
                yield driver
            except MirrorError as error:
                # From outside only the lack of progress is visible; the run knows the reason.
                self._log("  no progress; waiting for the report of the run")
                found = driver.result().errors
                if found and found[0] is not error:
                    raise BenchError(f"{error.what} Report of the run: {found[0]}") from error
                raise
            except KeyboardInterrupt:
                # Over a slow line a copy may take minutes; the rest is not needed.
                self._processes.kill()
                raise

    def _watch(
        self, setup: CopySetup, workload: Workload, cpu_seconds: Callable[[], float], running: Callable[[], None]
    ) -> list[Look]:
        return self._sites.pair.target.watch(
            setup.target_topic,
            self._options.partitions,
            expected=workload.records,
            cpu_seconds=cpu_seconds,
            still_running=running,
            start_seconds=_FIRST_RECORD_SECONDS,
        )

    def _equal(self, setup: CopySetup, workload: Workload) -> bool:
        """Check that log start and end offsets of every partition, and samples of its records, equal the source's."""
        pair, partitions = self._sites.pair, self._options.partitions
        found = compare(pair.source, pair.target, workload, setup.target_topic, partitions)
        expected = log_bounds(pair.source.bootstrap_servers, workload.name, partitions)
        return (
            found.target_records == workload.records
            and found.differing == 0
            and log_bounds(pair.target.bootstrap_servers, setup.target_topic, partitions) == expected
        )

    def _allowed(self, case: Case, copier: Copier) -> Allowed | None:
        line = case.line(self._options.quality)
        if line is None:
            return None
        asked = int(self._options.settings.get("mirror.connections.per.broker", "0"))
        connections = data_connections(
            copier,
            line.round_trip_seconds,
            partitions=self._options.partitions,
            tasks=self._options.processes,
            connections_per_broker=asked,
        )
        return allowed(line, connections)

    def _workload(self, case: Case) -> Workload:
        """Return the records of a case, the same for all copiers, by what the line allows to this project's copy."""
        options, limit = self._options, self._allowed(case, Copier.MIRROR)
        if not case.lossy or limit is None:
            return options.workload
        return lossy_workload(options.workload, limit.most, options.lossy_seconds, options.partitions)

    def _load(self, workload: Workload) -> _Loaded:
        if workload.name not in self._loaded:
            self._log(f"{workload.name}: writing {workload.records:,} records")
            source = self._sites.pair.source
            source.create(workload.name, self._options.partitions)
            shape = load(source.bootstrap_servers, workload, self._options.partitions)
            self._loaded[workload.name] = _Loaded(workload, shape.bytes)
        return self._loaded[workload.name]


def _sync_topics(flow: FlowConfig) -> None:
    """Do what the previous task of the flow's DAG does."""
    done = apply_flow_topics(flow, flow_topology(flow))
    if done.failures:
        raise BenchError(f"cannot create the topics of {flow.flow}: {done.failures[0].error}.")


def _running(driver: Future[RunReport]) -> None:
    """Raise if the run has failed; it may have ended successfully just before the last look."""
    if driver.done():
        _check(driver.result())


def _check(report: RunReport) -> None:
    if report.errors:
        raise report.errors[0]


def _alive(maker: MirrorMaker) -> None:
    if maker.process is None:
        raise BenchError(f"MirrorMaker ended. The end of its log:\n{maker.log_tail()}")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code: 1 if a copy failed or does not equal its source."""
    chosen = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress = Console(stderr=True)
    return exit_code(lambda: _measure(chosen, progress), progress)


def _measure(chosen: argparse.Namespace, progress: Console) -> int:
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    began = time.monotonic()

    def log(text: str) -> None:
        progress.print(f"{time.monotonic() - began:5.0f} s  {text}", highlight=False, markup=False)

    options = make_options(chosen)
    machine = describe(java=java_version(), kafka=KAFKA_VERSION)
    with (
        tempfile.TemporaryDirectory(prefix="mirror-distance-", ignore_cleanup_errors=True) as name,
        started_sites(Path(name)) as sites,
    ):
        results = run(options, sites, Path(name), log)
    console.print(machine.line(), style="dim")
    console.print(f"{options.workload.title}; line: {_quality_text(options.quality)}")
    console.print(distance_table(results))
    for each in results:
        if each.failure:
            console.print(f"{each.copier.label}, {each.case.value}: {each.failure}", style="red", markup=False)
    console.print(goal_table(goals(results)))
    if chosen.json is not None:
        document = {"machine": asdict(machine), "options": asdict(options), "results": to_plain(results)}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(each.equal for each in results) else 1


def _quality_text(quality: LineQuality) -> str:
    width = f"{quality.bytes_per_second / 1e6:,.0f} MB/s" if quality.bytes_per_second else "of any width"
    window = f"{quality.window_bytes / 1e6:g} MB" if quality.window_bytes else "any size"
    return (
        f"{quality.round_trip_seconds * 1000:g} ms there and back, {width}, windows of {window}; "
        f"where it loses, {quality.loss:.1%} of the segments"
    )
