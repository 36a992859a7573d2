"""`./run versions --spark`: a copy and a transform through the real Spark job, with PySpark of several versions."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mirror_lib.config.local_state import STATE_DIR_VARIABLE
from tools.versions.clusters import Log, Side
from tools.versions.environments import Environment, environment
from tools.versions.two_topics import FlowResult, TwoTopics, clean_environment, try_flow, two_brokers

TITLE = "A copy and a transform by versions of Spark"
#: PySpark's release and a Python that it supports, by the version of Spark.
SPARKS: Mapping[str, tuple[str, str]] = {
    "3.5": ("3.5.9", "3.11"),
    "4.0": ("4.0.5", "3.12"),
    "4.1": ("4.1.4", "3.13"),
    "4.2": ("4.2.0", "3.11"),
    "4.3": ("4.3.0", "3.14"),
}
_RUN_SECONDS = 600
#: The lock pins them for the one Spark of the project.
_FREE = ("pyspark", "pyspark-client", "batch-mirror")


def run(versions: Sequence[str], folder: Path, results: list[FlowResult], log: Log) -> None:
    """Test the versions one after the other; each result is added to `results` at once.

    Raises:
        MirrorError: the brokers could not be fetched or started.
    """
    with two_brokers(folder, log) as (source, target):
        for version in versions:
            release, python = SPARKS[version]

            def make(version: str = version, release: str = release, python: str = python) -> _Flow:
                packages = [f"pyspark=={release}", "pandas", "setuptools"]
                made = environment(f"spark-{version}", python, packages, free=_FREE)
                return _Flow(f"spark{version.replace('.', '')}", made, source, target, folder)

            try_flow({"Spark": release, "Python": python}, make, results, log)


class _Flow(TwoTopics):
    """Its runs are made by an environment's own Python and Spark."""

    def __init__(self, alias: str, made: Environment, source: Side, target: Side, folder: Path) -> None:
        super().__init__(alias, source, target, folder)
        self._made = made

    def run(self) -> str | None:
        """Copy what is new by `mirror run`."""
        command = [
            str(self._made.program("mirror")),
            "run",
            f"--config={self.properties}",
            f"--flow={self.alias}->B",
            "--master=local[1]",
        ]
        variables = {**clean_environment(), STATE_DIR_VARIABLE: str(self.home / "state")}
        try:
            done = subprocess.run(
                command, env=variables, capture_output=True, text=True, check=False, timeout=_RUN_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"the run did not end within {_RUN_SECONDS} s"
        return None if done.returncode == 0 else f"the run failed: {(done.stderr or done.stdout).strip()[-600:]}"
