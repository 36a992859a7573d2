"""`spark-submit` for an Airflow connection, as the Spark provider's hook runs it."""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from typing import Any

from mirror_lib.airflow.spark.submission import master_url
from mirror_lib.errors import ConfigurationError
from mirror_lib.printable import Lines
from mirror_lib.processes import end_session

#: Extras of the connection that are options of `spark-submit`; `spark-binary` is the program.
_OPTIONS = {"deploy-mode": "--deploy-mode", "queue": "--queue"}
_NAMESPACE = "spark.kubernetes.namespace"
_GRACE_SECONDS, _KILL_SECONDS = 10.0, 10.0


def submit_line(
    connection: Any,
    *,
    conf: Mapping[str, Any],
    name: str,
    variables: Mapping[str, str],
    application: Sequence[str],
) -> list[str]:
    """Return the command line of a job.

    Args:
        connection: Airflow's, of type spark.
        variables: for the driver, where the cluster starts it.
        application: the job's file and its arguments.

    Raises:
        ConfigurationError: an extra of the connection is not carried over, or Spark's standalone master is to start
            the driver, which takes nobody's exit code.
    """
    extra = dict(connection.extra_dejson)
    program = str(extra.pop("spark-binary", None) or "spark-submit")
    master = master_url(connection)
    settings = dict(conf)
    if namespace := extra.pop("namespace", None):
        settings[_NAMESPACE] = namespace
    options = {option: extra.pop(key) for key, option in _OPTIONS.items() if extra.get(key)}
    left = sorted(key for key, value in extra.items() if value not in (None, "", False))
    if left:
        raise ConfigurationError(
            f"the Spark connection has the extras {', '.join(left)}, which tasks with mirror.airflow.execution = "
            "external do not have.",
            action="Put them into spark-defaults.conf of the environment of `mirror`.",
        )
    cluster = options.get("--deploy-mode") == "cluster"
    if cluster and master.startswith("spark://"):
        raise ConfigurationError(
            f"deploy-mode cluster on {master}: spark-submit does not wait for the driver there.",
            action="Use deploy mode client.",
        )
    prefix = {"yarn": "spark.yarn.appMasterEnv."}.get(master)
    if cluster and master.startswith("k8s://"):
        prefix = "spark.kubernetes.driverEnv."
    if prefix:
        settings |= {f"{prefix}{key}": value for key, value in variables.items()}
    return [
        program,
        "--master",
        master,
        *(part for option in options.items() for part in map(str, option)),
        *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
        "--name",
        name,
        *application,
    ]


class SparkChild:
    """The running `spark-submit`. It has its own process session, so that all its processes can be ended."""

    def __init__(self, line: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            ConfigurationError: the program does not exist.
        """
        try:
            self._process = subprocess.Popen(
                line,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            raise ConfigurationError(
                f"{line[0]} cannot be started: {error.strerror or error}.",
                action="Install batch-mirror[spark] in the environment of `mirror`, or name the program in the "
                "connection's extra `spark-binary`.",
            ) from error

    def run(self, log: logging.Logger) -> int:
        """Return the exit code; its output becomes lines of the log. An exception ends it."""
        assert self._process.stdout is not None
        try:
            # A carriage return ends no line.
            with TextIOWrapper(self._process.stdout, errors="replace", newline="\n") as lines:
                for line in lines:
                    log.info("%s", Lines(line.rstrip()))
            return self._process.wait()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Interrupt the job, so that it can still write to the ledger, then kill what is left."""
        if not end_session(self._process, signal.SIGINT, _GRACE_SECONDS):
            end_session(self._process, signal.SIGKILL, _KILL_SECONDS)
