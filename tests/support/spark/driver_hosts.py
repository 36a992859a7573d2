"""A driver host with jobs that stand in for those of Spark, as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mirror_lib.features.warm_spark.driver_host_protocol import DriverRequest
from mirror_lib.features.warm_spark.hosted_driver import HostedDriver, NoDriverHostError, ask_for_driver, greeting_of

PROJECT = Path(__file__).resolve().parents[3]
SECONDS = 60
#: Its other arguments are the modules that it may run.
_HOST = """
import logging, sys
from pathlib import Path
from spark_jobs.driver_host import serve

logging.basicConfig(level=logging.INFO, format="host: %(message)s")
serve(Path(sys.argv[1]), modules=sys.argv[2:], preloaded=("random",))
"""


def wait_until(so: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Return when it is so; fail when it never is."""
    deadline = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class StandInHost:
    """Runs jobs of one folder; use as a context manager."""

    def __init__(self, folder: Path, jobs: Mapping[str, str], *, modules: Sequence[str] | None = None) -> None:
        """Args:
        folder: of its files, and of the jobs.
        jobs: the text of each module.
        modules: what it may run; by default all of them.
        """
        self.folder = folder
        self.socket = folder / "private" / "socket"
        self.log = folder / "host.log"
        for name, text in jobs.items():
            (folder / f"{name}.py").write_text(text)
        self.modules = list(jobs if modules is None else modules)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _HOST, str(self.socket), *self.modules],
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(self._listens)

    def _listens(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            greeting_of(self.socket)
        except NoDriverHostError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Have it end; returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)

    def environment(self, **more: str) -> dict[str, str]:
        """One in which its jobs and the project are found."""
        path = os.pathsep.join([str(self.folder), str(PROJECT)])
        return {**os.environ, "PYTHONPATH": path, "LC_ALL": "C.UTF-8", **more}

    def request(self, module: str, *arguments: str, **environment: str) -> DriverRequest:
        """For one of its jobs, which has this folder as its own."""
        return DriverRequest(module, arguments, self.environment(**environment), str(self.folder), 0o027)

    def driver(self, module: str, *arguments: str, **environment: str) -> Driver:
        """A driver with files as its streams."""
        return Driver(self.socket, self.request(module, *arguments, **environment), self.folder)


class Driver:
    """A driver of a host, its input a pipe that nobody writes to; use as a context manager."""

    def __init__(self, socket: Path, request: DriverRequest, folder: Path) -> None:
        """Args:
        folder: where it may print to.

        Raises:
            NoDriverHostError: there is none.
        """
        self._output, self._errors = folder / "output", folder / "errors"
        given, self._kept = os.pipe()
        try:
            with self._output.open("wb") as output, self._errors.open("wb") as errors:
                streams = (given, output.fileno(), errors.fileno())
                self.process: HostedDriver = ask_for_driver(socket, request, streams, python=sys.executable)
        except BaseException:
            os.close(self._kept)
            raise
        finally:
            os.close(given)
        self._open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.leave()

    def leave(self) -> None:
        """End as a client that is killed does: the kernel closes all that it had open."""
        if self._open:
            self._open = False
            self.process.__exit__(None, None, None)
            os.close(self._kept)

    @property
    def output(self) -> str:
        """What it has printed."""
        return self._output.read_text()

    @property
    def errors(self) -> str:
        """The same, of its error output."""
        return self._errors.read_text()
