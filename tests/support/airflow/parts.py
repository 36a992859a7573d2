"""Parts of Airflow and Spark as processes of their own, as a deployment runs them, and what its REST API tells."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mirror_lib.features.demo.airflow_api import AirflowApi, AirflowApiError, DagRunStatus
from mirror_lib.features.demo.background_process import BackgroundProcess, start
from mirror_lib.processes import session_members, tail

#: For tests whose DAG files stay as they are: parsing all of them twice a minute takes a third of a core.
#: Airflow takes DAGs that it has not seen for ten minutes for gone.
SELDOM_PARSED = {"AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300"}
_POLL_SECONDS = 0.5
_READY_SECONDS = 240.0
_RUN_SECONDS = 480.0
_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")


class Parts:
    """Starts processes by name, and ends them all, in the opposite order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: dict[str, BackgroundProcess] = {}
        self._started: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes.values()):
            process.stop(grace_seconds=5.0)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start a command, found by the PATH of its own environment."""
        program = shutil.which(command[0], path=environment["PATH"])
        assert program is not None, f"{command[0]} is not on the PATH"
        self._started[name] = command, environment
        self._processes[name] = start([program, *command[1:]], log=self._folder / f"{name}.log", env=dict(environment))

    def replace(self, name: str) -> None:
        """Kill a process with everything it has started, as a machine that is gone does, and start it again."""
        self._processes.pop(name).kill()
        self.start(name, *self._started[name])

    def start_beside(self, name: str, other: str) -> None:
        """Start a second process like one that runs."""
        self.start(other, *self._started[name])

    def end(self, name: str) -> None:
        """End a process; it is not watched afterwards."""
        self._processes.pop(name).stop()

    def freeze(self, name: str) -> None:
        """Stop a process with everything it has started, as a machine does that hangs."""
        self._signal(name, signal.SIGSTOP)

    def wake(self, name: str) -> None:
        """Continue a process that was frozen."""
        self._signal(name, signal.SIGCONT)

    def _signal(self, name: str, number: signal.Signals) -> None:
        for pid in session_members(self._processes[name].pid):
            os.kill(pid, number)

    def wait_end(self, name: str, seconds: float) -> None:
        """Wait until a process has ended by itself; it is not watched afterwards."""
        process = self._processes.pop(name)
        ended = process.wait(seconds)
        if not ended:
            process.stop()
        assert ended, f"{name} did not end in {seconds:.0f} s:\n{self.log(name)}"

    def check(self) -> None:
        """Fail when a process has ended."""
        for name, process in self._processes.items():
            assert process.is_running, f"{name} has ended:\n{self.log(name)}"

    def log(self, name: str, lines: int = 40) -> str:
        """The last lines of what a process printed."""
        return tail(self._folder / f"{name}.log", lines)

    def wait(self, done: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not done():
            self.check()
            if time.monotonic() > deadline:
                logs = "\n".join(f"--- {name}\n{self.log(name, 15)}" for name in self._processes)
                raise AssertionError(f"{what} did not come in {seconds:.0f} s:\n{logs}")
            time.sleep(_POLL_SECONDS)


class RunningAirflow:
    """An Airflow of several processes, through its REST API."""

    def __init__(
        self,
        parts: Parts,
        url: str,
        password_of_admin: Callable[[], str | None] | None = None,
        needed: Collection[str] = _PARTS,
    ) -> None:
        self.parts = parts
        self.url = url
        self.api = AirflowApi(url)
        self._password = password_of_admin
        self._needed = needed

    def wait_ready(self, dag_ids: Sequence[str]) -> None:
        """Wait until all needed parts are healthy, and the DAGs are there."""
        self.parts.wait(self._healthy, "a healthy Airflow", _READY_SECONDS)
        if self._password is not None:
            self.api = AirflowApi(self.url, token=self._token(self._password()))
        self.parts.wait(lambda: all(map(self.api.has_dag, dag_ids)), f"the DAGs {dag_ids}", _READY_SECONDS)

    def run(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> DagRunStatus:
        """Trigger a run and wait for its end."""
        self.api.unpause(dag_id)
        run_id = self.api.trigger(dag_id, conf or {})
        self.parts.wait(lambda: self.api.has_ended(dag_id, run_id), f"the end of {dag_id} {run_id}", _RUN_SECONDS)
        return self.api.run_status(dag_id, run_id)

    def _healthy(self) -> bool:
        try:
            health = self.api.health()
        except AirflowApiError:
            return False
        return all(health.get(part) == "healthy" for part in self._needed)

    def _token(self, password: str | None) -> str:
        assert password, "Airflow has made no password"
        body = json.dumps({"username": "admin", "password": password}).encode()
        request = urllib.request.Request(
            f"{self.url}/auth/token", data=body, headers={"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
            return str(json.load(answer)["access_token"])
