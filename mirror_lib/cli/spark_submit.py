"""The flow's Spark job as a child process of ours: `spark-submit` of the installed PySpark, ended when we end."""

from __future__ import annotations

import importlib.util
import os
import signal
import site
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import mirror_lib
from mirror_lib.dev.processes import session_members
from mirror_lib.errors import ConfigurationError, MirrorError

LOCAL_MASTER = "local[*]"
# As in the DAG's operator: attempts have effects outside Spark, so repeating them is the next run's business.
_CONF = {"spark.speculation": "false", "spark.task.maxFailures": "1"}
#: Time for the job to note in the ledger that it was interrupted.
_GRACE_SECONDS = 10.0
_KILL_SECONDS = 10.0
_POLL_SECONDS = 0.05


class InterruptedRunError(MirrorError):
    """Somebody ended the run before it was done."""

    reason = "interrupted"


@dataclass(frozen=True, slots=True)
class JobChoices:
    """What the job is told; the names are those of its arguments."""

    config: Path
    flow: str
    run_id: str
    report: Path
    topics: tuple[str, ...] = ()
    tasks: int | None = None
    max_seconds: float | None = None

    def arguments(self) -> list[str]:
        """The job's command line. `=` keeps a regex that begins with a dash from being an option."""
        return [
            f"--config={self.config.absolute()}",
            f"--flow={self.flow}",
            f"--run-id={self.run_id}",
            "--trigger=cli",
            f"--report={self.report.absolute()}",
            *(f"--topics={pattern}" for pattern in self.topics),
            *([] if self.tasks is None else [f"--tasks={self.tasks}"]),
            *([] if self.max_seconds is None else [f"--max-seconds={self.max_seconds:g}"]),
        ]


def submit_command(choices: JobChoices, master: str, spark_home: Path) -> list[str]:
    """The whole command line of the child.

    Executors of a cluster have their own Python, named by `PYSPARK_PYTHON` or the cluster's defaults; those on this
    machine use ours.
    """
    conf = {**_CONF, "spark.pyspark.driver.python": sys.executable}
    if master.startswith("local"):
        conf["spark.pyspark.python"] = sys.executable
    return [
        str(spark_home / "bin" / "spark-submit"),
        f"--master={master}",
        f"--name=mirror {choices.flow}",
        *(f"--conf={key}={value}" for key, value in conf.items()),
        str(_job_file()),
        *choices.arguments(),
    ]


def submit_environment(environment: Mapping[str, str], spark_home: Path) -> dict[str, str]:
    """The child's environment: it finds Spark, and this package where it is a checkout and not installed."""
    root = str(Path(mirror_lib.__file__).parents[1])
    more = {"SPARK_HOME": str(spark_home)}
    if root not in site.getsitepackages():
        more["PYTHONPATH"] = os.pathsep.join(filter(None, [root, environment.get("PYTHONPATH", "")]))
    return {**environment, **more}


def find_spark_home(environment: Mapping[str, str]) -> Path:
    """`SPARK_HOME`, else the folder of the installed PySpark, found without importing it.

    Raises:
        ConfigurationError: there is no `spark-submit`.
    """
    named = environment.get("SPARK_HOME")
    spec = None if named else importlib.util.find_spec("pyspark")
    places = [named] if named else list(spec.submodule_search_locations or ()) if spec else []
    for place in places:
        if Path(place, "bin", "spark-submit").is_file():
            return Path(place)
    if named:
        raise ConfigurationError(
            f"SPARK_HOME is {named}, where bin/spark-submit is missing.", action="Correct it, or unset SPARK_HOME."
        )
    raise ConfigurationError("PySpark is not installed.", action="Install batch-mirror[spark].")


def _job_file() -> Path:
    spec = importlib.util.find_spec("spark_jobs.replicate")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the package spark_jobs is not importable, so there is no job to submit.",
            action="Install this project (pip install batch-mirror).",
        )
    return Path(spec.origin)


class Child:
    """The running job. It leads a session of its own, so that a Ctrl-C at the terminal reaches only us."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self, seconds: float) -> int | None:
        """The exit code when the job ends within this time, else None; negative when a signal ended it."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Interrupt the job, so that it can still write to the ledger, then end what is left; again to be quick."""
        try:
            if self._signal(signal.SIGINT, _GRACE_SECONDS):
                return
        except KeyboardInterrupt:
            pass
        self._signal(signal.SIGKILL, _KILL_SECONDS)

    def _signal(self, number: signal.Signals, seconds: float) -> bool:
        """Send to every process of the session: Spark's JVM, the driver, its workers; True when all are gone."""
        deadline = time.monotonic() + seconds
        for pid in session_members(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        while session_members(self._process.pid):
            if time.monotonic() > deadline:
                return False
            # Reaps the leader, whose zombie is not a member any more.
            self._process.poll()
            time.sleep(_POLL_SECONDS)
        self._process.wait()
        return True


@contextmanager
def running_job(choices: JobChoices, *, master: str, log: Path) -> Iterator[Child]:
    """Start the job; whatever ends the context ends the job with all its processes.

    Args:
        choices: what to copy.
        master: Spark's master URL.
        log: where everything that Spark and the job print goes.

    Raises:
        ConfigurationError: Spark, Java or the job is not installed.
        InterruptedRunError: Ctrl-C or a SIGTERM came while the job ran.
    """
    from mirror_lib.dev.java import find_java

    find_java()
    spark_home = find_spark_home(os.environ)
    command = submit_command(choices, master, spark_home)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output, _terminate_as_interrupt():
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=submit_environment(os.environ, spark_home),
            start_new_session=True,
        )
        child = Child(process)
        try:
            yield child
        except KeyboardInterrupt as error:
            raise InterruptedRunError(
                f"the run {choices.run_id} was interrupted.",
                action=(
                    "Partitions that were being copied stay open, and the next run refuses them (unclean-start). "
                    f"See them by: mirror status --run {choices.run_id}"
                ),
            ) from error
        finally:
            child.end()


@contextmanager
def _terminate_as_interrupt() -> Iterator[None]:
    """A SIGTERM, as schedulers send it, ends us in the same way as Ctrl-C: not without the child."""
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
