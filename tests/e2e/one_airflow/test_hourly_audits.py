"""Audits of a copy that another program wrote, in a real Airflow: of a flow's file by its schedule, and the example."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirror_lib.features.demo.airflow_api import DagRunStatus
from tests.support.airflow.shared import SharedAirflow
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, create_topic, produce, records

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files

pytestmark = pytest.mark.timeout(600)

DAG, EXAMPLE = "mirror_audit__E__F", "audit_mm2"
RECORDS = 40


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen: of the flow's right copy, and of the damaged copy in the example's DAG."""

    right: DagRunStatus
    right_log: str
    metrics: str
    wrong: DagRunStatus
    wrong_log: str


@pytest.fixture(scope="module")
def seen(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Seen:
    api, topic, copy = airflow.api, files.audited_topic, f"E.{files.audited_topic}"
    create_topic(kafka_pair.source, topic)
    create_topic(kafka_pair.target, copy)
    for cluster, name in ((kafka_pair.source, topic), (kafka_pair.target, copy)):
        produce(cluster, name, records(RECORDS))
    for dag_id in (DAG, EXAMPLE):
        airflow.wait(partial(api.has_dag, dag_id), f"the DAG {dag_id}")
    # Its schedule starts the first run.
    api.unpause(DAG)
    airflow.wait(lambda: bool(api.runs(DAG)), "the scheduled run")
    (run_id,) = api.runs(DAG)
    right = airflow.end_of(DAG, run_id)
    produce(kafka_pair.target, copy, [Record(value=b"foreign")])
    wrong = airflow.running.run(EXAMPLE)
    return Seen(
        right,
        airflow.task_logs(run_id, "audit"),
        files.audit_metrics.read_text(),
        wrong,
        airflow.task_logs(wrong.run_id, "audit"),
    )


def test_a_right_copy_is_a_success_with_the_commands_text_and_the_metrics(seen: Seen, files: Files) -> None:
    assert (seen.right.state, seen.right.tries) == ("success", {"audit": 1}), seen.right_log
    assert f"Right: {RECORDS} records are on the target" in seen.right_log
    assert f'mirror_audit_records{{flow="E->F",kind="equal"}} {RECORDS}.0' in seen.metrics
    assert f'target_topic="E.{files.audited_topic}"' in seen.metrics


def test_the_example_fails_once_for_a_damaged_copy_and_says_where(seen: Seen, files: Files) -> None:
    assert (seen.wrong.state, seen.wrong.tries) == ("failed", {"audit": 1}), seen.wrong_log
    assert f"{files.audited_topic}-0: 1 extra (target offsets {RECORDS}" in seen.wrong_log
    assert "find the other producer of the target topic" in seen.wrong_log
    assert "WrongCopyError" in seen.wrong_log
