"""A run without records in a real Airflow, and somebody who clears a task of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

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

DAG, FLOW = "mirror__Q__R", "Q->R"
RECORDS, MORE = 40, 7


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen, in this order."""

    idle: DagRunStatus
    log: str
    #: After somebody has cleared `replicate`, and records had come meanwhile.
    cleared: DagRunStatus
    report: dict[str, Any]
    translated: str
    source: list[bytes | None]
    target: list[bytes | None]


@pytest.fixture(scope="module")
def seen(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Seen:
    api = airflow.api
    create_topic(kafka_pair.source, files.quiet_topic)
    produce(kafka_pair.source, files.quiet_topic, records(RECORDS))
    with Ledger.open(files.ledger_url) as ledger:
        ledger.migrate()
        assert Flow(load(files.quiet).flow(FLOW), ledger, files.quiet).run().records == RECORDS
    airflow.wait(partial(api.has_dag, DAG), f"the DAG {DAG}")
    api.unpause(DAG)
    idle = airflow.running.run(DAG)
    log = airflow.task_logs(idle.run_id, "preflight")
    produce(kafka_pair.source, files.quiet_topic, records(MORE, start=RECORDS))
    api.clear(DAG, idle.run_id, "replicate")
    cleared = airflow.end_of(DAG, idle.run_id)
    return Seen(
        idle,
        log,
        cleared,
        api.return_value(DAG, idle.run_id, "report"),
        airflow.task_logs(idle.run_id, "translate_offsets"),
        [record.value for record in consume(kafka_pair.source, files.quiet_topic)],
        [record.value for record in consume(kafka_pair.target, f"Q.{files.quiet_topic}")],
    )


def test_airflow_starts_no_other_task_where_there_is_nothing_to_copy(seen: Seen) -> None:
    assert seen.idle.state == "success"
    assert {task: tries for task, tries in seen.idle.tries.items() if tries} == {"preflight": 1}
    assert {state for task, state in seen.idle.tasks.items() if task != "preflight"} == {"skipped"}


def test_the_log_of_preflight_names_what_is_skipped_and_why(seen: Seen) -> None:
    assert "no new records to copy" in seen.log
    assert "- sync_group_offsets: skipped, sync.group.offsets.enabled is false" in seen.log
    assert "Airflow skips emit_heartbeats, sync_topics" in seen.log


def test_a_skipped_task_that_somebody_clears_runs_and_copies_what_has_come_meanwhile(seen: Seen) -> None:
    assert seen.cleared.state == "success", seen.cleared
    assert seen.cleared.tasks["replicate"] == "success"
    assert seen.report["records"] == MORE
    assert len(seen.source) == RECORDS + MORE
    assert seen.target == seen.source


def test_a_step_that_is_cleared_is_done_whatever_its_interval(seen: Seen) -> None:
    assert seen.cleared.tasks["translate_offsets"] == "success"
    assert "due again" not in seen.translated
