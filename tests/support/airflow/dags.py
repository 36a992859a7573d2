"""Airflow for tests without its servers: one folder, one migrated database, one process that runs DAGs on demand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mirror_lib.features.demo.airflow import airflow_settings
from tests.support.airflow.home import migrate

_PROJECT = Path(__file__).resolve().parents[3]
_RUN_SECONDS = 480.0


@dataclass(frozen=True, slots=True)
class DagOutcome:
    """How one DAG run ended."""

    state: str
    tasks: Mapping[str, str | None]
    #: What the `report` task returned.
    report: Mapping[str, Any] | None


class DagHost:
    """Runs DAGs of this project's `dags/` with `dag.test`, one after another."""

    def __init__(self, folder: Path, config: Path) -> None:
        self.log = folder / "dags.log"
        self._folder = folder
        self._count = 0
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")},
            **airflow_settings(folder / "airflow", _PROJECT, port=8080),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(_PROJECT),
            "MIRROR_CONFIG": str(config),
            "MIRROR_STATE_DIR": str(folder),
        }

    def __enter__(self) -> Self:
        self._output = self.log.open("w")
        migrate(self._folder / "airflow")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("dag_process.py"))],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env=self.environment,
            text=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def run(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> DagOutcome:
        """Run the DAG to its end."""
        answer = self._ask({"dag_id": dag_id, "conf": dict(conf or {})})
        assert "state" in answer, f"no DAG {dag_id}: {answer['import_errors']}"
        return DagOutcome(answer["state"], answer["tasks"], answer["report"])

    def import_errors(self) -> Mapping[str, str]:
        """DAG file -> why it could not be parsed."""
        return self._ask({"dag_id": "", "conf": {}})["import_errors"]

    def _ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self._count += 1
        path = self._folder / f"answer-{self._count}.json"
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({**request, "answer": str(path)}) + "\n")
        self._process.stdin.flush()
        deadline = time.monotonic() + _RUN_SECONDS
        while not path.exists():
            assert self._process.poll() is None, f"the process ended:\n{self.log_tail()}"
            assert time.monotonic() < deadline, f"no answer in {_RUN_SECONDS:.0f} s:\n{self.log_tail()}"
            time.sleep(0.1)
        return json.loads(path.read_text())

    def log_tail(self) -> str:
        """The last lines of what Airflow and Spark printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-60:])
