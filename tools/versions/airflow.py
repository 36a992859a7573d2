"""`./run versions --airflow`: the flow DAG in real Airflows of several versions, with a copy and a transform."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mirror_lib.config.local_state import STATE_DIR_VARIABLE, project_root
from mirror_lib.processes import end_session
from tools.versions.clusters import Log, Side
from tools.versions.environments import Environment, environment_of
from tools.versions.two_topics import FlowResult, TwoTopics, clean_environment, try_flow, two_brokers

TITLE = "The flow DAG by versions of Airflow"


@dataclass(frozen=True, slots=True)
class Release:
    """An Airflow, and how the flow's tasks run in it."""

    release: str
    python: str
    #: Other packages are of up to this day, as its constraint file would have them.
    until: str
    #: The PySpark of that day, and with it this package. None: Airflow alone (`mirror.airflow.execution = external`).
    pyspark: str | None = None

    @property
    def execution(self) -> str:
        """The value of `mirror.airflow.execution`."""
        return "external" if self.pyspark is None else "in-process"


AIRFLOWS: Mapping[str, Release] = {
    "2.10": Release("2.10.5", "3.11", "2025-02-20"),
    "2.11": Release("2.11.0", "3.12", "2025-06-10"),
    "3.0": Release("3.0.6", "3.12", "2025-09-10"),
    "3.1": Release("3.1.3", "3.12", "2025-11-25"),
    "3.2": Release("3.2.2", "3.12", "2026-05-30", pyspark="4.1.2"),
    "3.3": Release("3.3.2", "3.13", "2026-09-18", pyspark="4.2.0"),
}
_RUN_SECONDS = 1200
_DAG_FILE = """\
# Airflow looks for DAGs in files that speak of them.
from mirror_lib.airflow.dags import mirror_dags

globals().update(mirror_dags({path!r}))
"""


def run(versions: Sequence[str], folder: Path, results: list[FlowResult], log: Log) -> None:
    """Test the versions one after the other; each result is added to `results` at once.

    Raises:
        MirrorError: the brokers could not be fetched or started.
    """
    with two_brokers(folder, log) as (source, target):
        for version in versions:
            release = AIRFLOWS[version]

            def make(version: str = version, release: Release = release) -> _Flow:
                return _Flow(f"airflow{version.replace('.', '')}", release, _install(version), source, target, folder)

            named = {"Airflow": release.release, "Python": release.python, "execution": release.execution}
            try_flow(named, make, results, log)


def _install(version: str) -> Environment:
    release = AIRFLOWS[version]
    packages = [f"apache-airflow=={release.release}"]
    if release.pyspark is not None:
        spark = [f"pyspark=={release.pyspark}", f"pyspark-client=={release.pyspark}", "pandas<3"]
        packages += [*spark, "--editable", f"{project_root()}[airflow,transforms]"]
    return environment_of(f"airflow-{version}", release.python, packages, until=release.until)


class _Flow(TwoTopics):
    """Its runs are made by `airflow dags test`."""

    def __init__(
        self, alias: str, release: Release, made: Environment, source: Side, target: Side, folder: Path
    ) -> None:
        super().__init__(alias, source, target, folder, settings=f"mirror.airflow.execution = {release.execution}\n")
        self._release, self._made = release, made
        self._variables = {
            **clean_environment(),
            STATE_DIR_VARIABLE: str(self.home / "state"),
            "AIRFLOW_HOME": str(self.home / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.home / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            # `dags test` of Airflow 3.2 makes none itself.
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "PATH": os.pathsep.join([str(made.folder / "bin"), os.environ.get("PATH", os.defpath)]),
        }
        self._is_ready = False

    def run(self) -> str | None:
        """Copy what is new by a run of the flow's DAG."""
        if not self._is_ready:
            if failed := self._prepare():
                return failed
            self._is_ready = True
        return self._airflow("dags", "test", f"mirror__{self.alias}__B")

    def _prepare(self) -> str | None:
        dags = self.home / "dags"
        dags.mkdir()
        if self._release.pyspark is not None:
            text = _DAG_FILE.format(path=str(self.properties))
        else:
            program = str(Path(sys.executable).with_name("mirror"))
            command = [program, "airflow", "dag-file", "--config", str(self.properties)]
            text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        (dags / "mirror_dags.py").write_text(text, encoding="utf-8")
        # The second one knows the assets of the DAGs.
        return self._airflow("db", "migrate") or self._airflow("dags", "reserialize")

    def _airflow(self, *arguments: str) -> str | None:
        command = [str(self._made.program("airflow")), *arguments]
        log = self.home / "airflow.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, env=self._variables, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = process.wait(_RUN_SECONDS)
            except subprocess.TimeoutExpired:
                return f"airflow {' '.join(arguments)} did not end within {_RUN_SECONDS} s"
            finally:
                # Also after an interruption; the task's own child ends with it.
                if process.poll() is None:
                    end_session(process, signal.SIGKILL, 10)
        if code:
            printed = log.read_text(encoding="utf-8", errors="replace").strip()[-1000:]
            return f"airflow {' '.join(arguments)} failed: {printed}"
        return None
