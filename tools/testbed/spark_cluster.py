"""A Spark standalone cluster of processes on this machine: a master, workers, and the executors that these start.

PySpark's wheel has the classes of a cluster but not Spark's `sbin` scripts, so `spark-class` starts them, as those
scripts do ("Spark Standalone Mode" in Spark's documentation).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mirror_lib.features.demo.background_process import BackgroundProcess, ProcessError, recall, start
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from mirror_lib.features.http_client import HttpError, HttpLimits, HttpRequest, send
from mirror_lib.processes import process_facts, tail
from mirror_lib.spark.java import find_java
from mirror_lib.spark.submit import find_spark_home

_START_SECONDS = 120.0
_POLL_SECONDS = 0.1
_LIMITS = HttpLimits(deadline_seconds=5.0, largest_bytes=16 * 1024 * 1024)
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
#: Processes that only forward messages: a small heap, and no time for the optimizing compiler.
_DAEMON_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"


@dataclass(frozen=True, slots=True)
class MasterStatus:
    """The master's report on its cluster at `/json/`."""

    url: str
    #: Alive ones.
    workers: int
    cores: int
    cores_used: int
    #: Ids of running applications.
    applications: tuple[str, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read the JSON document (Spark's `JsonProtocol.writeMasterState`)."""
        alive = [worker for worker in document["workers"] if worker["state"] == "ALIVE"]
        return cls(
            url=document["url"],
            workers=len(alive),
            cores=sum(worker["cores"] for worker in alive),
            cores_used=sum(worker["coresused"] for worker in alive),
            applications=tuple(app["id"] for app in document["activeapps"]),
        )


@dataclass(frozen=True, slots=True)
class ExecutorProcess:
    """An executor's JVM with the Python processes below it."""

    pid: int
    application: str
    #: Spark's executor id, unique in the application.
    executor: str
    #: Name of its worker, as in `SparkCluster.worker_names`.
    worker: str

    @property
    def python_processes(self) -> tuple[int, ...]:
        """Its Python daemon and the workers which that has forked."""
        return _descendants(self.pid)

    def kill(self) -> None:
        """Kill the JVM, as the kernel does when memory has run out; its Python processes end with it."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


class SparkCluster:
    """A master and its workers; a context manager that starts and stops them."""

    def __init__(
        self,
        directory: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        memory_megabytes: int = 1024,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing is started yet.

        Args:
            directory: logs and the workers' folders; one folder per cluster.
            workers: their number.
            cores: that each worker offers, regardless of the machine.
            memory_megabytes: that each worker offers.
            environment: of all processes of the cluster, by default this process's. Executors inherit it from their
                worker.
        """
        self.directory = directory.absolute()
        self.worker_names = tuple(f"worker-{number}" for number in range(1, workers + 1))
        self._cores = cores
        self._memory = memory_megabytes
        self._environment = dict(os.environ if environment is None else environment)
        self._port, self._web_port, *self._worker_ports = free_ports(2 + workers)

    @property
    def master_url(self) -> str:
        """The value of `spark-submit --master`."""
        return f"spark://{LOOPBACK}:{self._port}"

    @property
    def web_url(self) -> str:
        """The master's pages."""
        return f"http://{LOOPBACK}:{self._web_port}"

    def start(self, timeout_seconds: float = _START_SECONDS) -> Self:
        """Start what does not run, and wait until every worker is registered.

        Raises:
            ConfigurationError: Java or PySpark is missing.
            ProcessError: a process has ended, or the cluster is not complete in time.
        """
        find_java()
        deadline = time.monotonic() + timeout_seconds
        try:
            if self._process("master") is None:
                ports = ("--port", str(self._port), "--webui-port", str(self._web_port))
                self._launch("master", _MASTER, "--host", LOOPBACK, *ports)
            # Workers that connect too early wait for seconds before they retry.
            self._wait(0, deadline)
            for name, port in zip(self.worker_names, self._worker_ports, strict=True):
                if self._process(name) is None:
                    offer = ("--cores", str(self._cores), "--memory", f"{self._memory}m")
                    place = ("--host", LOOPBACK, "--webui-port", str(port), "--work-dir", str(self.work_folder(name)))
                    self._launch(name, _WORKER, *place, *offer, self.master_url)
            self._wait(len(self.worker_names), deadline)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all processes, including executors; logs and work folders stay."""
        executors = self.executors()
        for name in (*self.worker_names, "master"):
            if (process := recall(self._pid_file(name))) is not None:
                process.stop(grace_seconds=5.0)
                self._pid_file(name).unlink(missing_ok=True)
        for executor in executors:
            # An executor whose worker was killed lives until it has noticed.
            if _executor_of(executor.pid, executor.worker) == executor:
                executor.kill()

    def status(self) -> MasterStatus | None:
        """Return the master's report; None as long as it does not respond."""
        try:
            answer = send(HttpRequest("GET", f"{self.web_url}/json/", {}), _LIMITS, use_proxies=False)
            return MasterStatus.of(answer.json())
        except (HttpError, ValueError, TypeError, KeyError):
            return None

    def executors(self) -> tuple[ExecutorProcess, ...]:
        """Return the running executors of all applications, by application and id."""
        found = []
        for name in self.worker_names:
            if (process := self._process(name)) is not None:
                every = (_executor_of(pid, name) for pid in _descendants(process.pid))
                found += [executor for executor in every if executor is not None]
        return tuple(sorted(found, key=lambda each: (each.application, each.executor)))

    def freeze(self, worker: str) -> tuple[int, ...]:
        """Stop a worker and all its processes, as if its machine were suspended; return what was stopped.

        Thaw with SIGCONT to each of them.
        """
        process = self._process(worker)
        frozen: list[int] = []
        # Parents first: a stopped process starts no others.
        while new := [pid for pid in self._tree(process) if pid not in frozen]:
            for pid in new:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            frozen += new
        return tuple(frozen)

    def work_folder(self, worker: str) -> Path:
        """Return the folder with a subfolder of output for each executor of a worker."""
        return self.directory / worker / "work"

    def log_tail(self, name: str, lines: int = 20) -> str:
        """Return the last lines of the output of the master or a worker."""
        return tail(self._log(name), lines)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _launch(self, name: str, role: str, *arguments: str) -> None:
        spark_home = find_spark_home(self._environment)
        start(
            [str(spark_home / "bin" / "spark-class"), role, *arguments],
            log=self._log(name),
            pid_file=self._pid_file(name),
            env={
                **self._environment,
                "SPARK_HOME": str(spark_home),
                "SPARK_LOCAL_IP": LOOPBACK,
                "SPARK_DAEMON_MEMORY": "192m",
                "SPARK_DAEMON_JAVA_OPTS": _DAEMON_JVM,
                # Jobs come from drivers; the REST submission is not needed.
                "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            },
        )

    def _wait(self, workers: int, deadline: float) -> None:
        while True:
            status = self.status()
            if status is not None and status.url != self.master_url:
                # Spark uses the next port if this one is taken.
                raise ProcessError(f"The port of {self.master_url} is taken.", action="Start it again.")
            if status is not None and status.workers >= workers:
                return
            for name in ("master", *self.worker_names):
                if self._pid_file(name).exists() and self._process(name) is None:
                    raise self._error(f"The {name} has ended while starting", name)
            if time.monotonic() > deadline:
                raise self._error("The cluster was not complete in time", "master")
            time.sleep(_POLL_SECONDS)

    def _error(self, what: str, name: str) -> ProcessError:
        return ProcessError(
            f"{what}. The end of its log:\n{self.log_tail(name)}\n", action=f"Look into {self.directory}."
        )

    def _process(self, name: str) -> BackgroundProcess | None:
        process = recall(self._pid_file(name))
        return process if process is not None and process.is_running else None

    @staticmethod
    def _tree(process: BackgroundProcess | None) -> tuple[int, ...]:
        return () if process is None else (process.pid, *_descendants(process.pid))

    def _log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def _pid_file(self, name: str) -> Path:
        return self.directory / f"{name}.pid"


def _executor_of(pid: int, worker: str) -> ExecutorProcess | None:
    """Return the executor of a process by its command line, if it is an executor's JVM."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return None
    if _EXECUTOR not in words:
        return None
    options = dict(pairwise(words))
    return ExecutorProcess(pid, options["--app-id"], options["--executor-id"], worker)


def _descendants(pid: int) -> tuple[int, ...]:
    """Return the living descendants of a process."""
    found: list[int] = []
    for task in _names(Path(f"/proc/{pid}/task")):
        with suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    living = [child for child in found if (facts := process_facts(child)) is not None and facts.is_alive]
    return tuple(each for child in living for each in (child, *_descendants(child)))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is needed
    except (FileNotFoundError, ProcessLookupError):
        return []
