"""A driver that a driver host forks, as one of the contestants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.features.warm_spark.driver_host_protocol import DriverRequest, current_umask
from mirror_lib.features.warm_spark.hosted_driver import HostedDriver, NoDriverHostError, ask_for_driver
from mirror_lib.processes import tail
from mirror_lib.spark.connect_server import REMOTE_VARIABLE
from mirror_lib.spark.submit import checkout_path
from tools.bench.end_to_end.contest import Contestant, Started
from tools.bench.errors import BenchError
from tools.bench.machine.process_tree import ProcessTree

_MODULE = "spark_jobs.replicate"
#: Maximum time from the last record to the end of the run.
_COMMIT_SECONDS = 120.0


class HostedRun:
    """A run whose driver was forked; it ends when its run does."""

    def __init__(self, driver: HostedDriver, log: Path, server: ProcessTree | None) -> None:
        """Use a driver.

        Args:
            driver: running.
            log: its output.
            server: process tree that works for it in addition.
        """
        self._driver = driver
        self._log = log
        self._server = server
        self._tree = ProcessTree(driver.pid)
        self._used = 0.0

    def cpu_seconds(self) -> float:
        """Return those of the driver, since it was forked, and of the server."""
        with suppress(psutil.NoSuchProcess):
            self._used = max(self._used, self._tree.cpu_seconds())
        return self._used + (self._server.cpu_seconds() if self._server else 0.0)

    def still_running(self) -> None:
        """Raise if it has failed; it may have ended successfully just before the last look."""
        code = self._driver.poll()
        if code:
            said = tail(self._log, 20)
            raise BenchError(f"the driver ended with exit code {code}. The end of its log:\n{said}")

    def finish(self) -> None:
        """Wait for its end."""
        try:
            self._driver.wait(_COMMIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise BenchError(
                f"the driver did not end within {_COMMIT_SECONDS:.0f} s.", action=f"See {self._log}."
            ) from None
        self.still_running()

    def end(self) -> None:
        """Kill it if it is still running."""
        with self._driver as driver:
            if driver.poll() is None:
                driver.kill()
                driver.wait()


def hosted_driver(socket: Path, remote: str, server_pid: int | None = None) -> Callable[[Contestant], Started]:
    """Return a starter of a driver of the host at this socket with the warm session of a Spark Connect server.

    Args:
        remote: the server's address, `sc://host:port`.
        server_pid: its process, if it runs on this machine and its CPU is to be counted.
    """
    server = None if server_pid is None else ProcessTree(server_pid)

    def start(contestant: Contestant) -> Started:
        arguments = JobArguments(config=contestant.config, flow=contestant.setup.flow, trigger="bench").command_line()
        environment = {**os.environ, **checkout_path(os.environ), REMOTE_VARIABLE: remote}
        request = DriverRequest(_MODULE, tuple(arguments), environment, str(Path.cwd()), current_umask())
        log = contestant.directory / "driver.log"
        with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), output.fileno(), output.fileno())
            try:
                driver = ask_for_driver(socket, request, streams, python=sys.executable)
            except NoDriverHostError as error:
                raise BenchError(str(error)) from error
        return HostedRun(driver, log, server)

    return start
