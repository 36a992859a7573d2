"""`python -m tools.bench.idle --on-new-records`: what the poller of idle flows costs, and how late new records arrive.

The poller runs here, in one thread, without Airflow: its CPU seconds are those of this process while nothing else runs
in it. The delay is measured in a real Airflow, with a warm Spark and a driver host or with jobs that are submitted:
from the acknowledgement of a record on the source until the end offset of its copy on the target has grown. Each record
is written to a flow that has no run. Airflow's own times of the run and its tasks show where the time goes.
"""

from __future__ import annotations

import json
import queue
import shutil
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path

from confluent_kafka import Producer
from rich.table import Table

from mirror_lib.config.loader import load
from mirror_lib.config.local_state import CONFIG_VARIABLE
from mirror_lib.features.demo.airflow import LocalAirflow
from mirror_lib.features.demo.airflow_api import TaskTimes
from mirror_lib.features.demo.driver_host import DriverHost
from mirror_lib.features.demo.spark_connect import SparkConnectServer
from mirror_lib.features.warm_spark.driver_host_protocol import DRIVER_HOST_VARIABLE
from mirror_lib.features.watch.poller import FilePoller, Start
from tools.bench.clusters.pair import Pair
from tools.bench.copiers.settings import render
from tools.bench.errors import BenchError
from tools.bench.idle.airflow_waits import patiently

_PROJECT = Path(__file__).resolve().parents[3]
_POLL_SECONDS = 2.0
_WAIT_SECONDS = 300.0
_LOOK_SECONDS = 0.05
_CONNECTION, _MASTER = "bench_spark", "local[2]"
_CONNECTION_VARIABLE = f"AIRFLOW_CONN_{_CONNECTION.upper()}"
#: Each run starts a driver's JVM, with the archive of Spark's classes if the environment names one.
_SUBMITTED = {_CONNECTION_VARIABLE: json.dumps({"conn_type": "spark", "host": _MASTER})}


@dataclass(frozen=True, slots=True)
class Poll:
    """Cost of the poller of some flows without new records."""

    flows: int
    polls: int
    #: Per minute.
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Delay:
    """The delay of one record, and its parts, in seconds and in their order."""

    #: From the record to the run: the poll, the triggerer's event, the scheduler.
    run_created: float
    #: Airflow starts a process for `preflight`, which decides what is due.
    preflight_waits: float
    preflight: float
    replicate_waits: float
    #: Until the record is on the target.
    replicate: float

    @property
    def total(self) -> float:
        """The whole delay."""
        return sum(float(getattr(self, part)) for part in PARTS)

    @classmethod
    def between(cls, written: float, arrived: float, created: datetime, tasks: Mapping[str, TaskTimes]) -> Delay:
        """Return the delay of a record from the times of its run.

        Args:
            written: Unix time of the acknowledgement.
            arrived: of the copy.
        """
        preflight, replicate = tasks["preflight"], tasks["replicate"]
        moments = (created, preflight.started, preflight.ended, replicate.started)
        times = [written, *(moment.timestamp() for moment in moments if moment is not None), arrived]
        return cls(*(later - earlier for earlier, later in pairwise(times)))


#: Parts of a delay -> their titles.
PARTS: Mapping[str, str] = {
    "run_created": "poll, event, run",
    "preflight_waits": "start of preflight",
    "preflight": "preflight",
    "replicate_waits": "start of replicate",
    "replicate": "replicate, until the copy",
}


def watched(file: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a file whose flows new records start."""
    return {**file, "mirror.schedule": "on-new-records", "mirror.schedule.poll": f"{_POLL_SECONDS:g}s"}


class Polling:
    """A poller in this process."""

    def __init__(self, config: Path) -> None:
        self._polls: queue.Queue[Mapping[str, Start]] = queue.Queue()
        self.poller = FilePoller(config, lambda: load(config), self._polls.put)

    def __enter__(self) -> Polling:
        self.poller.start()
        self._polls.get(timeout=_WAIT_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self.poller.stop()

    def cost(self, flows: int, seconds: float) -> Poll:
        """Measure for some time in which nothing is written."""
        while not self._polls.empty():
            self._polls.get()
        began, used, polls = time.monotonic(), time.process_time(), 0
        while time.monotonic() - began < seconds:
            if self._polls.get(timeout=_WAIT_SECONDS):
                raise BenchError("a flow that has nothing to copy was to start")
            polls += 1
        passed = time.monotonic() - began
        return Poll(flows, polls, (time.process_time() - used) / passed * 60)


def _write(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0})
    producer.produce(topic, b"new")
    if producer.flush(60):
        raise BenchError(f"a record for {topic} was not acknowledged")


def measure_delays(
    folder: Path,
    pair: Pair,
    file: Mapping[str, str],
    first_copies: Callable[[Path], None],
    *,
    dag_ids: Mapping[str, str],
    warm: bool,
    show: Callable[[str], None],
) -> tuple[Delay, ...]:
    """Return the delay of one record for each flow, in a real Airflow.

    Args:
        first_copies: creates the topics of a file's flows.
        dag_ids: topic -> DAG.
        warm: with a Spark Connect server and a driver host, else each run submits a job that starts Spark.
    """
    dags, config = folder / "dags", folder / "mirror.properties"
    dags.mkdir(parents=True)
    shutil.copy(_PROJECT / "dags" / "flows.py", dags)
    more = {"mirror.ledger.url": f"sqlite:///{folder}/ledger.db", "mirror.spark.connection": _CONNECTION}
    config.write_text(render({**watched(file), **more, "mirror.schedule.longest": "1d"}))
    first_copies(config)
    airflow = LocalAirflow(home=folder / "airflow", project=_PROJECT)
    with _warm_spark(folder, show) if warm else nullcontext(_SUBMITTED) as spark:
        show("Airflow: starting")
        settings = {
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "MIRROR_STATE_DIR": str(folder),
            CONFIG_VARIABLE: str(config),
            **spark,
        }
        return _delays_of(airflow, settings, pair, dags, dag_ids, show)


@contextmanager
def _warm_spark(folder: Path, show: Callable[[str], None]) -> Iterator[Mapping[str, str]]:
    """Run a Spark Connect server and a driver host, and yield the variables of an Airflow that uses them."""
    spark, drivers = SparkConnectServer(folder / "spark"), DriverHost(folder / "drivers")
    show("Spark Connect: starting")
    try:
        address = spark.start(master=_MASTER)
        connection = {"conn_type": "spark_connect", "host": address.host, "port": address.port}
        yield {_CONNECTION_VARIABLE: json.dumps(connection), DRIVER_HOST_VARIABLE: str(drivers.start())}
    finally:
        drivers.stop()
        spark.stop()


def _delays_of(
    airflow: LocalAirflow,
    settings: Mapping[str, str],
    pair: Pair,
    dags: Path,
    dag_ids: Mapping[str, str],
    show: Callable[[str], None],
) -> tuple[Delay, ...]:
    try:
        airflow.start(settings, lambda _: None)
        for dag_id in dag_ids.values():
            patiently(partial(airflow.api.has_dag, dag_id), _WAIT_SECONDS, f"the DAG {dag_id}")
            airflow.api.unpause(dag_id)
        show("Airflow: the first run of each flow")
        # Airflow makes the triggers of unpaused DAGs when it parses them; the time schedule begins with a run.
        for path in dags.glob("*.py"):
            path.touch()
        for dag_id in dag_ids.values():
            patiently(partial(_has_run, airflow, dag_id), _WAIT_SECONDS, f"a run of {dag_id}")
        show("Airflow: all flows are idle")
        time.sleep(30.0)
        found = []
        for topic, dag_id in dag_ids.items():
            delay = _delay(pair, topic, dag_id, airflow)
            show(f"{topic}: {delay.total:.1f} s")
            found.append(delay)
        return tuple(found)
    finally:
        airflow.stop()


def _delay(pair: Pair, topic: str, dag_id: str, airflow: LocalAirflow) -> Delay:
    copy = f"{_source_of(topic)}.{topic}"
    before = pair.target.records(copy, 1) if copy in pair.target.names() else 0
    earlier = set(airflow.api.runs(dag_id))
    _write(pair.clear.source_bootstrap, topic)
    written = time.time()
    while pair.target.records(copy, 1) == before:
        if time.time() - written > _WAIT_SECONDS:
            raise BenchError(f"the record of {topic} did not arrive in {_WAIT_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    arrived = time.time()
    # The tasks after the copy would slow the next one down.
    patiently(partial(_has_run, airflow, dag_id), _WAIT_SECONDS, f"the end of the run of {dag_id}")
    (run,) = set(airflow.api.runs(dag_id)) - earlier
    return Delay.between(written, arrived, airflow.api.queued_at(dag_id, run), airflow.api.task_times(dag_id, run))


def _has_run(airflow: LocalAirflow, dag_id: str) -> bool:
    return set(airflow.api.runs(dag_id).values()) == {"success"}


def _source_of(topic: str) -> str:
    return f"s{topic.rpartition('-')[2]}"


def poll_table(polls: list[Poll]) -> Table:
    """Return the table of the poller's cost."""
    table = Table(title=f"The poller of idle flows, one source cluster, a poll every {_POLL_SECONDS:g} s, no Airflow")
    for column in ("flows", "polls", "CPU seconds a minute", "CPU seconds an hour"):
        table.add_column(column, justify="right")
    for each in polls:
        table.add_row(str(each.flows), str(each.polls), f"{each.cpu_seconds:.2f}", f"{each.cpu_seconds * 60:,.0f}")
    return table


def delay_table(delays: Sequence[Delay], *, warm: bool) -> Table:
    """Return the table of the delays and their parts."""
    spark = "warm Spark" if warm else "submitted jobs"
    table = Table(title=f"From a record to its copy, {spark}, {len(delays)} records, each to a flow without a run")
    for column in ("part", "median, s", "most, s"):
        table.add_column(column, justify="left" if column == "part" else "right")
    rows = {title: [getattr(each, part) for each in delays] for part, title in PARTS.items()}
    for title, seconds in {**rows, "the whole": [each.total for each in delays]}.items():
        table.add_row(title, f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}")
    return table
