"""A driver host on this machine: drivers for a warm Spark, forked from a process with all modules loaded."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo.background_process import BackgroundProcess, ProcessError, running, start, stop_running
from mirror_lib.features.warm_spark.hosted_driver import NoDriverHostError, greeting_of
from mirror_lib.spark.submit import checkout_path

_MODULE = "spark_jobs.driver_host"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05


def host_command(socket: Path | None = None) -> list[str]:
    """Return the command that starts a host in the foreground; docker-compose.yaml has the same.

    Args:
        socket: None uses `MIRROR_DRIVER_HOST`.
    """
    return [sys.executable, "-m", _MODULE, *([] if socket is None else [str(socket)])]


@dataclass(frozen=True, slots=True)
class DriverHost:
    """The host of one state folder; any process with the same state folder can start, see and stop it."""

    directory: Path

    @property
    def socket(self) -> Path:
        """The path of its socket, the value of `MIRROR_DRIVER_HOST`."""
        # A separate folder, which must not be accessible to others.
        return self.directory / "private" / "socket"

    @property
    def process(self) -> BackgroundProcess | None:
        """Its process if it runs."""
        return running(self.directory / "pid.json")

    def start(self) -> Path:
        """Start it anew, with the present code, and wait until it listens; return its socket.

        Raises:
            ProcessError: it does not come up.
        """
        self.stop()
        start(
            host_command(self.socket),
            log=self.directory / "host.log",
            pid_file=self.directory / "pid.json",
            env={**os.environ, **checkout_path(os.environ)},
            wait=self._wait,
        )
        return self.socket

    def stop(self) -> bool:
        """End it; drivers that it has started continue. Return True if it ran.

        Raises:
            ProcessError: it cannot be ended.
        """
        return stop_running(self.directory / "pid.json")

    def _wait(self, process: BackgroundProcess) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                greeting_of(self.socket)
            except NoDriverHostError as error:
                if process.wait(_POLL_SECONDS) or time.monotonic() > deadline:
                    raise ProcessError(
                        f"the driver host did not start: {process.log_tail() or error}",
                        action=f"Its log: {process.log}",
                    ) from error
            else:
                return
