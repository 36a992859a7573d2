"""Run tests on one mutant, in a checkout of its own."""

from __future__ import annotations

import itertools
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tools.mutants.model import Mutant, Outcome, Verdict
from tools.mutants.seen import Tests
from tools.mutants.warm import FOLDER, WarmBrokers

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
#: What fixtures need to end brokers.
_END_SECONDS = 30
_TRIES = 2
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_TIMED_OUT = re.compile(r"Failed: Timeout|\+ Timeout \+")
_NO_TESTS = 5
_PASSED = 0
_times = itertools.count(1_000_000_000)


class DisturbedError(Exception):
    """A test that fails with the fault fails without it, too: the mutant cannot be judged."""


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
        #: Tests of which is known that they pass without a fault.
        self._sound: set[str] = set()
        self._running: subprocess.Popen[str] | None = None
        self._ended = False

    def judge(self, mutant: Mutant, tiers: Collection[str] = (UNIT, INTEGRATION)) -> Verdict:
        """Make the fault, run the tests of these tiers that execute it until one fails, and undo it.

        Raises:
            DisturbedError: the test that fails with the fault fails without it, too.
        """
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
        if outcome is Outcome.KILLED_BY_INTEGRATION and by != _HUNG:
            # A broker that did not come up, or a flaky test, is no proof.
            self._check_sound(by if "::" in by else integration[0])
        seconds = round(time.monotonic() - began, 1)
        return Verdict(
            mutant.name, mutant.group, mutant.kind, mutant.first_line, outcome, by, seconds, len(unit), len(integration)
        )

    def end(self) -> None:
        """End the tests that run, and judge no more."""
        self._ended = True
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()

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

    def _check_sound(self, test: str) -> None:
        if test in self._sound:
            return
        failed = self._failure((test,), _INTEGRATION_LIMIT, on_brokers=True)
        if failed:
            self._brokers.restart()
            raise DisturbedError(f"{test} fails without any fault, too: {failed}")
        self._sound.add(test)

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
        # Tests start processes in sessions of their own: whatever a fault leaves running ends with the tests.
        wrapper = ("-m", "tests.support.reaper", sys.executable)
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
        self._running = process
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            _end(process)
            return _Result(_HUNG)
        if self._ended:
            raise DisturbedError("ended by a signal")
        if process.returncode == _PASSED or process.returncode == _NO_TESTS:
            return _Result("")
        if _TIMED_OUT.search(output):
            return _Result(_HUNG)
        failed = _FAILED.search(output)
        return _Result(failed.group(1) if failed else f"exit code {process.returncode}: {output.strip()[-200:]}")

    @staticmethod
    def _write(file: Path, content: bytes) -> None:
        """Python takes a file of the same second and size for what it has compiled, perhaps in an earlier run."""
        file.write_bytes(content)
        moment = next(_times)
        os.utime(file, (moment, moment))
        for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
            compiled.unlink()


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def _end(process: subprocess.Popen[str]) -> None:
    """End the tests; the reaper passes it on, and ends what they started."""
    process.terminate()
    try:
        process.communicate(timeout=_END_SECONDS)
    except subprocess.TimeoutExpired:
        # pytest itself hangs in a fault: the reaper ends the rest then.
        for child in psutil.Process(process.pid).children():
            child.kill()
        process.communicate()
