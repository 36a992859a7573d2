"""The driver of a job that has its session from a Spark Connect server: a plain Python process of the task."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from mirror_lib.airflow.compatibility import AirflowException
from mirror_lib.relay.spark_connect import END_WITH_INPUT_VARIABLE
from mirror_lib.relay.submission import checkout_path

#: Spark's own variable: the Python that runs the job, where that is another environment than Airflow's.
DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
_GRACE_SECONDS = 15.0
_log = logging.getLogger(__name__)


class ConnectDriver:
    """One run of a job's module. No JVM is started: it talks to the server alone.

    It leads a session of its own: Airflow's supervisor signals a task's whole group and kills it five seconds later
    (`WatchedSubprocess.kill`), which is too short for what the driver has to tell the server and the ledger. A pipe,
    open as long as we live, tells it that we are gone.
    """

    def __init__(self, module: str, arguments: Sequence[str]) -> None:
        self.command = [os.environ.get(DRIVER_PYTHON) or sys.executable, "-m", module, *arguments]
        self._process: subprocess.Popen[str] | None = None

    def run(self, environment: Mapping[str, str]) -> None:
        """Run it to its end; what it prints becomes lines of the task's log.

        Args:
            environment: variables beside ours, for secrets and for the server's address, which may hold a token.

        Raises:
            AirflowException: its exit code is not 0; told as by the provider's `SparkSubmitHook.submit`.
        """
        with subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **checkout_path(os.environ), **environment, END_WITH_INPUT_VARIABLE: "1"},
            start_new_session=True,
        ) as process:
            self._process = process
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    _log.info("%s", line.rstrip())
                code = process.wait()
            except BaseException:
                # A task is ended by an exception, and must not leave a run behind.
                self.end()
                raise
        if code:
            raise AirflowException(f"The driver {self.command[2]} failed. Error code is: {code}.")

    def end(self) -> None:
        """Interrupt it, so that it ends its tasks on the server and tells the ledger; kill it when it does not end."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
