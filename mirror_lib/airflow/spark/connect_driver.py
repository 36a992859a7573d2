"""The driver of a job with a session of a Spark Connect server: a plain Python process of the task.

It is started here, or by a feature: a driver host forks it, which has imported everything already.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import TextIOWrapper
from typing import IO, NamedTuple, Protocol

from mirror_lib.airflow.compatibility import AirflowException
from mirror_lib.feature import Hook
from mirror_lib.installed_features import installed_features
from mirror_lib.printable import Lines
from mirror_lib.spark.connect_server import END_WITH_INPUT_VARIABLE
from mirror_lib.spark.submit import checkout_path

#: Spark's own variable: the Python that runs the job, if it is another environment than Airflow's.
DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
_GRACE_SECONDS = 15.0
_log = logging.getLogger(__name__)


def driver_python() -> str:
    """The Python that runs drivers."""
    return os.environ.get(DRIVER_PYTHON) or sys.executable


def driver_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The whole environment of a driver: this process's with additional variables."""
    return {**os.environ, **checkout_path(os.environ), **more}


class DriverProcess(Protocol):
    """What a task needs of its driver, as of `subprocess.Popen`."""

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None, /) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class StartedDriver(NamedTuple):
    """A running driver, and its output."""

    process: DriverProcess
    #: A carriage return in it ends no line.
    output: IO[str]


class ConnectDriver:
    """One run of a job's module. No JVM is started: it uses only the server.

    It has its own process session: Airflow's supervisor signals a task's whole process group and kills it five seconds
    later (`WatchedSubprocess.kill`), too early for the driver to update the server and the ledger. A pipe that this
    process holds open shows the driver when this process is gone.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self.command = [driver_python(), "-m", module, *arguments]
        self._process: DriverProcess | None = None

    def run(self, environment: Mapping[str, str]) -> None:
        """Run it to its end; its output becomes lines of the task's log.

        Args:
            environment: additional variables, for secrets and for the server's address, which may hold a token.

        Raises:
            AirflowException: its exit code is not 0; with the message of the provider's `SparkSubmitHook.submit`.
        """
        whole = {**driver_environment(environment), END_WITH_INPUT_VARIABLE: "1"}
        with self._start(whole) as (process, output):
            self._process = process
            try:
                for line in output:
                    _log.info("%s", Lines(line.rstrip()))
                code = process.wait()
            except BaseException:
                # A task is ended by an exception, and must not leave a run behind.
                self.end()
                raise
        if code:
            raise AirflowException(f"The driver {self.command[2]} failed. Error code is: {code}.")

    def end(self) -> None:
        """Interrupt it, so that it ends its tasks on the server and updates the ledger; kill it if it does not end."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()

    @contextmanager
    def _start(self, environment: Mapping[str, str]) -> Iterator[StartedDriver]:
        with ExitStack() as stack:
            for start in installed_features().at(Hook.DRIVER):
                if (started := start(self.command, environment, stack)) is not None:
                    yield started
                    return
            yield self._own(environment, stack)

    def _own(self, environment: Mapping[str, str], stack: ExitStack) -> StartedDriver:
        process = stack.enter_context(
            subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        )
        assert process.stdout is not None
        return StartedDriver(process, TextIOWrapper(process.stdout, errors="replace", newline="\n"))
