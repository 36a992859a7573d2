"""One Airflow for several files of tests: starting it takes a minute of both cores.

Its DAG files are copies that are parsed when a test asks for it: parsing them again and again keeps a core busy.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.features.demo.airflow import airflow_settings
from mirror_lib.features.demo.airflow_api import AirflowApi, AirflowApiError, DagRunStatus
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from tests.support.airflow.home import migrate
from tests.support.airflow.parts import SELDOM_PARSED, Parts, RunningAirflow

_PROJECT = Path(__file__).resolve().parents[3]
_STEP_SECONDS = 480.0
#: Of Airflow 3.3, and of 3.2.
_WAITS_FOR_A_PERSON = ("awaiting_input", "deferred")


@dataclass(frozen=True, slots=True)
class SharedAirflow:
    """A running Airflow with DAGs of several configuration files."""

    running: RunningAirflow
    folder: Path
    #: Of its processes.
    environment: Mapping[str, str]

    @property
    def api(self) -> AirflowApi:
        """Its REST API."""
        return self.running.api

    def parse_now(self, name: str = "*.py") -> None:
        """Have the DAG files parsed, or one of them, since a configuration file or a DAG's state has changed."""
        for path in (self.folder / "dags").glob(name):
            os.utime(path)

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait for an event, also while Airflow is too busy to answer."""

        def seen() -> bool:
            try:
                return done()
            except AirflowApiError:
                return False

        self.running.parts.wait(seen, what, _STEP_SECONDS)

    def end_of(self, dag_id: str, run_id: str) -> DagRunStatus:
        """How a run has ended, once it has."""
        self.wait(lambda: self.api.has_ended(dag_id, run_id), f"the end of {run_id}")
        return self.api.run_status(dag_id, run_id)

    def task_logs(self, run_id: str, task_id: str = "*") -> str:
        """What the tasks of a run have logged last."""
        found = sorted((self.folder / "airflow" / "logs").glob(f"**/run_id={run_id}/task_id={task_id}/*.log"))
        return "\n".join(f"--- {path.parent.name}\n{path.read_text()[-8000:]}" for path in found)

    def has_parked(self, dag_id: str, run_id: str, task_id: str) -> bool:
        """Whether the scheduler knows that the process of a task which waits for a person has ended.

        Airflow 3.3 fails a task that is answered before.
        """
        heard = f"TaskInstance Finished: dag_id={dag_id}, task_id={task_id}, run_id={run_id},"
        log = (self.folder / "scheduler.log").read_text(errors="replace")
        return heard in log and self.api.run_status(dag_id, run_id).tasks[task_id] in _WAITS_FOR_A_PERSON


@contextmanager
def shared_airflow(
    folder: Path,
    files: Sequence[Path],
    more: Mapping[str, str],
    *,
    password: str | None = None,
    triggerer: bool = True,
    dag_files: Mapping[str, str] | None = None,
    python: Path = Path(sys.executable),
) -> Iterator[SharedAirflow]:
    """Airflow with the DAGs of some configuration files, in a folder of its own.

    Args:
        more: variables of its environment.
        password: of the user `admin`; None if nobody has to log in.
        triggerer: whether any task is deferred, or waits for an event.
        dag_files: name -> text of DAG files in addition to the project's.
        python: of an environment that has Airflow and this project.
    """
    shutil.copytree(_PROJECT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (dag_files or {}).items():
        (folder / "dags" / name).write_text(text)
    port, task_logs, trigger_logs = free_ports(3)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")},
        **airflow_settings(folder / "airflow", _PROJECT, port),
        **SELDOM_PARSED,
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        # Tasks give up a server that is busy after 5 s.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        # How soon a scheduler looks for tasks of one that is gone; five minutes by default.
        "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
        # How soon it takes that one for gone; 30 s by default.
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
        # And a triggerer another one; 30 s by default.
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
        # How soon a task ends whose run was marked; 5 s by default.
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "2",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(task_logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(_PROJECT),
        "NO_PROXY": f"{LOOPBACK},localhost",
        "no_proxy": f"{LOOPBACK},localhost",
        "MIRROR_CONFIG": os.pathsep.join(map(str, files)),
        "MIRROR_STATE_DIR": str(folder),
        **more,
    }
    migrate(folder / "airflow")
    with Parts(folder) as parts:
        needed = ["metadatabase", "scheduler", "dag_processor", *(["triggerer"] if triggerer else [])]
        for name in ("api-server", *needed[1:]):
            command = name.replace("_", "-")
            parts.start(command, [str(python), "-m", "airflow", command], environment)
        login = None if password is None else lambda: password
        running = RunningAirflow(parts, f"http://{LOOPBACK}:{port}", login, needed)
        running.wait_ready([])
        yield SharedAirflow(running, folder, environment)
