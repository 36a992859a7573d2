"""Copiers in a race, from the request to copy a topic to the end of each, observed from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from mirror_lib.cli.run.spark_submit import Job, submit_command
from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.features.demo.broker import KAFKA_DEFAULT_JVM
from mirror_lib.processes import tail
from mirror_lib.spark.submit import checkout_path, find_spark_home
from mirror_lib.sync.topics.flow import apply_flow_topics
from tools.bench.clusters.pair import Pair
from tools.bench.clusters.topics import Topics
from tools.bench.comparison.samples import compare
from tools.bench.copiers.relay_host import RelayHost
from tools.bench.copiers.settings import Copier, CopySetup, write_config
from tools.bench.errors import BenchError
from tools.bench.machine.process_tree import ProcessTree
from tools.bench.workloads.workload import Workload
from tools.testbed.mm2 import MirrorMaker

#: Maximum time from the request to the first record on the target; and from the last record to the end of the run.
_FIRST_RECORD_SECONDS, _COMMIT_SECONDS = 180.0, 120.0
#: As Kafka's own start script (connect-mirror-maker.sh).
_MM2_HEAP_MEGABYTES = 2048
_POLL_SECONDS = 0.01


class Started(Protocol):
    """A running copier."""

    def cpu_seconds(self) -> float:
        """Return user and system seconds of its processes so far."""

    def still_running(self) -> None:
        """Raise `BenchError` if it has failed."""

    def finish(self) -> None:
        """Return when it has ended by itself, with all positions committed; end it if it never does."""

    def end(self) -> None:
        """End all processes, in any case."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A copier with its own flow."""

    label: str
    setup: CopySetup
    #: For its properties file, logs and ledger.
    directory: Path
    #: Starts it; the properties file is written.
    start: Callable[[Contestant], Started]
    #: It does not create its target topics: that is a separate step first, whose time counts.
    topics_first: bool = True

    @property
    def config(self) -> Path:
        """The properties file."""
        return self.directory / "mirror.properties"


@dataclass(frozen=True, slots=True)
class Timing:
    """The timing of one contestant, in seconds since the request."""

    label: str
    copier: Copier
    #: Until its process was started: after the target topics were created, if that is a separate step.
    started: float
    first_record: float
    last_record: float
    #: Until the run had ended and its positions were committed. MM2 never ends: the same as `last_record`.
    done: float
    #: Of the copier's processes, until the last record.
    cpu_seconds: float
    #: The target has as many records as the source, and the compared ones are the same.
    equal: bool


def measure(pair: Pair, workload: Workload, partitions: int, contestants: Sequence[Contestant]) -> tuple[Timing, ...]:
    """Start all of them at the same moment to copy the same topic, each to its own topic.

    Raises:
        BenchError: one of them did not copy everything.
    """
    gate = threading.Barrier(len(contestants))
    for each in contestants:
        each.directory.mkdir(parents=True, exist_ok=True)
        write_config(each.setup, each.config)

    def one(contestant: Contestant) -> Timing:
        target = Topics(pair.target.bootstrap_servers)
        target.names()
        gate.wait()
        return _copy(pair, target, workload, partitions, contestant)

    with ThreadPoolExecutor(max_workers=len(contestants)) as pool:
        return tuple(pool.map(one, contestants))


def _copy(pair: Pair, target: Topics, workload: Workload, partitions: int, contestant: Contestant) -> Timing:
    asked = time.monotonic()
    if contestant.topics_first:
        _sync_topics(contestant)
    started = time.monotonic()
    copier = contestant.start(contestant)
    try:
        before = copier.cpu_seconds()
        looks = target.watch(
            contestant.setup.target_topic,
            partitions,
            expected=workload.records,
            cpu_seconds=copier.cpu_seconds,
            still_running=copier.still_running,
            start_seconds=_FIRST_RECORD_SECONDS,
        )
        copier.finish()
        done = time.monotonic() if contestant.setup.copier is Copier.MIRROR else looks[-1].at
    finally:
        copier.end()
    found = compare(pair.source, target, workload, contestant.setup.target_topic, partitions)
    return Timing(
        label=contestant.label,
        copier=contestant.setup.copier,
        started=started - asked,
        first_record=looks[min(1, len(looks) - 1)].at - asked,
        last_record=looks[-1].at - asked,
        done=done - asked,
        cpu_seconds=looks[-1].cpu_seconds - before,
        equal=found.target_records == workload.records and found.differing == 0,
    )


def _sync_topics(contestant: Contestant) -> None:
    """Do what the previous task of the flow's DAG does."""
    flow = load(contestant.config).flow(contestant.setup.flow)
    done = apply_flow_topics(flow, flow_topology(flow))
    if done.failures:
        raise BenchError(f"cannot create the topics of {contestant.label}: {done.failures[0].error}.")


class WarmSession:
    """A run on request in a process with a warm session: driver and session are the same process, which already
    exists.
    """

    def __init__(self, host: RelayHost) -> None:
        """Use a host.

        Args:
            host: with its session warm.
        """
        self._host = host

    def start(self, contestant: Contestant) -> Started:
        """Request the run."""
        self._host.begin(str(contestant.config), contestant.setup.flow)
        return self

    def cpu_seconds(self) -> float:
        """Return those of driver, JVM and workers."""
        return self._host.tree.cpu_seconds()

    def still_running(self) -> None:
        """Raise if the host has failed."""
        self._host.still_running()

    def finish(self) -> None:
        """Wait for the response."""
        self._host.finish(_COMMIT_SECONDS)

    def end(self) -> None:
        """Do nothing: the session stays for the next run."""


class RunningMirrorMaker:
    """MirrorMaker 2, which runs until it is stopped."""

    def __init__(self, maker: MirrorMaker) -> None:
        """Use a running one.

        Args:
            maker: running.
        """
        self._maker = maker
        self._tree = ProcessTree(maker.pid)

    @classmethod
    def start(cls, contestant: Contestant) -> Started:
        """Start its JVM."""
        maker = MirrorMaker(contestant.directory, heap_megabytes=_MM2_HEAP_MEGABYTES, jvm_flags=KAFKA_DEFAULT_JVM)
        return cls(maker.start(contestant.config.read_text(encoding="utf-8")))

    def cpu_seconds(self) -> float:
        """Return those of its JVM."""
        return self._tree.cpu_seconds()

    def still_running(self) -> None:
        """Raise if it has ended: it ends only on failure."""
        if self._maker.process is None:
            raise BenchError(f"MirrorMaker ended. The end of its log:\n{self._maker.log_tail()}")

    def finish(self) -> None:
        """Do nothing: it has no end but the last record on the target."""

    def end(self) -> None:
        """Shut it down."""
        self._maker.stop()


class DriverProcess:
    """A driver of this project as a separate process, which ends when its run does."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str], *, server: ProcessTree | None = None
    ) -> None:
        """Start it, as the leader of its own session.

        Args:
            server: process tree that works for it in addition.
        """
        self._log = log
        self._server = server
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **checkout_path(os.environ), **environment},
                start_new_session=True,
            )
        self._tree = ProcessTree(self._process.pid)
        self._used = 0.0

    def cpu_seconds(self) -> float:
        """Return those of all processes that it started here, and of the server; a remote server is not included."""
        with suppress(psutil.NoSuchProcess):
            self._used = max(self._used, self._tree.cpu_seconds())
        return self._used + (self._server.cpu_seconds() if self._server else 0.0)

    def still_running(self) -> None:
        """Raise if it has failed; it may have ended successfully just before the last look."""
        if self._process.poll():
            code, said = self._process.returncode, tail(self._log, 20)
            raise BenchError(f"the driver ended with exit code {code}. The end of its log:\n{said}")

    def finish(self) -> None:
        """Wait for its end."""
        deadline = time.monotonic() + _COMMIT_SECONDS
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise BenchError(f"the driver did not end within {_COMMIT_SECONDS:.0f} s.", action=f"See {self._log}.")
            time.sleep(_POLL_SECONDS)
        self.still_running()

    def end(self) -> None:
        """Kill it with its children if it is still running."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()


def spark_submit(cores: int) -> Callable[[Contestant], Started]:
    """Return a starter of the job like the flow's DAG, with its own JVM and session."""

    def start(contestant: Contestant) -> Started:
        home = find_spark_home(os.environ)
        arguments = JobArguments(config=contestant.config, flow=contestant.setup.flow, trigger="bench")
        command = submit_command(Job.replicate(arguments), f"local[{cores}]", home)
        return DriverProcess(command, contestant.directory / "driver.log", {"SPARK_HOME": str(home)})

    return start


def mirror_run(cores: int) -> Callable[[Contestant], Started]:
    """Return a starter of the command `mirror run`: it creates the topics itself and starts the same job."""

    def start(contestant: Contestant) -> Started:
        program = str(Path(sys.executable).with_name("mirror"))
        flow = ("--flow", contestant.setup.flow, "--master", f"local[{cores}]")
        command = [program, "run", "--config", str(contestant.config), *flow]
        return DriverProcess(command, contestant.directory / "driver.log", {})

    return start


def spark_connect(remote: str, server_pid: int | None = None) -> Callable[[Contestant], Started]:
    """Return a starter of a driver process with the warm session of a Spark Connect server.

    Args:
        remote: the server's address, `sc://host:port`.
        server_pid: its process, if it runs on this machine and its CPU is to be counted.
    """
    server = None if server_pid is None else ProcessTree(server_pid)

    def start(contestant: Contestant) -> Started:
        arguments = JobArguments(config=contestant.config, flow=contestant.setup.flow, trigger="bench").command_line()
        command = [sys.executable, "-m", "spark_jobs.replicate", "--remote", remote, *arguments]
        return DriverProcess(command, contestant.directory / "driver.log", {}, server=server)

    return start
