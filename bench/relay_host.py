"""A warm Spark session in a process of its own, that runs this project's flow when told to.

The process holds nothing but the session, so its CPU and memory, with those of its JVM and Python workers, are what the
copy costs. It is asked over a pipe.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any, Self

from bench.errors import BenchError
from bench.process_tree import ProcessTree

_START_SECONDS = 180.0
_STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Prepare:
    """Create the flow's topics as the project's own topic sync does."""

    config: str
    flow: str


@dataclass(frozen=True, slots=True)
class Run:
    """Copy what is new."""

    config: str
    flow: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run said of itself; all zero for other requests."""

    records: int = 0
    copy_seconds: float = 0.0
    run_seconds: float = 0.0
    #: Why something did not work, one sentence each.
    errors: tuple[str, ...] = ()


class RelayHost:
    """The process with the session, as seen from the comparison. Use as a context manager."""

    def __init__(self, *, cores: int, directory: Path) -> None:
        self.log = directory / "spark.log"
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, cores, str(self.log)), name="relay-host")
        self._process.start()
        theirs.close()
        self.tree = ProcessTree(self._pid)

    @property
    def _pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._pipe.send(None)
        self._process.join(_STOP_SECONDS)
        # The host leads a process group of its own: whatever of the JVM or the workers is left goes with it.
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        self._process.join()

    def wait_warm(self) -> None:
        """Return when the session has run its first Python task."""
        self._answer(_START_SECONDS)

    def prepare(self, config: str, flow: str) -> None:
        """Create the target topics."""
        self._pipe.send(Prepare(config, flow))
        self._answer(_START_SECONDS)

    def begin(self, config: str, flow: str) -> None:
        """Start a run; `finish` waits for its end."""
        self._pipe.send(Run(config, flow))

    def finish(self, seconds: float) -> Answer:
        """The end of a run."""
        return self._answer(seconds)

    def still_running(self) -> None:
        """Raise when the run has ended with errors, or the process has died."""
        if not self._process.is_alive():
            raise BenchError(f"the Spark process ended with exit code {self._process.exitcode}.", action=self._see_log)
        if self._pipe.poll():
            answer: Answer = self._pipe.recv()
            if answer.errors:
                raise self._failed(answer)
            raise BenchError("the run ended before all records were on the target.", action=self._see_log)

    @property
    def _see_log(self) -> str:
        return f"See {self.log} (with --keep it stays)."

    def _failed(self, answer: Answer) -> BenchError:
        return BenchError(f"the flow failed: {'; '.join(answer.errors)}", action=self._see_log)

    def _answer(self, seconds: float) -> Answer:
        try:
            if not self._pipe.poll(seconds):
                raise BenchError(f"the Spark process did not answer for {seconds:.0f} s.", action=self._see_log)
            answer: Answer = self._pipe.recv()
        except EOFError as error:
            raise BenchError("the Spark process ended.", action=self._see_log) from error
        if answer.errors:
            raise self._failed(answer)
        return answer


def _serve(pipe: Pipe, cores: int, log: str) -> None:
    """The process: warm up, then do what is asked until told to stop."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    # The comparison's process handles the interrupt and then tells this one to stop.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    spark = _warm_session(cores)
    try:
        pipe.send(Answer())
        while (request := pipe.recv()) is not None:
            pipe.send(_answer(spark, request))
    except EOFError:
        pass  # The comparison is gone.
    finally:
        spark.stop()


def _warm_session(cores: int) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = str(Path(__file__).resolve().parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    session = importlib.import_module("pyspark.sql").SparkSession
    spark = (
        session.builder.master(f"local[{cores}]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.speculation", "false")
        .getOrCreate()
    )
    spark.range(0, cores, 1, cores).mapInArrow(lambda batches: batches, "id long").toArrow()
    return spark
