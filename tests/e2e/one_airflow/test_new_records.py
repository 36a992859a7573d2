"""Runs that new records start in a real Airflow, also after its triggerer was gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirror_lib.airflow.task_states import ENDED_STATES
from mirror_lib.config.loader import load
from mirror_lib.dev.airflow_api import DagRunStatus
from mirror_lib.ledger.store import Ledger
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.shared_airflow import SharedAirflow

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files

pytestmark = pytest.mark.timeout(600)

DAG, FLOW = "mirror__U__V", "U->V"
COPIED, MORE = 5, 7


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, in this order."""

    #: Of the run that came by itself, when it had copied.
    run: DagRunStatus
    preflight: str
    source: list[bytes | None]
    target: list[bytes | None]
    #: Runs that new records have started, before and after records came without a triggerer.
    before: set[str]
    after: set[str]


def started_by_records(airflow: SharedAirflow) -> set[str]:
    return {run for run in airflow.api.runs(DAG) if run.startswith("asset_triggered")}


def more_than(airflow: SharedAirflow, known: set[str]) -> Callable[[], bool]:
    return lambda: bool(started_by_records(airflow) - known)


@pytest.fixture(scope="module")
def seen(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Seen:
    api, topic = airflow.api, files.watched_topic
    create_topic(kafka_pair.source, topic)
    produce(kafka_pair.source, topic, records(COPIED))
    with Ledger.open(files.ledger_url) as ledger:
        ledger.migrate()
        assert Flow(load(files.watched).flow(FLOW), ledger, files.watched).run().records == COPIED
    airflow.wait(partial(api.has_dag, DAG), f"the DAG {DAG}")
    api.unpause(DAG)
    # Airflow makes the trigger of an unpaused DAG when it parses it. The time schedule begins with a run.
    airflow.parse_now()
    airflow.wait(lambda: set(api.runs(DAG).values()) == {"success"}, "the end of the first run")
    produce(kafka_pair.source, topic, records(MORE, start=COPIED))
    airflow.wait(more_than(airflow, set()), "a run of new records")
    (run,) = first = started_by_records(airflow)
    # Its other tasks run while the triggerer is replaced.
    airflow.wait(lambda: api.run_status(DAG, run).tasks["replicate"] in ENDED_STATES, f"the copy of {run}")
    copied = api.run_status(DAG, run)
    target = [record.value for record in consume(kafka_pair.target, f"U.{topic}")]
    source = [record.value for record in consume(kafka_pair.source, topic)]
    before = started_by_records(airflow)
    airflow.running.parts.replace("triggerer")
    produce(kafka_pair.source, topic, records(1))
    airflow.wait(more_than(airflow, before), "a run after the triggerer was gone")
    api.pause(DAG)
    assert first == before
    return Seen(copied, airflow.task_logs(run, "preflight"), source, target, before, started_by_records(airflow))


def test_new_records_start_a_run_that_copies_them(seen: Seen) -> None:
    assert seen.run.tasks["replicate"] == "success"
    assert len(seen.source) == COPIED + MORE
    assert seen.target == seen.source


def test_one_run_for_them_and_one_for_what_came_without_a_triggerer(seen: Seen) -> None:
    assert len(seen.before) == 1
    assert len(seen.after) == 2
