"""A Spark Connect server on this machine: a warm Spark, so that runs do not wait for Spark to start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo.background_process import BackgroundProcess, ProcessError, running, start, stop_running
from mirror_lib.features.demo.ports import LOOPBACK, free_ports, is_free
from mirror_lib.private_files import write_atomically
from mirror_lib.spark.connect_server import DEFAULT_PORT, REMOTE_VARIABLE, ConnectAddress
from mirror_lib.spark.java import find_java
from mirror_lib.spark.submit import (
    LOCAL_MASTER,
    checkout_path,
    find_spark_home,
    runs_here,
    spark_submit,
    submit_settings,
)

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: `SparkLauncher.NO_RESOURCE`: the class is in Spark's own jars.
_NO_RESOURCE = "spark-internal"
_START_SECONDS = 120.0
_POLL_SECONDS = 0.1

#: Settings of a server for this project's runs, in addition to `SPARK_SETTINGS`.
CONNECT_SETTINGS: Mapping[str, str] = {
    # All runs share one session, since Python workers belong to one. It survives a night without a run.
    "spark.connect.session.manager.defaultSessionTimeout": "24h",
    "spark.ui.enabled": "false",
    # Unlike a run's own Spark it lives long enough for the optimizing compiler to pay off. Rows of transforms are
    # short-lived and large: with a third of the heap as young generation, Spark's usual share, many are promoted before
    # they die.
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC -XX:NewRatio=1",
}


def server_command(spark_home: Path, *, master: str, host: str, port: int) -> list[str]:
    """Return the command that starts the server in the foreground; docker-compose.yaml has the same."""
    settings = {
        **submit_settings(master),
        **CONNECT_SETTINGS,
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": str(port),
    }
    return [
        str(spark_submit(spark_home)),
        f"--class={_CLASS}",
        f"--master={master}",
        "--name=mirror warm",
        *(f"--conf={key}={value}" for key, value in settings.items()),
        _NO_RESOURCE,
    ]


@dataclass(frozen=True, slots=True)
class SparkConnectServer:
    """The server of one state folder; any process with the same state folder can start, see and stop it."""

    directory: Path

    @property
    def process(self) -> BackgroundProcess | None:
        """Its process if it runs."""
        return running(self.directory / "pid.json")

    @property
    def address(self) -> ConnectAddress | None:
        """Its address, None unless it runs."""
        try:
            text = (self.directory / "address").read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return ConnectAddress.parse(text) if self.process is not None else None

    def start(self, *, master: str = LOCAL_MASTER, port: int | None = None) -> ConnectAddress:
        """Start it unless it runs, and wait until its Python workers have run a task of this project.

        Args:
            master: for its tasks.
            port: by default that of the last start, Spark's own or a free one.

        Raises:
            ConfigurationError: Java or Spark is missing.
            ProcessError: it does not come up.
        """
        if (present := self.address) is not None:
            return present
        find_java()
        spark_home = find_spark_home(os.environ)
        address = ConnectAddress(LOOPBACK, port or self._port())
        environment = {
            **os.environ,
            **checkout_path(os.environ),
            "SPARK_HOME": str(spark_home),
            # The driver's address; the machine's own name may not resolve to it.
            "SPARK_LOCAL_IP": LOOPBACK,
        }
        if runs_here(master):
            # For Connect, the variable applies and not `spark.pyspark.python` (`SparkConnectPlanner.pythonExec`).
            environment["PYSPARK_PYTHON"] = sys.executable
        # A client's own address must not reach the server.
        environment.pop(REMOTE_VARIABLE, None)
        write_atomically(self.directory / "address", address.url)
        start(
            server_command(spark_home, master=master, host=address.host, port=address.port),
            log=self.directory / "server.log",
            pid_file=self.directory / "pid.json",
            env=environment,
            wait=lambda process: self._wait(process, address, environment),
        )
        return address

    def stop(self) -> bool:
        """End it with all its workers; return True if it ran.

        Raises:
            ProcessError: it cannot be ended.
        """
        return stop_running(self.directory / "pid.json")

    def _port(self) -> int:
        try:
            port = ConnectAddress.parse((self.directory / "address").read_text(encoding="utf-8")).port
        except FileNotFoundError:
            port = DEFAULT_PORT
        return port if is_free(port) else free_ports(1)[0]

    def _wait(self, process: BackgroundProcess, address: ConnectAddress, environment: Mapping[str, str]) -> None:
        waited = 0.0
        while is_free(address.port):
            if process.wait(_POLL_SECONDS) or waited > _START_SECONDS:
                raise _not_up(process, process.log_tail())
            waited += _POLL_SECONDS
        # In a separate process: only jobs import Spark.
        done = subprocess.run(
            [sys.executable, "-m", "spark_jobs.warm", address.url],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_START_SECONDS,
        )
        if done.returncode:
            raise _not_up(process, done.stderr[-2000:])


def _not_up(process: BackgroundProcess, output: str) -> ProcessError:
    return ProcessError(f"the Spark Connect server did not start: {output}", action=f"Its log: {process.log}")
