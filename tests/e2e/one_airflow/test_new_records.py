"""Runs that new records start in a real Airflow, also with a triggerer that hangs and one that takes over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirror_lib.airflow.task_states import ENDED_STATES
from mirror_lib.config.loader import load
from mirror_lib.features.demo.airflow_api import DagRunStatus
from mirror_lib.ledger.store import Ledger
from tests.support.airflow.shared import SharedAirflow
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, produce, records

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
    #: Of the records so far: what both sides had then.
    source: list[bytes | None]
    target: list[bytes | None]
    #: Runs that new records have started: with one triggerer, while it hung and a second one had taken over, and at the
    #: end, when both had seen records.
    before: set[str]
    taken_over: set[str]
    at_the_end: set[str]
    #: What both sides had at the end.
    whole_source: list[bytes | None]
    whole_target: list[bytes | None]


def started_by_records(airflow: SharedAirflow) -> set[str]:
    return {run for run in airflow.api.runs(DAG) if run.startswith("asset_triggered")}


def more_than(airflow: SharedAirflow, known: set[str]) -> Callable[[], bool]:
    return lambda: bool(started_by_records(airflow) - known)


@pytest.fixture(scope="module")
def seen(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Seen:
    api, topic = airflow.api, files.watched_topic

    def both() -> tuple[list[bytes | None], list[bytes | None]]:
        source, target = consume(kafka_pair.source, topic), consume(kafka_pair.target, f"U.{topic}")
        return [record.value for record in source], [record.value for record in target]

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
    # Its other tasks run while the triggerer hangs.
    airflow.wait(lambda: api.run_status(DAG, run).tasks["replicate"] in ENDED_STATES, f"the copy of {run}")
    copied = api.run_status(DAG, run)
    source, target = both()
    before = started_by_records(airflow)
    parts = airflow.running.parts
    parts.start_beside("triggerer", "second-triggerer")
    parts.freeze("triggerer")
    produce(kafka_pair.source, topic, records(1))
    airflow.wait(more_than(airflow, before), "a run by the second triggerer")
    taken_over = started_by_records(airflow)
    (second,) = taken_over - before
    # Else it may copy the next record too, and no further run is needed.
    airflow.wait(lambda: api.run_status(DAG, second).tasks["replicate"] in ENDED_STATES, f"the copy of {second}")
    # The first one has not seen this record yet, and does not know that its trigger was taken over.
    parts.wake("triggerer")
    produce(kafka_pair.source, topic, records(1))
    airflow.wait(more_than(airflow, taken_over), "a run after the first triggerer went on")
    airflow.wait(lambda: len(both()[1]) >= COPIED + MORE + 2, "a copy of the last record")
    airflow.wait(lambda: set(api.runs(DAG).values()) == {"success"}, "the end of all runs")
    parts.end("second-triggerer")
    api.pause(DAG)
    assert first == before
    return Seen(copied, source, target, before, taken_over, started_by_records(airflow), *both())


def test_new_records_start_a_run_that_copies_them(seen: Seen) -> None:
    assert seen.run.tasks["replicate"] == "success"
    assert len(seen.source) == COPIED + MORE
    assert seen.target == seen.source


def test_one_run_for_them_and_one_for_what_came_while_the_triggerer_hung(seen: Seen) -> None:
    assert len(seen.before) == 1
    assert len(seen.taken_over) == 2


def test_what_two_triggerers_see_starts_at_most_one_run_more_and_nothing_is_copied_twice(seen: Seen) -> None:
    assert len(seen.at_the_end) in (3, 4)
    assert len(seen.whole_source) == COPIED + MORE + 2
    assert seen.whole_target == seen.whole_source
