"""The wheel in an Airflow that somebody has already: its own home and DAG folder, and Spark in another environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest

from mirror_lib.airflow.flow.deadline import DEADLINE_MISSED
from mirror_lib.features.demo.airflow_api import DagRunStatus
from mirror_lib.ledger.store import Ledger
from tests.support.airflow.shared import SharedAirflow
from tests.support.clusters import KafkaPair
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.spark.submitted_jobs import bare_environment
from tools.testbed.spark_cluster import SparkCluster

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files, Installed

pytestmark = pytest.mark.timeout(900)

DAG_ID, CONSUMER = "mirror__primary__backup", "new_orders"
RECORDS = 500


@pytest.fixture(scope="module")
def existing(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow) -> Iterator[SharedAirflow]:
    """The Airflow with a connection to a Spark that knows nothing of this project, and with a pool."""
    for name in (files.existing_topic, f"{files.existing_topic}-quiet"):
        create_topic(kafka_pair.source, name, partitions=2)
    with SparkCluster(files.folder / "standalone", workers=1, environment=bare_environment()) as spark:
        host, _, port = spark.master_url.rpartition(":")
        airflow.api.add_connection("our_spark", "spark", host, int(port))
        airflow.api.add_pool("kafka_backup", 1)
        airflow.running.wait_ready([DAG_ID, CONSUMER])
        yield airflow


@dataclass(frozen=True, slots=True)
class Story:
    """What three runs left, in this order: with new records, with a choice that cannot work, without new records."""

    copying: DagRunStatus
    copied: int
    announced: object
    #: The ids of runs of the flow's DAG whose deadline was missed, and of all when that was noted.
    missed_deadlines: Sequence[str]
    runs_by_then: Sequence[str]
    #: Run id of the DAG that waits for the topic -> what its task returned.
    consumer_runs: Mapping[str, object]
    impossible: DagRunStatus
    quiet: DagRunStatus
    consumer_runs_at_last: int
    #: Command lines of Python in either environment.
    of_spark: Sequence[str]
    of_airflow: Sequence[str]


@pytest.fixture(scope="module")
def story(existing: SharedAirflow, installed: Installed, files: Files, kafka_pair: KafkaPair) -> Story:
    """Three runs, one after the other."""
    airflow, api = existing.running, existing.api
    # Other files of this folder run their Spark in Airflow's environment.
    before = len(installed.airflow.started())
    api.unpause(CONSUMER)
    produce(kafka_pair.source, files.existing_topic, records(RECORDS, size=200))
    copying = airflow.run(DAG_ID)
    copied = len(consume(kafka_pair.target, f"primary.{files.existing_topic}"))
    existing.wait(lambda: list(api.runs(CONSUMER).values()) == ["success"], "the consumer's run")
    existing.wait(lambda: bool(_missed_deadlines(files)), "the note of the missed deadline")
    missed_deadlines, runs_by_then = _missed_deadlines(files), list(api.runs(DAG_ID))
    consumer_runs = {run_id: api.return_value(CONSUMER, run_id, "read") for run_id in api.runs(CONSUMER)}
    impossible = airflow.run(DAG_ID, {"topics": ["("]})
    quiet = airflow.run(DAG_ID, {"steps": ["announce_new_records"]})
    return Story(
        copying,
        copied,
        api.return_value(DAG_ID, copying.run_id, "announce_new_records"),
        missed_deadlines,
        runs_by_then,
        consumer_runs,
        impossible,
        quiet,
        len(api.runs(CONSUMER)),
        installed.spark.started(),
        installed.airflow.started()[before:],
    )


def _missed_deadlines(files: Files) -> list[str]:
    with Ledger.open(files.ledger_url) as ledger:
        return [each.subject for each in ledger.audits.newest("primary->backup") if each.action == DEADLINE_MISSED]


def test_a_dag_file_of_a_few_lines_makes_the_dags_from_the_installed_wheel(
    existing: SharedAirflow, installed: Installed
) -> None:
    assert existing.api.import_errors() == {}
    for dag_id in (DAG_ID, "mirror_verify__primary__backup", "mirror_backfill__primary__backup"):
        assert existing.api.has_dag(dag_id)
    assert (installed.airflow.packages / "mirror_lib").is_dir()


def test_the_page_comes_by_the_wheels_entry_point_with_all_its_files(existing: SharedAirflow) -> None:
    assert "replication" in existing.api.plugins()
    for path in ("", "static/page.css", "static/main.js", "static/icon.svg"):
        response = httpx.get(f"{existing.running.url}/replication/{path}", timeout=60, trust_env=False)
        assert response.status_code == 200, path


def test_a_run_copies_with_the_connection_and_the_pool_that_airflow_holds(story: Story) -> None:
    assert story.copying.failed_tasks == ()
    assert story.copying.state == "success"
    assert story.copied == RECORDS
    assert story.announced == {"topics": 1, "records": RECORDS}


def test_the_driver_and_the_executors_used_sparks_environment(story: Story) -> None:
    assert any("replicate.py" in line for line in story.of_spark)
    assert any("daemon" in line for line in story.of_spark)
    assert not [line for line in story.of_airflow if line.startswith("replicate.py") or "daemon" in line]


def test_a_dag_that_waits_for_the_topic_is_triggered_once_and_told_what_came(story: Story) -> None:
    assert list(story.consumer_runs.values()) == [RECORDS]


def test_a_run_that_takes_longer_than_its_deadline_is_noted_in_the_ledger(story: Story) -> None:
    assert story.missed_deadlines == story.runs_by_then == [story.copying.run_id]


def test_a_choice_that_cannot_work_fails_the_run_without_a_second_try(story: Story) -> None:
    status = story.impossible

    assert status.state == "failed"
    assert (status.tasks["preflight"], status.tries["preflight"]) == ("failed", 1)
    assert status.tasks["replicate"] == "upstream_failed"


def test_a_run_without_new_records_triggers_nobody(story: Story) -> None:
    assert story.quiet.state == "success"
    skipped = {task for task, state in story.quiet.tasks.items() if state == "skipped"}
    assert skipped >= {"sync_topics", "translate_offsets", "announce_new_records"}
    assert story.consumer_runs_at_last == 1
