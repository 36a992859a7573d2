"""Run tests on one mutant, in a checkout of its own."""

from __future__ import annotations

import itertools
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants.model import Mutant, Outcome, Verdict
from mutants.seen import Tests
from mutants.warm import FOLDER, WarmBrokers

#: Folders of tests, in the order in which they run.
UNIT, INTEGRATION = "unit", "integration"
#: What a batch of tests may take: some seconds to start, and a multiple of what it takes undisturbed.
_START_SECONDS = 60.0
_FACTOR = 5.0
#: Tests that take so long together are tried before all others.
_FIRST_SECONDS = 15.0
_FIRST_TESTS = 120
#: What an integration test may need, for all tests of one mutant, and what those take undisturbed.
_INTEGRATION_LIMIT = 120.0
_INTEGRATION_SECONDS = 50.0
_MEMORY_BYTES = 8 << 30
_HUNG = "time-out"
_TRIES = 2
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_TIMED_OUT = re.compile(r"Failed: Timeout|\+ Timeout \+")
_NO_TESTS = 5
_PASSED = 0
_times = itertools.count(1_000_000_000)


@dataclass(frozen=True, slots=True)
class _Result:
    #: "" if all tests passed, else what failed.
    failed: str

    @property
    def hung(self) -> bool:
        return self.failed == _HUNG


class Bench:
    """A checkout in which faults are made, one at a time, with the tests that see them."""

    def __init__(self, folder: Path, unit: Tests, integration: Tests, brokers: WarmBrokers) -> None:
        self._folder = folder
        self._brokers = brokers
        self._unit = unit
        self._integration = integration

    def judge(self, mutant: Mutant, tiers: Collection[str] = (UNIT, INTEGRATION)) -> Verdict:
        """Make the fault, run the tests of these tiers that execute it until one fails, and undo it."""
        began = time.monotonic()
        place = (mutant.path, mutant.first_line, mutant.last_line)
        unit, integration = self._unit.tests_of(*place), self._integration.tests_of(*place)
        file = self._folder / mutant.path
        original = file.read_bytes()
        try:
            self._write(file, mutant.apply(original))
            outcome, by = self._outcome(unit if UNIT in tiers else (), integration if INTEGRATION in tiers else None)
        finally:
            self._write(file, original)
        seconds = round(time.monotonic() - began, 1)
        return Verdict(
            mutant.name, mutant.group, mutant.kind, mutant.first_line, outcome, by, seconds, len(unit), len(integration)
        )

    def _outcome(self, unit: Sequence[str], integration: Sequence[str] | None) -> tuple[Outcome, str]:
        first, rest = self._first(unit)
        for batch in (first, rest):
            limit = _START_SECONDS + _FACTOR * self._unit.seconds(batch)
            if failed := self._failure(batch, limit):
                return Outcome.KILLED_BY_UNIT, failed
        if integration is None:
            return Outcome.UNIT_ONLY, ""
        chosen = self._affordable(integration)
        if not chosen:
            return Outcome.SURVIVED, ""
        self._brokers.start()
        failed = self._failure(chosen, _INTEGRATION_LIMIT, on_brokers=True)
        # If nobody knows how long the tests take, they may be slow.
        if failed and (failed != _HUNG or self._integration.is_measured):
            return Outcome.KILLED_BY_INTEGRATION, failed
        return Outcome.SURVIVED, ""

    def _first(self, tests: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
        seconds = 0.0
        for place, test in enumerate(tests):
            seconds += self._unit.seconds((test,))
            if seconds > _FIRST_SECONDS or place == _FIRST_TESTS:
                return tests[: place + 1], tests[place + 1 :]
        return tests, ()

    def _affordable(self, tests: Sequence[str]) -> Sequence[str]:
        """The quickest tests, as many as fit into the time; at least one."""
        by_seconds = sorted(tests, key=lambda test: self._integration.seconds((test,)))
        seconds = list(itertools.accumulate(self._integration.seconds((test,)) for test in by_seconds))
        fitting = sum(each <= _INTEGRATION_SECONDS for each in seconds)
        return by_seconds[: max(fitting, 1)]

    def _failure(self, tests: Sequence[str], limit: float, *, on_brokers: bool = False) -> str:
        """What fails, "" if nothing does. Only a fault that makes the tests hang twice counts as noticed."""
        if not tests:
            return ""
        for _ in range(_TRIES):
            result = self._run(tests, limit, on_brokers=on_brokers)
            if not result.hung:
                break
            if on_brokers:
                self._brokers.restart()
        return result.failed

    def _run(self, tests: Sequence[str], limit: float, *, on_brokers: bool) -> _Result:
        chosen = self._folder / ".mutant-tests"
        chosen.write_text("".join(f"{test}\n" for test in tests), encoding="utf-8")
        wrapper = ("-m", "tests.support.reaper", sys.executable) if on_brokers else ()
        plugin = ("-p", "mutants.warm") if on_brokers else ()
        command = (sys.executable, *wrapper, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
        options = (*plugin, "--tb=line", "-o", f"timeout={max(30.0, limit / 3):.0f}", f"@{chosen}")
        # The plugin is this checkout's own, whatever the other one holds.
        path = os.pathsep.join((str(self._folder), str(Path(__file__).parents[1])))
        environment = {**os.environ, "PYTHONPATH": path, "CI": "true", FOLDER: str(self._brokers.folder)}
        # Compiling everything anew takes longer than most tests.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        process = subprocess.Popen(
            (*command, *options),
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=None if on_brokers else _limit_memory,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process, gently=on_brokers)
            return _Result(_HUNG)
        if process.returncode == _PASSED or process.returncode == _NO_TESTS:
            return _Result("")
        if _TIMED_OUT.search(output):
            return _Result(_HUNG)
        failed = _FAILED.search(output)
        return _Result(failed.group(1) if failed else f"exit code {process.returncode}: {output.strip()[-200:]}")

    @staticmethod
    def _write(file: Path, content: bytes) -> None:
        """Python takes a file of the same second and size for the one that it has compiled."""
        file.write_bytes(content)
        moment = next(_times)
        os.utime(file, (moment, moment))


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _end(process: subprocess.Popen[str], *, gently: bool) -> None:
    if gently:
        # The reaper passes it on, and ends the brokers.
        process.terminate()
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            pass
        else:
            return
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
