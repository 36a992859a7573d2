"""The cutover's DAG in a real Airflow: a person is asked twice, and one Spark job does the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mirror_lib.dev.airflow import LocalAirflow
from mirror_lib.dev.airflow_api import DagRunStatus
from mirror_lib.runbook.model import CutoverState, Step
from mirror_lib.runbook.order import last_attempts
from tests.support.clusters import KafkaPair
from tests.support.cutovers import Migration, commit, committed, migration, numbered
from tests.support.kafka import consume, create_topic, produce
from tests.support.names import unique_name

DAG_ID = "mirror_cutover__A__B"
RECORDS, PARTITIONS = 200, 2
_READING_SECONDS = 10.0
_QUESTIONS = frozenset({"writers_stopped", "agreed"})
FORM = {"name": "wave-1", "still_seconds": 2, "watch_seconds": 0, "wait_hours": 0.2}


@pytest.fixture(scope="module")
def topic() -> str:
    return unique_name("moving")


@pytest.fixture(scope="module")
def moving(kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory, topic: str) -> Iterator[Migration]:
    create_topic(kafka_pair.source, topic, partitions=PARTITIONS)
    produce(kafka_pair.source, topic, numbered(0, RECORDS, PARTITIONS))
    commit(kafka_pair.source, f"g-{topic}", topic, {0: 30, 1: 40})
    made = migration(tmp_path_factory.mktemp("cutover"), kafka_pair, topic)
    made.there.sync_topics()
    yield made
    made.ledger.close()


@pytest.fixture(scope="module")
def airflow(moving: Migration, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAirflow]:
    folder = tmp_path_factory.mktemp("airflow")
    project = Path(__file__).resolve().parents[2]
    running = LocalAirflow(home=folder / "home", project=project)
    running.home.mkdir()
    try:
        running.start({"MIRROR_CONFIG": str(moving.there.path), "MIRROR_STATE_DIR": str(folder)}, lambda _: None)
        wait(lambda: running.api.has_dag(DAG_ID), "the DAG", 180)
        running.api.unpause(DAG_ID)
        yield running
    finally:
        running.stop()


def wait(done: Callable[[], bool], what: str, seconds: float = 300) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"{what} did not come in {seconds:.0f} s"
        time.sleep(0.5)


def ended(airflow: LocalAirflow, run_id: str) -> DagRunStatus:
    wait(lambda: airflow.api.run_status(DAG_ID, run_id).finished, f"the end of {run_id}")
    return airflow.api.run_status(DAG_ID, run_id)


def logs(airflow: LocalAirflow, run_id: str) -> str:
    """What the tasks of a run have logged last."""
    found = sorted((airflow.home / "logs").glob(f"**/run_id={run_id}/**/*.log"))
    return "\n".join(f"--- {path.parent.name}\n{path.read_text()[-1500:]}" for path in found)


def asked(airflow: LocalAirflow, run_id: str, task: str) -> str:
    """What a task asks, once it does."""

    def there() -> bool:
        status = airflow.api.run_status(DAG_ID, run_id)
        # A scheduler of Airflow 3.3 that is behind takes the end of the asking for the end of the task, and marks it as
        # failed although it goes on and passes the answer on; the cutover goes by the answer.
        failed = set(status.failed_tasks) - _QUESTIONS
        assert not failed, f"{failed} failed: {logs(airflow, run_id)}"
        return task in airflow.api.questions(DAG_ID, run_id)

    wait(there, f"the question {task}")
    # Airflow 3.3 fails a task that is answered before its scheduler has noted that it waits; people are slower.
    wait(lambda: airflow.api.run_status(DAG_ID, run_id).tasks[task] == "awaiting_input", f"{task} to wait")
    time.sleep(_READING_SECONDS)
    return airflow.api.questions(DAG_ID, run_id)[task]


def test_whoever_does_not_agree_stops_the_cutover_and_it_goes_on_by_its_name(
    airflow: LocalAirflow, moving: Migration, topic: str
) -> None:
    # Given a cutover that asks whether the writers are stopped
    first = airflow.api.trigger(DAG_ID, {**FORM, "topics": [topic]})
    question = asked(airflow, first, "writers_stopped")
    assert "wave-1" in question

    # When the answer is no
    airflow.api.answer(DAG_ID, first, "writers_stopped", "No")
    refused = ended(airflow, first)

    # Then the run fails, nothing has moved, and a run with the same name goes on to the end
    assert refused.state == "failed"
    assert moving.where(moving.known("wave-1")).state is CutoverState.FAILED
    assert not moving.ledger.cutovers.handed_over()
    second = airflow.api.trigger(DAG_ID, FORM)
    asked(airflow, second, "writers_stopped")
    airflow.api.answer(DAG_ID, second, "writers_stopped", "Yes")
    gates = asked(airflow, second, "agreed")
    airflow.api.answer(DAG_ID, second, "agreed", "Yes")
    done = ended(airflow, second)

    assert done.state == "success", logs(airflow, second)
    assert f"{RECORDS} records compared" in gates
    progress = moving.where(moving.known("wave-1"))
    assert progress.state is CutoverState.FINISHED
    assert last_attempts(progress.attempts)[Step.REHEARSE].number == 1
    assert len(consume(moving.pair.target, topic)) == RECORDS
    assert committed(moving.pair.target, f"g-{topic}", topic, PARTITIONS) == {0: 30, 1: 40}
    assert airflow.api.return_value(DAG_ID, second, "report")["state"] == "finished"


def test_a_cutover_is_taken_back_by_the_form(airflow: LocalAirflow, moving: Migration, topic: str) -> None:
    # Given another cutover, of the flow as it was before the first, that nobody has written behind
    moving.ledger.cutovers.take_back("A->B", [topic])
    moving.define("wave-2", topic)

    run_id = airflow.api.trigger(DAG_ID, {**FORM, "name": "wave-2", "action": "roll back"})
    ended(airflow, run_id)

    assert moving.where(moving.known("wave-2")).state is CutoverState.ROLLED_BACK
