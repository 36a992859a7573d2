"""`./run test --slowest`: the seconds of a test run by file, by fixture, by what was started, and by plain waiting.

With `--timings FOLDER` each process that runs tests appends one line of JSON per test to a file of that folder;
`python -m tests.support.timings FOLDER` prints the tables. Seconds of parallel workers add up, so they exceed the time
on the clock.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

#: Kind -> functions that start, stop or wait for it, as `module:attribute`.
STARTS: Mapping[str, tuple[str, ...]] = {
    "Kafka brokers": (
        "mirror_lib.dev.broker:KafkaCluster.start",
        "mirror_lib.dev.broker:KafkaCluster.stop",
        "mirror_lib.dev.broker:KafkaCluster.restart",
    ),
    "Airflow": (
        "mirror_lib.dev.airflow:LocalAirflow.start",
        "mirror_lib.dev.airflow:LocalAirflow.stop",
        "tests.support.airflow.parts:RunningAirflow.wait_ready",
        "tests.support.airflow.dags:DagHost.__enter__",
        "tests.support.airflow.dags:DagHost.__exit__",
    ),
    "Spark": (
        "pyspark.sql.session:SparkSession.Builder.getOrCreate",
        "pyspark.sql.session:SparkSession.stop",
        "testbed.spark_cluster:SparkCluster.start",
        "testbed.spark_cluster:SparkCluster.stop",
        "mirror_lib.dev.spark_connect:SparkConnectServer.start",
        "mirror_lib.dev.spark_connect:SparkConnectServer.stop",
    ),
    "MirrorMaker 2": (
        "testbed.mm2:MirrorMaker.start",
        "testbed.mm2:MirrorMaker.wait_started",
        "testbed.mm2:MirrorMaker.stop",
    ),
    "Chromium": ("playwright.sync_api:BrowserType.launch",),
    "PostgreSQL": ("tests.support.ledger.postgres:_run",),
}
#: Programs that a test calls and waits for, such as `mirror`, outside of the kinds above.
CALLED = {"called programs": ("subprocess:run", "subprocess:Popen.wait", "subprocess:Popen.communicate")}
WAITING = {"plain waiting": ("time:sleep",)}
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of one test with the fixtures that it was the first to ask for, or the last to need."""

    test: str
    worker: str
    seconds: float
    #: Of processors, by the process itself and by all its children that have ended meanwhile.
    processor: float = 0.0
    fixtures: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, float] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The test file."""
        return self.test.partition("::")[0]


@dataclass(frozen=True, slots=True)
class Session:
    """One call of pytest: the seconds it took, and the busy part of the processors' time (0 to 1)."""

    seconds: float
    busy: float


class Stopwatch:
    """Intervals by kind, from all threads of this process; what two of one kind have in common counts once."""

    def __init__(self) -> None:
        self._intervals: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self._lock = threading.Lock()
        self._patched: set[str] = set()

    @contextmanager
    def measuring(self, kind: str) -> Iterator[None]:
        """Count the time inside as that of a kind."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._intervals[kind].append((began, time.perf_counter()))

    def watch_loaded(self) -> None:
        """Measure the functions of all modules that are loaded by now; nothing is imported for it."""
        for group in (STARTS, CALLED, WAITING):
            for kind, names in group.items():
                for name in set(names) - self._patched:
                    module, _, attribute = name.partition(":")
                    if module in sys.modules:
                        self._patched.add(name)
                        self._patch(kind, sys.modules[module], attribute)

    def take(self) -> dict[str, float]:
        """Seconds by kind since the last call; earlier kinds of the tables take precedence over later ones."""
        with self._lock:
            intervals, self._intervals = dict(self._intervals), defaultdict(list)
        starts = [each for kind in STARTS for each in intervals.get(kind, ())]
        called = [each for kind in CALLED for each in intervals.get(kind, ())]
        found = {kind: covered(intervals.get(kind, ())) for kind in STARTS}
        for kind in CALLED:
            found[kind] = covered(starts + intervals.get(kind, [])) - covered(starts)
        for kind in WAITING:
            found[kind] = covered(starts + called + intervals.get(kind, [])) - covered(starts + called)
        return {kind: seconds for kind, seconds in found.items() if seconds > 0}

    def _patch(self, kind: str, module: Any, attribute: str) -> None:
        *outer, name = attribute.split(".")
        owner = functools.reduce(getattr, outer, module)
        setattr(owner, name, self._measured(kind, getattr(owner, name)))

    def _measured(self, kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
        main_only = kind in WAITING

        @functools.wraps(call)
        def measured(*args: Any, **kwargs: Any) -> Any:
            if main_only and threading.current_thread() is not threading.main_thread():
                return call(*args, **kwargs)
            with self.measuring(kind):
                return call(*args, **kwargs)

        return measured


def covered(intervals: Iterable[tuple[float, float]]) -> float:
    """The length of the union of intervals."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


class Timings:
    """The plugin of a process that runs tests."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}.jsonl"
        self._worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._watch = Stopwatch()
        self._fixtures: dict[str, float] = {}
        self._processor = _processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test with its fixtures."""
        self._watch.watch_loaded()
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            self._note(item.nodeid, time.perf_counter() - began)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        """One fixture without those that it asks for: pytest sets those up before."""
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            name = f"{fixturedef.argname} ({fixturedef.scope})"
            self._fixtures[name] = self._fixtures.get(name, 0.0) + time.perf_counter() - began
            self._watch.watch_loaded()

    def _note(self, test: str, seconds: float) -> None:
        processor, self._processor = self._processor, _processor_seconds()
        used = self._processor - processor
        line = Measured(test, self._worker, seconds, used, self._fixtures, self._watch.take())
        with self._file.open("a") as lines:
            lines.write(json.dumps(asdict(line)) + "\n")
        self._fixtures = {}


class SessionTiming:
    """The plugin of the process that was started first: it notes how long all took, and how busy the machine was."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = time.perf_counter()
        self._busy, self._ticks = _processor_ticks()

    def pytest_sessionfinish(self) -> None:
        """Leave it for `main`."""
        busy, ticks = _processor_ticks()
        noted = Session(time.perf_counter() - self._began, (busy - self._busy) / max(1, ticks - self._ticks))
        (self._folder / f"session-{os.getpid()}.json").write_text(json.dumps(asdict(noted)))


def tables(measured: Iterable[Measured]) -> Iterator[Table]:
    """By file, by fixture, and by kind, each with the longest first."""
    files: dict[str, list[Measured]] = defaultdict(list)
    fixtures: dict[str, float] = defaultdict(float)
    kinds: dict[str, float] = defaultdict(float)
    for each in measured:
        files[each.file].append(each)
        for name, seconds in each.fixtures.items():
            fixtures[name] += seconds
        for kind, seconds in each.kinds.items():
            kinds[kind] += seconds
    by_file = Table(
        "file", "tests", "seconds", "processor", "of it starting", "called programs", "plain waiting", box=None
    )
    by_file.title = "By file"
    for name, found in _longest({name: sum(each.seconds for each in tests) for name, tests in files.items()}):
        of_file: dict[str, float] = defaultdict(float)
        for test in files[name]:
            for kind, seconds in test.kinds.items():
                of_file[kind if kind in CALLED or kind in WAITING else "start"] += seconds
        by_file.add_row(
            name,
            str(len(files[name])),
            f"{found:.1f}",
            f"{sum(test.processor for test in files[name]):.1f}",
            *(f"{of_file[kind]:.1f}" for kind in ("start", *CALLED, *WAITING)),
        )
    yield by_file
    for title, seconds_by_name in (("By fixture", fixtures), ("By what is started", kinds)):
        table = Table("", "seconds", box=None, title=title)
        for name, seconds in _longest(seconds_by_name):
            table.add_row(name, f"{seconds:.1f}")
        yield table


def _longest(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda entry: -entry[1])[:_SHOWN]


def _processor_seconds() -> float:
    """User and system time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _processor_ticks() -> tuple[int, int]:
    """Ticks of all processors since the machine started (proc_stat(5)): busy ones, and all."""
    fields = [int(each) for each in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return sum(fields) - idle, sum(fields)


def watched_functions() -> Iterator[tuple[str, Any]]:
    """All functions that are measured, imported: the names must not go out of date."""
    for group in (STARTS, CALLED, WAITING):
        for names in group.values():
            for name in names:
                module, _, attribute = name.partition(":")
                yield name, functools.reduce(getattr, attribute.split("."), importlib.import_module(module))


def main(folder: Path) -> None:
    """Print the tables of all sessions that have left their measurements in a folder."""
    measured = [
        Measured(**json.loads(line))
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    sessions = [Session(**json.loads(path.read_text())) for path in sorted(folder.glob("session-*.json"))]
    console = Console(width=None if sys.stdout.isatty() else 120)
    for table in tables(measured):
        console.print(table)
    clock = sum(each.seconds for each in sessions)
    busy = sum(each.seconds * each.busy for each in sessions) / max(clock, 1e-9)
    console.print(
        f"{clock:.0f} s on the clock, {sum(each.seconds for each in measured):.0f} s of tests; "
        f"the processors were busy for {busy:.0%} of the time."
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
