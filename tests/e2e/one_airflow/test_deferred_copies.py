"""Copies that need no worker slot: four flows at a time in a real Airflow with two slots."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirror_lib.features.demo.airflow_api import AirflowApi, DagRunStatus
from mirror_lib.features.demo.spark_connect import SparkConnectServer
from mirror_lib.features.warm_spark.tables import DetachedDrivers
from mirror_lib.ledger.rows import RunRow, RunState
from mirror_lib.ledger.store import Ledger
from tests.e2e.one_airflow.conftest import WAITING
from tests.support.airflow.parts import Parts
from tests.support.airflow.shared import SharedAirflow
from tests.support.clusters import KafkaPair
from tests.support.kafka import consume, create_topic, produce, records

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files, Installed

pytestmark = pytest.mark.timeout(900)

#: More than one request returns.
RECORDS, SIZE = 4000, 1000
#: Fifteen minutes at this rate: such a copy ends because somebody ends it.
SLOWLY = {"bytes_per_second": 4_000, "steps": ["sync_topics"]}
#: Long enough to be seen beside the others.
FASTER = {"bytes_per_second": 300_000, "steps": ["sync_topics"]}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, in this order."""

    #: Flows whose copies ran at the same time, and tasks that were deferred then.
    at_once: set[str]
    deferred: list[str | None]
    #: The run that ended by itself.
    ended: RunRow
    ended_task: str | None
    log: str
    marked_failed: RunRow
    #: The two runs of a flow whose DAG run was cleared.
    cleared: RunRow
    again: RunRow
    source: list[bytes | None]
    target: list[bytes | None]


def dag_of(alias: str) -> str:
    return f"mirror__{alias}__X"


def flow_of(alias: str) -> str:
    return f"{alias}->X"


@pytest.fixture(scope="module")
def ledger(kafka_pair: KafkaPair, files: Files, installed: Installed, airflow: SharedAirflow) -> Iterator[Ledger]:
    """That of the flows; their Spark is ready."""
    create_topic(kafka_pair.source, files.waiting_topic)
    produce(kafka_pair.source, files.waiting_topic, records(RECORDS, size=SIZE))
    spark = SparkConnectServer(files.folder / "spark")
    try:
        spark.start(master=f"local[{len(WAITING)}]", port=files.spark_port)
        # Of the environment of Spark's drivers.
        command = [str(installed.spark.python), "-m", "spark_jobs.driver_host", str(files.drivers)]
        with Parts(files.folder) as parts, Ledger.open(files.ledger_url) as opened:
            parts.start("driver-host", command, os.environ)
            parts.wait(files.drivers.exists, "the driver host", 60)
            opened.migrate()
            yield opened
            for alias in WAITING:
                _end_all(airflow.api, dag_of(alias))
                for run in opened.runs(flow_of(alias)):
                    if (row := DetachedDrivers(opened).find(run.id)) is not None:
                        shutil.rmtree(row.folder, ignore_errors=True)
    finally:
        spark.stop()


def _end_all(api: AirflowApi, dag_id: str) -> None:
    api.pause(dag_id)
    for run_id, state in api.runs(dag_id).items():
        if state in ("queued", "running"):
            api.mark_run(dag_id, run_id, "failed")


@pytest.fixture(scope="module")
def seen(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow, ledger: Ledger) -> Seen:
    api = airflow.api

    def newest(alias: str) -> RunRow | None:
        return next(iter(ledger.runs(flow_of(alias), 1)), None)

    def copies(alias: str, after: str | None = None) -> Callable[[], bool]:
        def found() -> bool:
            run = newest(alias)
            if run is None or run.id == after or run.state != RunState.RUNNING:
                return False
            return bool(ledger.partition_runs(run.id))

        return found

    def end_of(run: RunRow) -> RunRow:
        airflow.wait(lambda: ledger.run(run.id).state != RunState.RUNNING, f"the end of {run.id}")  # type: ignore[union-attr]
        return ledger.run(run.id)

    for alias in WAITING:
        airflow.wait(partial(api.has_dag, dag_of(alias)), f"the DAG of {alias}")
        api.unpause(dag_of(alias))
    *slow, fast = WAITING
    runs = {alias: api.trigger(dag_of(alias), SLOWLY) for alias in slow}
    for alias in slow:
        airflow.wait(copies(alias), f"the copy of {alias}")
    runs[fast] = api.trigger(dag_of(fast), FASTER)
    airflow.wait(copies(fast), f"the copy of {fast}")
    at_once = {flow for alias in WAITING for flow in [flow_of(alias)] if ledger.lock_holder(flow) is not None}
    status: dict[str, DagRunStatus] = {alias: api.run_status(dag_of(alias), runs[alias]) for alias in slow}
    deferred = [each.tasks["replicate"] for each in status.values()]
    ended = newest(fast)
    assert ended is not None
    ended = end_of(ended)
    airflow.wait(
        lambda: api.run_status(dag_of(fast), runs[fast]).tasks["replicate"] == "success", f"the task of {fast}"
    )
    log = airflow.task_logs(runs[fast], "replicate")
    first, second = newest(slow[0]), newest(slow[1])
    assert first is not None
    assert second is not None
    api.mark_run(dag_of(slow[0]), runs[slow[0]], "failed")
    first = end_of(first)
    api.clear(dag_of(slow[1]), runs[slow[1]], "replicate")
    second = end_of(second)
    airflow.wait(copies(slow[1], after=second.id), f"the next attempt of {slow[1]}")
    again = newest(slow[1])
    assert again is not None
    return Seen(
        at_once,
        deferred,
        ended,
        api.run_status(dag_of(fast), runs[fast]).tasks["replicate"],
        log,
        first,
        second,
        again,
        [record.value for record in consume(kafka_pair.source, files.waiting_topic)],
        [record.value for record in consume(kafka_pair.target, f"{fast}.{files.waiting_topic}")],
    )


def test_more_flows_copy_at_the_same_time_than_there_are_slots(seen: Seen) -> None:
    assert seen.at_once == {flow_of(alias) for alias in WAITING}
    assert seen.deferred == ["deferred"] * (len(WAITING) - 1)


def test_a_deferred_task_reports_its_copy_and_has_the_lines_of_its_driver(seen: Seen) -> None:
    assert (seen.ended.state, seen.ended.records, seen.ended_task) == ("succeeded", RECORDS, "success")
    assert "The task waits in the triggerer" in seen.log
    assert f"{RECORDS} records" in seen.log
    assert len(seen.source) == RECORDS
    assert seen.target == seen.source


def test_a_copy_whose_run_is_marked_failed_ends(seen: Seen) -> None:
    assert seen.marked_failed.state == "failed"
    assert seen.marked_failed.error is not None


def test_a_copy_whose_task_is_cleared_ends_and_the_next_attempt_copies(seen: Seen) -> None:
    assert seen.cleared.state == "failed"
    assert seen.again.id != seen.cleared.id
    assert seen.again.trigger == seen.cleared.trigger
