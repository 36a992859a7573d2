"""`./run bench lag`: how late records arrive while a producer writes at a steady rate.

Each copier in turn meets the same load on topics of its own: this project with rounds on a warm session, and MM2.
All of them run and have copied something before the load begins.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console

from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM
from mirror_lib.features.demo.jars import KAFKA_VERSION
from tools.bench.clusters.pair import Pair, started_pair
from tools.bench.comparison.report import goal_table
from tools.bench.copiers.phases import PhaseTime
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier, CopySetup, properties, render, write_config
from tools.bench.errors import BenchError
from tools.bench.interrupt import interrupt
from tools.bench.lag.arrivals import Arrival, Lag, time_line
from tools.bench.lag.load import Load, Written, write
from tools.bench.lag.observer import TopicObserver
from tools.bench.lag.results import Rounds, Sustained, goals, lag_table, rounds_table, time_line_table, to_plain
from tools.bench.machine.description import describe, java_version
from tools.bench.machine.process_tree import ProcessTree
from tools.testbed.mm2 import MirrorMaker

_WIDTH = 118
_MM2_HEAP_MEGABYTES = 2048
#: Maximum time from the start of a copier to its first records on the target, and from the end of the load to its last
#: record.
_FIRST_SECONDS, _DRAIN_SECONDS = 120.0, 120.0
_POLL_SECONDS = 0.02
#: Records that every copier copies before the load begins.
_BEFORE_SECONDS, _BEFORE_RECORDS_PER_SECOND = 0.5, 200

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """The load, and its copiers.

    Attributes:
        seconds: its duration.
        start_up_seconds: records created in the first seconds are reported separately, and have no goal.
        processes: `tasks.max` of every copier, and the cores of the Spark session.
    """

    copiers: tuple[Copier, ...] = tuple(Copier)
    megabytes_per_second: float = 20.0
    seconds: float = 60.0
    start_up_seconds: float = 5.0
    partitions: int = 8
    value_bytes: int = 1000
    compression: str = "none"
    processes: int = 2


def run(options: Options, pair: Pair, host: RelayHost, folder: Path, log: Log) -> tuple[Sustained, ...]:
    """Measure the selected copiers.

    Raises:
        BenchError: a copier failed, or does not finish the load.
    """
    measured = []
    for copier in options.copiers:
        setup = CopySetup(
            copier=copier,
            round=1,
            topic=f"load-{copier.value}",
            source_bootstrap=pair.clear.source_bootstrap,
            target_bootstrap=pair.clear.target_bootstrap,
            tasks=options.processes,
        )
        pair.source.create(setup.topic, options.partitions)
        bench = _Bench(options, pair, setup, folder / setup.topic, log)
        bench.directory.mkdir()
        measured.append(bench.mirror(host) if copier is Copier.MIRROR else bench.mm2())
        pair.forget(f"{setup.source_alias}.")
        pair.source.delete([setup.topic])
        pair.settle()
    return tuple(measured)


@dataclass
class _Bench:
    """One copier and its load."""

    options: Options
    pair: Pair
    setup: CopySetup
    directory: Path
    log: Log

    @property
    def _load(self) -> Load:
        return Load(
            bootstrap_servers=self.pair.source.bootstrap_servers,
            topic=self.setup.topic,
            partitions=self.options.partitions,
            bytes_per_second=round(self.options.megabytes_per_second * 1e6),
            seconds=self.options.seconds,
            value_bytes=self.options.value_bytes,
            compression=self.options.compression,
        )

    def _write_before(self) -> int:
        rate = _BEFORE_RECORDS_PER_SECOND * self.options.value_bytes
        return write(replace(self._load, bytes_per_second=rate, seconds=_BEFORE_SECONDS)).records

    def _observer(self) -> TopicObserver:
        target = self.pair.target
        return TopicObserver(target.bootstrap_servers, self.setup.target_topic, self.options.partitions)

    def mm2(self) -> Sustained:
        before = self._write_before()
        maker = MirrorMaker(self.directory, heap_megabytes=_MM2_HEAP_MEGABYTES, jvm_flags=KAFKA_DEFAULT_JVM)

        def still_running() -> None:
            if maker.process is None:
                raise BenchError(f"MirrorMaker ended. The end of its log:\n{maker.log_tail()}")

        self.log(f"{self.setup.copier.label}: starting")
        with self._observer() as observer, maker:
            maker.start(render(properties(self.setup)))
            tree = ProcessTree(maker.pid)
            _until(lambda: observer.records >= before, still_running, _FIRST_SECONDS, "the first records on the target")
            written, cpu = self._meet(observer, before, tree, still_running)
        return self._sustained(observer, written, cpu)

    def mirror(self, host: RelayHost) -> Sustained:
        before = self._write_before()
        config = self.directory / "mirror.properties"
        write_config(self.setup, config)
        self.log(f"{self.setup.copier.label}: starting")
        host.prepare(str(config), self.setup.flow)
        host.warm()
        runs = _Runs(host, str(config), self.setup.flow, self.options.seconds)
        with self._observer() as observer:
            observer.wait_looking()
            host.begin(str(config), self.setup.flow)
            host.finish(_FIRST_SECONDS)
            _until(lambda: observer.records >= before, lambda: None, _FIRST_SECONDS, "the first records on the target")
            runs.begin()
            written, cpu = self._meet(observer, before, host.tree, runs.keep_going)
        runs.end()
        return self._sustained(observer, written, cpu, Rounds.of(runs.phases, runs.count))

    def _meet(
        self, observer: TopicObserver, before: int, tree: ProcessTree, keep_going: Callable[[], None]
    ) -> tuple[Written, float]:
        """Write the load, and wait until the target has all of it; return also the cost meanwhile."""
        load = self._load
        self.log(f"{self.setup.copier.label}: {load.bytes_per_second / 1e6:g} MB/s for {load.seconds:g} s")
        with _writing(load) as writing:
            used = tree.cpu_seconds()
            _until(lambda: writing.poll() is not None, keep_going, load.seconds + _FIRST_SECONDS, "the end of the load")
            cpu = tree.cpu_seconds() - used
            out, problem = writing.communicate()
            if writing.returncode:
                raise BenchError(f"the load failed: {problem.strip()[-500:]}")
        written = Written(**json.loads(out))
        wanted = before + written.records
        _until(lambda: observer.records >= wanted, keep_going, _DRAIN_SECONDS, "the last records on the target")
        if observer.records > wanted:
            raise BenchError(f"the target has {observer.records} records of {wanted}: some are there twice.")
        return written, cpu

    def _sustained(
        self, observer: TopicObserver, written: Written, cpu_seconds: float, rounds: Rounds | None = None
    ) -> Sustained:
        arrivals = [each for each in observer.arrivals if each.max_timestamp >= written.began]
        judged_from = written.began + round(self.options.start_up_seconds * 1000)
        lag = _lag(arrivals, judged_from, written.ended + 1)
        if lag is None:
            raise BenchError("the load was over before its start-up phase.", action="Give it more --seconds.")
        self.log(f"{self.setup.copier.label}: p99 {lag.p99:.2f} s, most {lag.most:.2f} s")
        return Sustained(
            copier=self.setup.copier,
            written=written,
            lag=lag,
            start_up=_lag(arrivals, 0, judged_from),
            seconds=time_line(arrivals, written.began),
            cpu_seconds=cpu_seconds,
            drained_seconds=max(max(each.at for each in arrivals) - written.ended, 0) / 1000,
            rounds=rounds,
        )


class _Runs:
    """This project's runs, one after the other: a run that has caught up ends, and its schedule starts the next one."""

    def __init__(self, host: RelayHost, config: str, flow: str, seconds: float) -> None:
        self._host, self._config, self._flow = host, config, flow
        self._seconds = seconds
        self._running = False
        self.count = 0
        self.phases: list[PhaseTime] = []

    def begin(self) -> None:
        self._host.begin(self._config, self._flow, max_seconds=self._seconds)
        self._running = True
        self.count += 1

    def keep_going(self) -> None:
        if self._host.ended():
            self._finished()
            self.begin()

    def end(self) -> None:
        if self._running:
            self._finished()

    def _finished(self) -> None:
        self.phases += self._host.finish(self._seconds + _DRAIN_SECONDS).phases
        self._running = False


@contextmanager
def _writing(load: Load) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tools.bench.lag.load", *load.command_line()]
    folder = Path(__file__).resolve().parents[3]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def _lag(arrivals: Sequence[Arrival], created_from: int, created_to: int) -> Lag | None:
    try:
        return Lag.of(arrivals, created_from=created_from, created_to=created_to)
    except ValueError:
        return None


def _until(condition: Callable[[], bool], keep_going: Callable[[], None], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        keep_going()
        if time.monotonic() > deadline:
            raise BenchError(f"{what} did not come within {seconds:.0f} s.")
        time.sleep(_POLL_SECONDS)


def parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; wrong ones end the process with exit code 2."""
    given = Options()
    parser = argparse.ArgumentParser(prog="bench lag", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--rate", type=float, default=given.megabytes_per_second, help="Load in MB of values per second (20)."
    )
    parser.add_argument("--seconds", type=float, default=given.seconds, help="Duration of the load in seconds (60).")
    parser.add_argument(
        "--start-up", type=float, default=given.start_up_seconds, help="Seconds at the start that are not measured (5)."
    )
    parser.add_argument("--partitions", type=int, default=given.partitions, help="Partitions of the topic (8).")
    parser.add_argument("--value-bytes", type=int, default=given.value_bytes, help="Bytes of each value (1000).")
    parser.add_argument("--compression", default=given.compression, help="Compression of the producer (none).")
    parser.add_argument("--processes", type=int, default=given.processes, help="tasks.max, and cores of Spark (2).")
    parser.add_argument(
        "--copiers",
        default=",".join((Copier.MIRROR, Copier.MM2_TUNED, Copier.MM2_DEFAULT)),
        help="Copiers to run, separated by commas.",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write all measurements to this file, as JSON.")
    return parser.parse_args(argv)


def make_options(chosen: argparse.Namespace) -> Options:
    """Return what to measure, from the arguments.

    Raises:
        ValueError: a copier is unknown.
    """
    return Options(
        copiers=tuple(Copier(name.strip()) for name in chosen.copiers.split(",") if name.strip()),
        megabytes_per_second=chosen.rate,
        seconds=chosen.seconds,
        start_up_seconds=chosen.start_up,
        partitions=chosen.partitions,
        value_bytes=chosen.value_bytes,
        compression=chosen.compression,
        processes=chosen.processes,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code, which is 0 whether or not the goal is reached."""
    chosen = parse_arguments(sys.argv[1:] if argv is None else argv)
    progress, console = Console(stderr=True), Console(width=None if sys.stdout.isatty() else _WIDTH)
    signal.signal(signal.SIGTERM, interrupt)
    # The observer requests a topic until it exists, and aiokafka logs each failure as an error.
    logging.getLogger("aiokafka.cluster").setLevel(logging.CRITICAL)
    try:
        options = make_options(chosen)
    except ValueError as error:
        progress.print(str(error), style="red", markup=False)
        return 2

    def log(text: str) -> None:
        progress.print(text, highlight=False)

    try:
        machine = describe(java=java_version(), kafka=KAFKA_VERSION)
        with tempfile.TemporaryDirectory(prefix="mirror-lag-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            with RelayHost(cores=options.processes, directory=folder) as host, started_pair(folder) as pair:
                host.wait_started()
                measured = run(options, pair, host, folder, log)
    except MirrorError as error:
        progress.print(str(error), style="red", markup=False)
        return error.exit_code
    except KeyboardInterrupt:
        progress.print("interrupted; all processes are stopped")
        return 130
    console.print(machine.line(), style="dim")
    console.print(lag_table(measured))
    for each in measured:
        if each.rounds is not None:
            console.print(rounds_table(each.rounds))
    console.print(time_line_table(measured))
    console.print(goal_table(goals(measured)))
    if chosen.json is not None:
        document = {"machine": asdict(machine), "options": asdict(options), "measured": to_plain(measured)}
        chosen.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0
