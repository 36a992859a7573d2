"""The flow's Spark job as a child process, which ends with this process.

It is `spark-submit` of the installed PySpark; or the driver alone, if a Spark Connect server is named.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Self

from mirror_lib.config.local_state import state_dir
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.errors import MirrorError
from mirror_lib.private_files import open_log
from mirror_lib.processes import end_session
from mirror_lib.spark.connect_server import REMOTE_VARIABLE, ConnectAddress, is_connect
from mirror_lib.spark.java import find_java
from mirror_lib.spark.submit import checkout_path, find_spark_home, job_file, job_module, spark_submit, submit_settings

#: Time for the job to record in the ledger that it was interrupted.
_GRACE_SECONDS = 10.0
_KILL_SECONDS = 10.0


class InterruptedRunError(MirrorError):
    """The run was ended before it was done."""

    reason = "interrupted"


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The files of one run in the state folder."""

    #: As `copy.job.report` writes it.
    report: Path
    #: All output of Spark and the job.
    log: Path

    @classmethod
    def of(cls, run_id: str) -> Self:
        """The files of the run with this id; they need not exist."""
        folder = state_dir() / "runs"
        return cls(report=folder / f"{run_id}.json", log=folder / f"{run_id}.log")


@dataclass(frozen=True, slots=True)
class Job:
    """A Spark job to be run."""

    #: Name that Spark shows.
    title: str
    file: Path
    arguments: Sequence[str]
    #: Message when it is interrupted.
    interrupted: str
    what_then: str
    #: True if records go through transforms.
    transforms: bool = False

    @classmethod
    def replicate(cls, arguments: JobArguments, *, transforms: bool = False) -> Self:
        """Return the job of a flow's run."""
        return cls(
            title=f"mirror {arguments.flow}",
            file=job_file(),
            arguments=arguments.command_line(),
            interrupted=f"the run {arguments.run_id} was interrupted.",
            what_then="Copied records are kept; the next run takes over (repeat a backfill). See: mirror status --run "
            f"{arguments.run_id}",
            transforms=transforms,
        )


def driver_command(job: Job) -> list[str]:
    """Return the command line for a session of a Spark Connect server: Python alone, without its own Spark."""
    return [sys.executable, "-m", job_module(job.file), *job.arguments]


def submit_command(job: Job, master: str, spark_home: Path) -> list[str]:
    """Return the command line for a child with its own Spark."""
    settings = submit_settings(master, transforms=job.transforms)
    return [
        str(spark_submit(spark_home)),
        f"--master={master}",
        f"--name={job.title}",
        *(f"--conf={key}={value}" for key, value in settings.items()),
        str(job.file),
        *job.arguments,
    ]


class Child:
    """The running job. It has its own process session, so that a Ctrl-C at the terminal reaches only this process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self, seconds: float) -> int | None:
        """Return the exit code if the job ends within this time, else None; negative if a signal ended it."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Interrupt the job, so that it can still write to the ledger, then kill what is left; a second call is
        immediate.
        """
        try:
            if end_session(self._process, signal.SIGINT, _GRACE_SECONDS):
                return
        except KeyboardInterrupt:
            pass
        end_session(self._process, signal.SIGKILL, _KILL_SECONDS)


@contextmanager
def running_job(job: Job, *, master: str, log: Path) -> Iterator[Child]:
    """Start the job; at the end of the context, the job ends with all its processes.

    Args:
        job: what to run.
        master: Spark's master URL, or the address of a Spark Connect server.
        log: for all output of Spark and the job.

    Raises:
        ConfigurationError: Spark, Java or the job is not installed.
        InterruptedRunError: Ctrl-C or a SIGTERM came while the job ran.
    """
    command, variables = _child(job, master)
    with os.fdopen(open_log(log), "ab") as output, _terminate_as_interrupt():
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**variables, **checkout_path(os.environ)},
            start_new_session=True,
        )
        child = Child(process)
        try:
            yield child
        except KeyboardInterrupt as error:
            raise InterruptedRunError(job.interrupted, action=job.what_then) from error
        finally:
            child.end()


def _child(job: Job, master: str) -> tuple[list[str], dict[str, str]]:
    """Return its command line and its environment."""
    if is_connect(master):
        return driver_command(job), {**os.environ, REMOTE_VARIABLE: ConnectAddress.parse(master).url}

    find_java()
    spark_home = find_spark_home(os.environ)
    # Spark and the job prefer an address in the environment to the master.
    kept = {name: value for name, value in os.environ.items() if name != REMOTE_VARIABLE}
    return submit_command(job, master, spark_home), {**kept, "SPARK_HOME": str(spark_home)}


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """Handle a SIGTERM, as sent by schedulers, like Ctrl-C: the child is ended too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
