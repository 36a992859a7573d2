"""Driver processes in the campaign: they can be asked for a run, killed, stopped and continued."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from mirror_lib.processes import session_members
from tools.faults.drivers.session import Prepare, Run, RunEnd, RunError, serve
from tools.faults.errors import FaultsError

_START_SECONDS = 240.0
_CORES = 2
#: The result of a run whose driver is gone.
DRIVER_DIED = RunEnd(errors=(RunError("driver-died", "the driver's process has ended"),))


class Driver:
    """One driver process with its JVM and Python workers. It starts and warms up asynchronously."""

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.log = directory / f"driver-{number}.log"
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, _CORES, str(self.log)), name=f"driver-{number}")
        self._process.start()
        theirs.close()
        self._warm = False

    @property
    def pid(self) -> int:
        """Of the driver itself; its JVM and workers are in its session."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """True if the driver itself has not ended."""
        return self._process.is_alive()

    def wait_warm(self) -> None:
        """Return when the session has run its first Python tasks.

        Raises:
            FaultsError: it does not start.
        """
        if self._warm:
            return
        answer = self.finish(_START_SECONDS)
        if answer is None or answer.errors:
            why = "; ".join(error.text for error in answer.errors) if answer else "no answer"
            raise FaultsError(f"a Spark session did not start: {why}", action=f"See {self.log} (with --keep it stays).")
        self._warm = True

    def begin(self, request: Run | Prepare) -> None:
        """Send a request; `finish` returns its result."""
        self.wait_warm()
        with suppress(OSError):
            self._pipe.send(request)

    @property
    def answered(self) -> bool:
        """True if `finish` would return at once."""
        try:
            return self._pipe.poll(0)
        except OSError:
            return True

    def poll(self) -> RunEnd | None:
        """Return the result of the request, None while it is running."""
        return self.finish(0.0)

    def finish(self, seconds: float) -> RunEnd | None:
        """Wait for the result of the request; return None if it is still running after this time."""
        try:
            if not self._pipe.poll(seconds):
                return None
            end: RunEnd = self._pipe.recv()
        except (EOFError, OSError):
            return DRIVER_DIED
        return end

    def members(self) -> tuple[int, ...]:
        """Return all living processes of the session: driver, JVM, Python daemon and workers."""
        return session_members(self.pid)

    def workers(self) -> tuple[int, ...]:
        """Return the Python workers: children that Spark's daemon forked, which keep its command line."""
        found = []
        for pid in self.members():
            with suppress(psutil.Error):
                process = psutil.Process(pid)
                parent = process.parent()
                if parent is not None and _is_daemon(process) and _is_daemon(parent):
                    found.append(pid)
        return tuple(found)

    def kill_itself(self) -> None:
        """SIGKILL the driver's process alone; its JVM and workers notice it themselves."""
        _signal([self.pid], signal.SIGKILL)
        self._process.join()

    def kill(self, spare: Iterable[int] = ()) -> None:
        """SIGKILL all processes of the session except these."""
        spared = set(spare)
        # One that has just been started leads no session yet.
        _signal({self.pid} - spared if self.alive else (), signal.SIGKILL)
        while left := set(self.members()) - spared:
            _signal(left, signal.SIGKILL)
            self._process.join(0.05)

    def stop(self) -> None:
        """SIGSTOP everything: alive for the kernel, and silent for all others."""
        _signal(self.members(), signal.SIGSTOP)

    def wake(self) -> None:
        """SIGCONT everything."""
        _signal(self.members(), signal.SIGCONT)


class Drivers:
    """A driver to work with and a warm one in reserve; lost ones are replaced in the background."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._started = 0
        self._ready: list[Driver] = []
        self._all: list[Driver] = []
        self._refill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for driver in self._all:
            driver.kill()

    @property
    def current(self) -> Driver:
        """The driver that runs the flow now."""
        self._refill()
        return self._ready[0]

    @property
    def reserve(self) -> Driver:
        """Another driver, for faults that need two at a time."""
        self._refill()
        return self._ready[1]

    def lose(self, driver: Driver) -> None:
        """Stop using a driver; it may live on until the campaign ends."""
        if driver in self._ready:
            self._ready.remove(driver)
        self._refill()

    def bury(self, driver: Driver) -> None:
        """Kill the rest of a driver and forget it."""
        driver.kill()
        self.lose(driver)
        self._all.remove(driver)

    def _refill(self) -> None:
        for driver in [each for each in self._ready if not each.alive]:
            self._ready.remove(driver)
        while len(self._ready) < 2:
            self._started += 1
            driver = Driver(self._started, self._directory)
            self._ready.append(driver)
            self._all.append(driver)


def _is_daemon(process: psutil.Process) -> bool:
    return "pyspark.worker" in process.cmdline()


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
