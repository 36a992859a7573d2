"""The process with a warm Spark session, which runs this project's flow on requests over a pipe."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.spark.settings import SPARK_SETTINGS
from mirror_lib.sync.topics.flow import apply_flow_topics
from tools.bench.copiers.phases import COPY, PhaseClock, PhaseTime


@dataclass(frozen=True, slots=True)
class Warm:
    """Run an empty task, so that the session and its Python workers exist."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Create the flow's topics with the project's own topic sync."""

    config: str
    flow: str


@dataclass(frozen=True, slots=True)
class Run:
    """Copy what is new, with a ledger next to the configuration file."""

    config: str
    flow: str
    #: Seconds after which no new round begins; None uses the configuration.
    max_seconds: float | None = None


Request = Warm | Prepare | Run


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a run; all zero for other requests."""

    records: int = 0
    copy_seconds: float = 0.0
    #: From reading the configuration file to the end of the commit.
    run_seconds: float = 0.0
    rounds: int = 0
    #: Time of the run by phase.
    phases: tuple[PhaseTime, ...] = ()
    #: Errors, one sentence each.
    errors: tuple[str, ...] = ()


def serve(pipe: Pipe, cores: int, log: str, spark_settings: Mapping[str, str]) -> None:
    """Warm up, then serve requests until stopped."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # The comparison's process handles the interrupt and then stops this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        spark = _session(cores, spark_settings)
        session = _Session(spark, cores)
        pipe.send(_tried(session.warm))
    except Exception as error:
        logging.getLogger("bench").exception("no Spark session")
        pipe.send(Answer(errors=(f"no Spark session: {error}",)))
        return
    try:
        while (request := pipe.recv()) is not None:
            pipe.send(session.answer(request))
    except EOFError:
        pass  # The comparison is gone.
    finally:
        spark.stop()


class _Session:
    """Serves requests on one Spark session."""

    def __init__(self, spark: Any, cores: int) -> None:
        self._spark = spark
        self._cores = cores
        # The runner of the production Spark job.
        copy_with = importlib.import_module("spark_jobs.replicate").copy_with
        self._clock = PhaseClock()
        self._runner: Callable[[CopyJob], list[PartitionResult]] = self._clock.timed(COPY, copy_with(spark))

    def answer(self, request: Request) -> Answer:
        match request:
            case Warm():
                return _tried(self.warm)
            case Prepare():
                return _tried(lambda: _prepare(request))
            case Run():
                return _tried(lambda: self._run(request))

    def warm(self) -> Answer:
        numbers = self._spark.range(0, self._cores, 1, self._cores)
        numbers.mapInArrow(lambda batches: batches, "id long").toArrow()
        return Answer()

    def _run(self, request: Run) -> Answer:
        began = time.monotonic()
        flow = load(Path(request.config)).flow(request.flow)
        ledger = Ledger.open(f"sqlite:///{Path(request.config).with_suffix('.sqlite3')}")
        ledger.migrate()
        options = RunOptions(trigger="bench", max_seconds=request.max_seconds)
        self._clock.taken()  # Those of a run that failed.
        with self._clock.watching():
            report = replicate(flow, ledger=ledger, make_runner=lambda: self._runner, options=options)
        return Answer(
            records=report.records,
            copy_seconds=report.copy_seconds,
            run_seconds=time.monotonic() - began,
            rounds=report.rounds,
            phases=self._clock.taken(),
            errors=tuple(str(error) for error in report.errors),
        )


def _prepare(request: Prepare) -> Answer:
    flow = load(Path(request.config)).flow(request.flow)
    done = apply_flow_topics(flow, flow_topology(flow))
    refused = [f"{result.step.name}: {result.error}" for result in done.failures]
    return Answer(errors=(*(str(conflict) for conflict in done.plan.conflicts), *refused))


def _tried(work: Callable[[], Answer]) -> Answer:
    """Return failures to the comparison; the process continues."""
    try:
        return work()
    except MirrorError as error:
        return Answer(errors=(str(error),))
    except Exception as error:
        logging.getLogger("bench").exception("a request failed")
        return Answer(errors=(f"{type(error).__name__}: {error}",))


def _session(cores: int, spark_settings: Mapping[str, str]) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = str(Path(__file__).resolve().parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    builder = importlib.import_module("pyspark.sql").SparkSession.builder
    return (
        builder.master(f"local[{cores}]")
        .appName("bench")
        .config("spark.ui.enabled", "false")
        .config(map={**SPARK_SETTINGS, **spark_settings})
        .getOrCreate()
    )
