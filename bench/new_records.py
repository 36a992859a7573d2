"""`python -m bench.idle --on-new-records`: what the poller of idle flows costs, and how late new records arrive.

The poller runs here, in one thread, without Airflow: its CPU seconds are those of this process while nothing else runs
in it. The delay is measured in a real Airflow with a warm Spark: from the acknowledgement of a record on the source
until the end offset of its copy on the target has grown. Each record is written to a flow that has no run.
"""

from __future__ import annotations

import json
import queue
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from rich.table import Table

from bench.errors import BenchError
from bench.pair import Pair
from bench.settings import render
from mirror_lib.config.loader import load
from mirror_lib.config.local_state import CONFIG_VARIABLE
from mirror_lib.dev.airflow import LocalAirflow
from mirror_lib.dev.airflow_api import AirflowApiError
from mirror_lib.dev.spark_connect import SparkConnectServer
from mirror_lib.relay.watch import FilePoller, Start

_PROJECT = Path(__file__).resolve().parents[1]
_POLL_SECONDS = 2.0
_WAIT_SECONDS = 300.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Poll:
    """Cost of the poller of some flows without new records."""

    flows: int
    polls: int
    #: Per minute.
    cpu_seconds: float


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
    show: Callable[[str], None],
) -> tuple[float, ...]:
    """Return the delay of one record for each flow, in a real Airflow with a warm Spark.

    Args:
        first_copies: creates the topics of a file's flows.
        dag_ids: topic -> DAG.
    """
    dags, config = folder / "dags", folder / "mirror.properties"
    dags.mkdir(parents=True)
    shutil.copy(_PROJECT / "dags" / "flows.py", dags)
    more = {"mirror.ledger.url": f"sqlite:///{folder}/ledger.db", "mirror.spark.connection": "warm_spark"}
    config.write_text(render({**watched(file), **more, "mirror.schedule.longest": "1d"}))
    first_copies(config)
    spark = SparkConnectServer(folder / "spark")
    show("Spark Connect: starting")
    address = spark.start(master="local[2]")
    airflow = LocalAirflow(home=folder / "airflow", project=_PROJECT)
    try:
        show("Airflow: starting")
        connection = {"conn_type": "spark_connect", "host": address.host, "port": address.port}
        settings = {
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW_CONN_WARM_SPARK": json.dumps(connection),
            "MIRROR_STATE_DIR": str(folder),
            CONFIG_VARIABLE: str(config),
        }
        airflow.start(settings, lambda _: None)
        for dag_id in dag_ids.values():
            _until(partial(airflow.api.has_dag, dag_id), f"the DAG {dag_id}")
            airflow.api.unpause(dag_id)
        show("Airflow: the first run of each flow")
        # Airflow makes the triggers of unpaused DAGs when it parses them; the time schedule begins with a run.
        for path in dags.glob("*.py"):
            path.touch()
        for dag_id in dag_ids.values():
            _until(partial(_has_run, airflow, dag_id), f"a run of {dag_id}")
        show("Airflow: all flows are idle")
        time.sleep(30.0)
        found = []
        for topic, dag_id in dag_ids.items():
            seconds = _delay(pair, topic, dag_id, airflow)
            show(f"{topic}: {seconds:.1f} s")
            found.append(seconds)
        return tuple(found)
    finally:
        airflow.stop()
        spark.stop()


def _delay(pair: Pair, topic: str, dag_id: str, airflow: LocalAirflow) -> float:
    copy = f"{_source_of(topic)}.{topic}"
    before = pair.target.records(copy, 1) if copy in pair.target.names() else 0
    _write(pair.clear.source_bootstrap, topic)
    began = time.monotonic()
    while pair.target.records(copy, 1) == before:
        if time.monotonic() - began > _WAIT_SECONDS:
            raise BenchError(f"the record of {topic} did not arrive in {_WAIT_SECONDS:.0f} s")
        time.sleep(_LOOK_SECONDS)
    seconds = time.monotonic() - began
    # The tasks after the copy would slow the next one down.
    _until(partial(_has_run, airflow, dag_id), f"the end of the run of {dag_id}")
    return seconds


def _has_run(airflow: LocalAirflow, dag_id: str) -> bool:
    return set(airflow.api.runs(dag_id).values()) == {"success"}


def _source_of(topic: str) -> str:
    return f"s{topic.rpartition('-')[2]}"


def _until(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            if done():
                return
        except AirflowApiError:
            # Airflow on SQLite also fails requests while it is busy.
            pass
        time.sleep(1.0)
    raise BenchError(f"{what} did not come in {_WAIT_SECONDS:.0f} s")


def poll_table(polls: list[Poll]) -> Table:
    """Return the table of the poller's cost."""
    table = Table(title=f"The poller of idle flows, one source cluster, a poll every {_POLL_SECONDS:g} s, no Airflow")
    for column in ("flows", "polls", "CPU seconds a minute", "CPU seconds an hour"):
        table.add_column(column, justify="right")
    for each in polls:
        table.add_row(str(each.flows), str(each.polls), f"{each.cpu_seconds:.2f}", f"{each.cpu_seconds * 60:,.0f}")
    return table


def delay_text(seconds: tuple[float, ...]) -> str:
    """Return the delays as a line."""
    middle, most = statistics.median(seconds), max(seconds)
    return f"From a record to its copy, warm Spark, {len(seconds)} records: median {middle:.1f} s, most {most:.1f} s."
