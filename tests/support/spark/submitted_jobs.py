"""The flow's job on a standalone cluster, submitted as users do it, and what Spark's event log tells of it."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.features.demo.background_process import BackgroundProcess, start
from mirror_lib.features.pack.executor_archive import environment_settings
from mirror_lib.spark.submit import checkout_path, find_spark_home, job_file, spark_submit, submit_settings
from tools.testbed.spark_cluster import SparkCluster

_JOB_SECONDS = 240.0
_POLL_SECONDS = 0.05
#: Small and quick to start.
_SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """One attempt at a task, when it had ended."""

    executor: str
    attempt: int
    failed: bool


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A driver that runs, or has run."""

    process: BackgroundProcess
    folder: Path
    arguments: JobArguments

    def wait(self) -> dict[str, Any]:
        """Wait for its end; gives its report."""
        ended = self.process.wait(_JOB_SECONDS)
        if not ended:
            self.process.kill()
        assert ended, f"the job did not end:\n{self.log()}"
        assert self.arguments.report is not None
        assert self.arguments.report.exists(), f"the job left no report:\n{self.log()}"
        return json.loads(self.arguments.report.read_text())

    def wait_until(self, so: Callable[[], bool]) -> None:
        """Wait until something is so while the job runs."""
        deadline = time.monotonic() + _JOB_SECONDS
        while not so():
            assert self.process.is_running, f"the job has ended:\n{self.log()}"
            assert time.monotonic() < deadline, f"it did not come to that:\n{self.log()}"
            time.sleep(_POLL_SECONDS)

    def log(self) -> str:
        """What the driver printed last."""
        return self.process.log_tail(60)

    def task_ends(self) -> list[TaskEnd]:
        """All attempts at tasks, from the event log of the application."""
        (log,) = (self.folder / "events").iterdir()
        events = [json.loads(line) for line in log.read_text().splitlines()]
        return [
            TaskEnd(info["Executor ID"], info["Attempt"], info["Failed"])
            for event in events
            if event["Event"] == "SparkListenerTaskEnd" and (info := event["Task Info"])
        ]


@dataclass(frozen=True, slots=True)
class ClusterOfJobs:
    """A cluster whose executors have nothing but a packed environment."""

    spark: SparkCluster
    archive: Path
    drivers: list[BackgroundProcess] = field(default_factory=list)

    def end_drivers(self) -> None:
        """End what a test that failed has left."""
        for process in self.drivers:
            process.kill()

    def submit(
        self,
        folder: Path,
        arguments: JobArguments,
        *,
        settings: Mapping[str, str] | None = None,
        job: Path | None = None,
        packed: bool = True,
    ) -> SubmittedJob:
        """Start a driver on this machine (client mode), with two executors of two cores.

        Args:
            folder: a new one, for the report, the log and the events.
            arguments: of the job.
            settings: of Spark, on top.
            job: another program than the flow's job.
            packed: whether executors unpack their environment, or use that of the tests, which takes no time.
        """
        (folder / "events").mkdir(parents=True)
        given = replace(arguments, report=folder / "report.json")
        wanted = {
            **submit_settings(self.spark.master_url),
            **(environment_settings(str(self.archive)) if packed else {"spark.pyspark.python": sys.executable}),
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "512m",
            "spark.driver.extraJavaOptions": _SMALL_JVM,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "2",
            "spark.executor.extraJavaOptions": _SMALL_JVM,
            "spark.cores.max": "4",
            # Tasks wait for both executors, or the first one would get them all.
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.ui.enabled": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
            **(settings or {}),
        }
        spark_home = find_spark_home(os.environ)
        process = start(
            [
                str(spark_submit(spark_home)),
                f"--master={self.spark.master_url}",
                *(f"--conf={key}={value}" for key, value in wanted.items()),
                str(job or job_file()),
                *given.command_line(),
            ],
            log=folder / "driver.log",
            pid_file=folder / "driver.pid",
            env={**os.environ, "SPARK_HOME": str(spark_home), **checkout_path(os.environ)},
        )
        self.drivers.append(process)
        return SubmittedJob(process, folder, given)


def bare_environment() -> dict[str, str]:
    """What a machine has that nobody prepared for Python jobs: Java, Spark, and the system's programs."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", "TMPDIR") if name in os.environ}
    environment_of_tests = str(Path(sys.executable).parent)
    places = [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if place != environment_of_tests]
    return {**kept, "PATH": os.pathsep.join(places), "SPARK_HOME": str(find_spark_home(os.environ))}
