"""`./run test --slowest`: the seconds of a test run by file and by fixture.

With `--timings FOLDER` each process that runs tests appends one line of JSON per test to a file of that folder;
`python -m tests.support.timings FOLDER` prints the tables. Seconds of parallel workers add up, so they exceed the time
on the clock.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds of one test with the fixtures that it was the first to ask for, or the last to need."""

    test: str
    seconds: float
    #: Of processors, by the process itself and by all its children that have ended meanwhile.
    processor: float = 0.0
    fixtures: Mapping[str, float] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The test file."""
        return self.test.partition("::")[0]


@dataclass(frozen=True, slots=True)
class Session:
    """One call of pytest: the seconds it took, and the busy part of the processors' time (0 to 1)."""

    seconds: float
    busy: float


class Timings:
    """The plugin of a process that runs tests."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / f"{os.getpid()}.jsonl"
        self._fixtures: dict[str, float] = defaultdict(float)
        self._processor = _processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """One test with its fixtures."""
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
            self._fixtures[f"{fixturedef.argname} ({fixturedef.scope})"] += time.perf_counter() - began

    def _note(self, test: str, seconds: float) -> None:
        processor, self._processor = self._processor, _processor_seconds()
        line = Measured(test, seconds, self._processor - processor, dict(self._fixtures))
        with self._file.open("a") as lines:
            lines.write(json.dumps(asdict(line)) + "\n")
        self._fixtures.clear()


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
    """By file and by fixture, each with the longest first."""
    files: dict[str, list[Measured]] = defaultdict(list)
    fixtures: dict[str, float] = defaultdict(float)
    for each in measured:
        files[each.file].append(each)
        for name, seconds in each.fixtures.items():
            fixtures[name] += seconds
    by_file = Table("file", "tests", "seconds", "processor", box=None, title="By file")
    for name, found in _longest({name: sum(each.seconds for each in tests) for name, tests in files.items()}):
        processor = sum(test.processor for test in files[name])
        by_file.add_row(name, str(len(files[name])), f"{found:.1f}", f"{processor:.1f}")
    yield by_file
    by_fixture = Table("fixture", "seconds", box=None, title="By fixture")
    for name, seconds in _longest(fixtures):
        by_fixture.add_row(name, f"{seconds:.1f}")
    yield by_fixture


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
