"""The DAGs of the runbooks in a real Airflow, which ask a person.

A cutover asks twice, and one Spark job does the rest. After a disaster a person is asked once, and nothing is copied.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import pytest

from mirror_lib.copy.run_lock import LockHolder
from mirror_lib.features.cutover.model import CutoverState, Step
from mirror_lib.features.cutover.order import last_attempts
from mirror_lib.features.cutover.states.cutover import State
from mirror_lib.ledger.handovers import load_flow_as_it_runs
from tests.support.airflow.shared import SharedAirflow
from tests.support.clusters import KafkaPair
from tests.support.cutovers import Migration, commit, committed, numbered
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, produce

if TYPE_CHECKING:
    from tests.e2e.one_airflow.conftest import Files

pytestmark = pytest.mark.timeout(1200)

CUTOVER, AFTER_DISASTER = "mirror_cutover__A__B", "mirror_after_disaster__A__B"
RECORDS, PARTITIONS = 200, 2
WAITS = "The configuration file has errors; waiting at most"
FORM = {"name": "wave-1", "quiet_seconds": 2, "watch_seconds": 0, "wait_hours": 0.2}


@pytest.fixture(scope="module")
def topic(files: Files) -> str:
    return files.moving_topics[0]


@pytest.fixture(scope="module")
def lost_topic(files: Files) -> str:
    return files.moving_topics[1]


@pytest.fixture(scope="module")
def kept_topic(files: Files) -> str:
    return files.moving_topics[2]


@pytest.fixture(scope="module")
def moving(kafka_pair: KafkaPair, files: Files, airflow: SharedAirflow, topic: str) -> Migration:
    create_topic(kafka_pair.source, topic, partitions=PARTITIONS)
    produce(kafka_pair.source, topic, numbered(0, RECORDS, PARTITIONS))
    commit(kafka_pair.source, f"g-{topic}", topic, {0: 30, 1: 40})
    files.moving.there.sync_topics()
    for dag_id in (CUTOVER, AFTER_DISASTER):
        airflow.wait(partial(airflow.api.has_dag, dag_id), f"the DAG {dag_id}")
        airflow.api.unpause(dag_id)
    return files.moving


def asked(airflow: SharedAirflow, run_id: str, task: str, dag_id: str = CUTOVER) -> str:
    """What a task asks, once it can be answered."""

    def there() -> bool:
        status = airflow.api.run_status(dag_id, run_id)
        assert not status.failed_tasks, f"{status.failed_tasks} failed: {airflow.task_logs(run_id)}"
        return task in airflow.api.questions(dag_id, run_id) and airflow.has_parked(dag_id, run_id, task)

    airflow.wait(there, f"the question {task}")
    return airflow.api.questions(dag_id, run_id)[task]


def test_a_cutover_is_killed_refused_cleared_and_triggered_again_and_comes_to_its_end(
    airflow: SharedAirflow, moving: Migration, topic: str
) -> None:
    # Given a cutover that asks whether the writers are stopped
    first = airflow.api.trigger(CUTOVER, {**FORM, "topics": [topic]})
    question = asked(airflow, first, "writers_stopped")
    assert "wave-1" in question
    assert moving.present("wave-1").state is State.ASKING_FREEZE

    # When it is triggered once more, then that run is refused, and the first one asks on
    rival = airflow.api.trigger(CUTOVER, FORM)
    assert airflow.end_of(CUTOVER, rival).tasks["prepare"] == "failed"
    assert "cutover wave-1 is already running" in airflow.task_logs(rival)
    assert moving.present("wave-1").state is State.ASKING_FREEZE

    # When its job is killed, then a yes is refused and says so, and nothing has moved
    kill_carrier(airflow, moving, "wave-1")
    airflow.api.answer(CUTOVER, first, "writers_stopped", "Yes")
    killed = airflow.end_of(CUTOVER, first)
    assert (killed.state, killed.tasks["note_freeze"]) == ("failed", "failed")
    assert "cutover wave-1 has no running process" in airflow.task_logs(first)
    assert moving.present("wave-1").state is State.STOPPED

    # When its tasks are cleared after a record more, then nobody is asked by a text that is old, and nobody waits
    produce(moving.pair.source, topic, numbered(RECORDS, RECORDS + 1, PARTITIONS))
    airflow.api.clear(CUTOVER, first, "prepare")
    cleared = airflow.end_of(CUTOVER, first)
    assert (cleared.state, cleared.tasks["writers_stopped"]) == ("failed", "failed")
    assert "Trigger this DAG again instead of clearing its tasks" in airflow.task_logs(first)
    assert moving.present("wave-1").state is State.STOPPED

    assert moving.where(moving.known("wave-1")).state is CutoverState.FAILED
    assert topic not in {each.topic for each in moving.ledger.handovers.handed_over()}

    # When it is triggered with the same name, then it goes on to the end
    second = airflow.api.trigger(CUTOVER, FORM)
    asked(airflow, second, "writers_stopped")

    # And when its file is half-written while the writers wait, then the answer waits for the rest
    file = moving.there.path
    whole = file.read_text()
    file.write_text(whole[: whole.rindex(" = ")])
    airflow.api.answer(CUTOVER, second, "writers_stopped", "Yes")
    airflow.wait(lambda: WAITS in airflow.task_logs(second, "note_freeze"), "the task that waits for the file")
    file.write_text(whole)
    gates = asked(airflow, second, "agreed")
    airflow.api.answer(CUTOVER, second, "agreed", "Yes")
    done = airflow.end_of(CUTOVER, second)

    assert done.state == "success", airflow.task_logs(second)
    # By the rehearsal, before there was one more.
    assert f"{RECORDS} records compared" in gates
    progress = moving.where(moving.known("wave-1"))
    assert progress.state is CutoverState.FINISHED
    assert last_attempts(progress.attempts)[Step.REHEARSE].number == 1
    assert len(consume(moving.pair.target, topic)) == RECORDS + 1
    assert committed(moving.pair.target, f"g-{topic}", topic, PARTITIONS) == {0: 30, 1: 40}
    assert airflow.api.return_value(CUTOVER, second, "report")["state"] == "finished"


def kill_carrier(airflow: SharedAirflow, moving: Migration, name: str) -> None:
    """Kill the driver that carries a cutover out."""
    carrier = moving.present(name).carrier
    holder = LockHolder.parse(carrier.holder)
    os.kill(holder.pid, signal.SIGKILL)
    airflow.wait(lambda: moving.present(name).carrier is None, "the end of the driver")


def test_a_cutover_is_taken_back_by_the_form(airflow: SharedAirflow, moving: Migration, kept_topic: str) -> None:
    # Given a cutover of a topic that has been copied and that nobody has written behind
    create_topic(moving.pair.source, kept_topic, partitions=PARTITIONS)
    produce(moving.pair.source, kept_topic, numbered(0, RECORDS, PARTITIONS))
    moving.there.run(topics=(kept_topic,))
    moving.define("wave-2", kept_topic)

    run_id = airflow.api.trigger(CUTOVER, {**FORM, "name": "wave-2", "action": "roll back"})
    airflow.end_of(CUTOVER, run_id)

    assert moving.where(moving.known("wave-2")).state is CutoverState.ROLLED_BACK


def test_after_a_disaster_whoever_agrees_has_what_came_since_brought_home(
    airflow: SharedAirflow, moving: Migration, lost_topic: str
) -> None:
    # Given a topic that was copied, then written to on the source and not copied, and then written to on the target
    pair = moving.pair
    create_topic(pair.source, lost_topic, partitions=PARTITIONS)
    produce(pair.source, lost_topic, numbered(0, 20, PARTITIONS))
    moving.there.run(topics=(lost_topic,))
    produce(pair.source, lost_topic, numbered(20, 26, PARTITIONS))
    produce(pair.target, lost_topic, numbered(100, 110, PARTITIONS))

    # When somebody looks at the plan and does not agree, then nothing changes
    form = {"topics": [lost_topic], "note": "fire in the cellar"}
    first = airflow.api.trigger(AFTER_DISASTER, form)
    plan = asked(airflow, first, "agreed", AFTER_DISASTER)
    airflow.api.answer(AFTER_DISASTER, first, "agreed", "No")
    assert "6 offsets were never copied to B; flow B->A copies 10 newer offsets back" in plan
    assert f"| {lost_topic}-0 | 10 | 13 | 3 | {lost_topic}-0 | 10 | 5 |" in plan
    assert airflow.end_of(AFTER_DISASTER, first).state == "failed"
    assert lost_topic not in {each.topic for each in moving.ledger.handovers.handed_over("A->B")}

    # And when somebody agrees, then the loss is in the ledger and the flow back brings home what came since
    second = airflow.api.trigger(AFTER_DISASTER, form)
    asked(airflow, second, "agreed", AFTER_DISASTER)
    airflow.api.answer(AFTER_DISASTER, second, "agreed", "Yes")
    done = airflow.end_of(AFTER_DISASTER, second)

    assert done.state == "success", airflow.task_logs(second)
    assert airflow.api.return_value(AFTER_DISASTER, second, "hand_over") == {
        "partitions": PARTITIONS,
        "left_behind": 6,
        "flow_back": "B->A",
    }
    lost = [gap for gap in moving.ledger.gaps("A->B") if gap.topic == lost_topic]
    assert {(gap.cause, gap.first_offset, gap.next_offset, gap.note) for gap in lost} == {
        ("disaster", 10, 13, "fire in the cellar")
    }
    _, back = load_flow_as_it_runs(moving.there.path, "B->A")
    assert Flow(back, moving.ledger, moving.there.path).run(topics=(lost_topic,)).records == 10
    assert len(consume(pair.source, lost_topic)) == 36
