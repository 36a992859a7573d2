"""The process of a driver: a warm Spark session that runs the flow on requests over a pipe, by the production code."""

from __future__ import annotations

import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

from mirror_lib.config.loader import load_flow
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_options import RunOptions
from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import FAST_START_JVM
from mirror_lib.ledger.location import open_ledger
from mirror_lib.planning.model import CopyJob, PartitionResult
from mirror_lib.spark.settings import SPARK_SETTINGS
from mirror_lib.sync.topics.flow import apply_flow_topics
from tools.faults.drivers.fault_points import FaultPoint, FaultPoints

_log = logging.getLogger("faults")


@dataclass(frozen=True, slots=True)
class Prepare:
    """Create and grow the flow's topics with the project's own topic sync."""

    config: Path
    flow: str


@dataclass(frozen=True, slots=True)
class Run:
    """Copy what is new."""

    config: Path
    flow: str
    #: Where the driver kills itself.
    fault_point: FaultPoint | None = None


@dataclass(frozen=True, slots=True)
class RunError:
    """Why something was not copied."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The result of a run, or of another request."""

    records: int = 0
    #: Records of interrupted runs that were found on the target.
    recovered: int = 0
    rounds: int = 0
    seconds: float = 0.0
    errors: tuple[RunError, ...] = ()


def serve(pipe: Pipe, cores: int, log: str) -> None:
    """Warm up, then serve requests until stopped, or until the parent process is gone."""
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # The campaign's own process handles the interrupt and then ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    points = FaultPoints()
    points.install()
    try:
        session = _Session(_spark(cores), points)
        pipe.send(_tried(lambda: session.warm(cores)))
        while (request := pipe.recv()) is not None:
            pipe.send(session.answer(request))
    except (EOFError, BrokenPipeError):
        pass
    except Exception as error:
        _log.exception("no Spark session")
        pipe.send(RunEnd(errors=(RunError("no-session", str(error)),)))


class _Session:
    def __init__(self, spark: Any, points: FaultPoints) -> None:
        self._spark = spark
        self._points = points
        # The runner of the production Spark job.
        copy_with = importlib.import_module("spark_jobs.replicate").copy_with
        self._runner: Callable[[CopyJob], list[PartitionResult]] = copy_with(spark)

    def warm(self, cores: int) -> RunEnd:
        numbers = self._spark.range(0, cores, 1, cores)
        numbers.mapInArrow(lambda batches: batches, "id long").toArrow()
        return RunEnd()

    def answer(self, request: Prepare | Run) -> RunEnd:
        if isinstance(request, Prepare):
            return _tried(lambda: _prepare(request))
        self._points.armed = request.fault_point
        return _tried(lambda: self._run(request))

    def _run(self, request: Run) -> RunEnd:
        began = time.monotonic()
        config, flow = load_flow(request.config, request.flow)
        with open_ledger(config) as ledger:
            report = replicate(
                flow, ledger=ledger, make_runner=lambda: self._runner, options=RunOptions(trigger="faults")
            )
        for error in report.errors:
            _log.warning("%s", error)
        return RunEnd(
            records=report.records,
            recovered=sum(result.recovered for result in report.results),
            rounds=report.rounds,
            seconds=time.monotonic() - began,
            errors=tuple(RunError(error.reason, str(error)) for error in report.errors),
        )


def _prepare(request: Prepare) -> RunEnd:
    _, flow = load_flow(request.config, request.flow)
    done = apply_flow_topics(flow, flow_topology(flow))
    errors = [RunError("conflict", str(conflict)) for conflict in done.plan.conflicts]
    errors += [RunError("refused", f"{each.step.name}: {each.error}") for each in done.failures]
    return RunEnd(errors=tuple(errors))


def _tried(work: Callable[[], RunEnd]) -> RunEnd:
    """Return failures to the campaign; the process continues."""
    try:
        return work()
    except MirrorError as error:
        _log.warning("%s", error)
        return RunEnd(errors=(RunError(error.reason, str(error)),))
    except Exception as error:
        _log.exception("a request failed")
        return RunEnd(errors=(RunError("unexpected", f"{type(error).__name__}: {str(error)[:300]}"),))


def _spark(cores: int) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    root = str(Path(__file__).resolve().parents[3])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    builder = importlib.import_module("pyspark.sql").SparkSession.builder
    return (
        builder.master(f"local[{cores}]")
        .appName("faults")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        # Sessions are killed all the time: they have to start fast and save CPU.
        .config("spark.driver.extraJavaOptions", " ".join(FAST_START_JVM))
        .config(map=dict(SPARK_SETTINGS))
        .getOrCreate()
    )
