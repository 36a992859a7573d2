"""A local Airflow for the demo and the tests: `airflow standalone` in the background, reachable from this machine only.

It works around three problems of Airflow 3.3: tasks call port 8080 unless the API server's own port is set; "Airflow is
ready" does not check the API server; and its children can survive the signal that ends it.
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.local_state import project_root, state_dir
from mirror_lib.features.demo.airflow_api import AirflowApi, AirflowApiError
from mirror_lib.features.demo.background_process import BackgroundProcess, ProcessError, recall, running, start
from mirror_lib.features.demo.ports import LOOPBACK, free_ports, is_free
from mirror_lib.private_files import write_atomically
from mirror_lib.processes import tail

#: Airflow's default port; another one is used if it is taken.
PREFERRED_PORT = 8080
PORT_VARIABLE = "MIRROR_AIRFLOW_PORT"
#: Measured on two busy cores: 44 to 61 s, the database of the first start included.
_START_SECONDS = 300.0
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.5
_WITHOUT_LOG_SERVERS = """\
#!/bin/sh
case ${{1:-}} in scheduler|triggerer) set -- "$@" --skip-serve-logs ;; esac
exec {real} "$@"
"""
#: Components that must report a heartbeat before a DAG can run.
_NEEDED = ("metadatabase", "scheduler", "dag_processor")


@dataclass(frozen=True, slots=True)
class LocalAirflow:
    """Airflow in one folder: its database, its logs, its process."""

    home: Path
    project: Path

    @classmethod
    def of_project(cls) -> LocalAirflow:
        """Return the Airflow of this project, under its state folder."""
        return cls(home=state_dir() / "airflow", project=project_root())

    @property
    def log(self) -> Path:
        """The output of all its components."""
        return self.home / "standalone.log"

    @property
    def url(self) -> str:
        """The address of its pages and its API."""
        return f"http://{LOOPBACK}:{self._port()}"

    @property
    def api(self) -> AirflowApi:
        """A client of its REST API."""
        return AirflowApi(self.url)

    @property
    def process(self) -> BackgroundProcess | None:
        """The running `airflow standalone`, None if it does not run."""
        return running(self._pid_file)

    def start(self, extra: Mapping[str, str], waiting: Callable[[str], None]) -> bool:
        """Start Airflow unless it runs, and wait until it can run DAGs; return True if it was started now.

        Args:
            extra: environment variables for Airflow and its tasks, such as `MIRROR_CONFIG`.
            waiting: called with one line about the component that is not ready, several times a second.

        Raises:
            ProcessError: it ended or was not ready in time; the message holds the end of its log.
        """
        started = self.process is None
        if started:
            self._remember_port(self._choose_port())
            self._write_programs()
            start(
                [str(Path(sys.executable).with_name("airflow")), "standalone"],
                log=self.log,
                pid_file=self._pid_file,
                env=self.environment(extra),
            )
        self._wait_ready(waiting)
        return started

    def stop(self) -> bool:
        """End Airflow with all its processes; return True if any was running.

        Raises:
            ProcessError: a process survives even a kill.
        """
        process = recall(self._pid_file)
        if process is None:
            return False
        was_running = process.is_running
        # Also if the leader is gone: its children may still be running.
        process.stop(grace_seconds=_STOP_SECONDS)
        self._pid_file.unlink(missing_ok=True)
        return was_running

    @property
    def _programs(self) -> Path:
        return self.home / "bin"

    def _write_programs(self) -> None:
        """Put a wrapper named `airflow` first on the PATH, which `airflow standalone` uses for its components.

        Their log servers would listen on all interfaces, which no setting changes; logs of this machine are read from
        files.
        """
        self._programs.mkdir(parents=True, exist_ok=True)
        program = self._programs / "airflow"
        real = Path(sys.executable).with_name("airflow")
        program.write_text(_WITHOUT_LOG_SERVERS.format(real=shlex.quote(str(real))), encoding="utf-8")
        program.chmod(0o700)

    def environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        """Return the whole environment of Airflow: this process's, without other Airflow settings, plus the demo's."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")}
        folder = Path(sys.executable).parent
        return {
            **inherited,
            "PATH": os.pathsep.join([str(self._programs), str(folder), os.environ.get("PATH", os.defpath)]),
            "PYTHONPATH": os.pathsep.join(filter(None, [str(self.project), os.environ.get("PYTHONPATH", "")])),
            # A proxy of the environment must not be used between Airflow's own components.
            "NO_PROXY": ",".join(filter(None, [LOOPBACK, "localhost", os.environ.get("NO_PROXY", "")])),
            "no_proxy": ",".join(filter(None, [LOOPBACK, "localhost", os.environ.get("no_proxy", "")])),
            **airflow_settings(self.home, self.project, self._port()),
            **extra,
        }

    @property
    def _pid_file(self) -> Path:
        return self.home / "standalone.pid"

    def _wait_ready(self, waiting: Callable[[str], None]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        missing = "the API server"
        while True:
            process = self.process
            if process is None:
                raise ProcessError(
                    f"Airflow ended while starting. The end of its log:\n{tail(self.log, 20)}\n",
                    action=f"The whole log is {self.log}.",
                )
            try:
                health = self.api.health()
                lacking = [name for name in _NEEDED if health.get(name) != "healthy"]
                if not lacking:
                    return
                missing = ", ".join(lacking)
            except AirflowApiError:
                missing = "the API server"
            waiting(f"Airflow is starting: waiting for {missing}")
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"Airflow was not ready after {_START_SECONDS:.0f} s: {missing} did not come up.",
                    action=f"Its log is {self.log}.",
                )
            time.sleep(_POLL_SECONDS)

    def _choose_port(self) -> int:
        requested = os.environ.get(PORT_VARIABLE)
        if requested:
            return int(requested)
        remembered = self._port()
        for port in (remembered, PREFERRED_PORT):
            if port and is_free(port):
                return port
        return free_ports(1)[0]

    def _port(self) -> int:
        try:
            return int((self.home / "port").read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return PREFERRED_PORT

    def _remember_port(self, port: int) -> None:
        write_atomically(self.home / "port", f"{port}\n")


def airflow_settings(home: Path, project: Path, port: int) -> dict[str, str]:
    """Return Airflow's settings as environment variables; a file could become outdated."""
    url = f"http://{LOOPBACK}:{port}"
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(project / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(project / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "2",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        # The demo has no login; that is why it listens on the loopback address only.
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__API__HOST": LOOPBACK,
        # Nor does it answer under a name that a site has pointed at this machine (`page.plugin.HOSTS_VARIABLE`).
        "MIRROR_AIRFLOW_HOSTS": f"{LOOPBACK} localhost",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "2",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "30",
        "AIRFLOW__TRIGGERER__CAPACITY": "10",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "AIRFLOW__METRICS__STATSD_ON": "False",
        # Connections in variables have priority over the metadata database and need no command to create them.
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[*]"}',
    }
