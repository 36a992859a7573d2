"""What the DAG's first task does by itself where a flow has nothing to copy, and what it leaves to the other tasks."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.flow.sync_tasks import SKIPPED_KEY
from mirror_lib.copy.run_lock import hold_lock
from tests.support.airflow.preflights import other_tasks, run_preflight
from tests.support.brokers.groups import commit_offset
from tests.support.flows import Flow
from tests.support.kafka import Record, add_partitions, create_topic, delete_topic, records
from tests.support.mirrored_topic import MirroredTopic

_BEFORE_THE_COPY = {"emit_heartbeats", "sync_topics"}
_ONE_REPLICA = {"checkpoints.topic.replication.factor": "1"}


@pytest.fixture
def flow(mirrored: MirroredTopic) -> Flow:
    """A flow that has caught up."""
    mirrored.create(records(20), partitions=2)
    made = mirrored.flow(_ONE_REPLICA)
    assert made.run().records == 20
    return made


def test_a_flow_with_nothing_to_copy_is_done_by_its_first_task(flow: Flow) -> None:
    ran = run_preflight(flow.path)

    assert ran.skipped == other_tasks(flow.path) == set(ran.pushed[SKIPPED_KEY])
    assert ran.pushed[REPORT_KEY]["exit_code"] == 0
    newest = flow.ledger.runs("A->B", 1)[0]
    assert (newest.state, newest.records, newest.id) == ("succeeded", 0, ran.pushed[REPORT_KEY]["run_id"])
    observed = flow.ledger.observations.newest("A->B")
    assert (observed.run_id, observed.lagging, observed.stalled, observed.partitions) == (newest.id, 0, 0, 2)
    assert ran.pushed[STEP_KEY]["translate_offsets"]["skipped"] is None
    # Its interval is not over now.
    assert "due again" in run_preflight(flow.path).pushed[STEP_KEY]["translate_offsets"]["skipped"]
    # Somebody has cleared the run.
    assert run_preflight(flow.path, try_number=2).pushed[STEP_KEY]["translate_offsets"]["skipped"] is None


def test_a_run_with_choices_of_its_own_has_all_tasks(flow: Flow) -> None:
    before = flow.ledger.runs("A->B", 5)
    choices: list[dict[str, Any]] = [
        {"dry_run": True},
        {"topics": [".*"]},
        {"gaps": "accept"},
        {"steps": ["sync_topics"]},
        {"tasks": 1},
    ]
    for choice in choices:
        assert run_preflight(flow.path, **choice).skipped == set(), choice
        assert flow.ledger.runs("A->B", 5) == before, choice


def test_records_are_left_to_spark(flow: Flow, mirrored: MirroredTopic) -> None:
    before = flow.ledger.runs("A->B", 5)
    mirrored.produce(records(1))

    ran = run_preflight(flow.path)

    assert REPORT_KEY not in ran.pushed
    # It is switched off; the others were never done.
    assert set(ran.pushed[STEP_KEY]) == {"sync_group_offsets"}
    assert ran.skipped == {*_BEFORE_THE_COPY, "sync_group_offsets"} == set(ran.pushed[SKIPPED_KEY])
    assert flow.ledger.runs("A->B", 5) == before


def test_a_new_topic_without_records_is_left_to_the_tasks(mirrored: MirroredTopic) -> None:
    create_topic(mirrored.source, f"{mirrored.name}-1")
    made = mirrored.flow(topics=f"{mirrored.name}.*", settings=_ONE_REPLICA)
    made.run()
    assert run_preflight(made.path).skipped
    create_topic(mirrored.source, f"{mirrored.name}-2")

    assert run_preflight(made.path).skipped.isdisjoint({"sync_topics", "replicate"})


def test_a_partition_that_the_copy_lacks_is_left_to_the_task_of_topics(flow: Flow, mirrored: MirroredTopic) -> None:
    add_partitions(mirrored.source, mirrored.name, 3)
    mirrored.produce(records(1))

    ran = run_preflight(flow.path)

    assert "sync_topics" not in ran.skipped
    assert "emit_heartbeats" in ran.skipped


def test_a_record_of_another_program_in_a_copy_is_logged_as_by_any_run(
    flow: Flow, mirrored: MirroredTopic, caplog: pytest.LogCaptureFixture
) -> None:
    mirrored.produce_remote([Record(value=b"of another program")])
    (told,) = [warning for warning in flow.run().warnings if mirrored.name in warning]

    with caplog.at_level(logging.WARNING):
        assert run_preflight(flow.path).skipped == other_tasks(flow.path)

    assert [record for record in caplog.records if told in record.getMessage()]


def test_a_source_that_was_created_again_is_never_idle(flow: Flow, mirrored: MirroredTopic) -> None:
    delete_topic(mirrored.source, mirrored.name)
    mirrored.create(partitions=2)

    assert "replicate" not in run_preflight(flow.path).skipped
    assert flow.run().exit_code == 3


def test_a_run_that_is_active_elsewhere_leaves_all_to_the_tasks(flow: Flow) -> None:
    with hold_lock(flow.ledger, flow="A->B", run_id="other", lease_seconds=1.5):
        assert "replicate" not in run_preflight(flow.path).skipped


def test_a_step_that_fails_is_left_to_its_task_and_to_the_report(mirrored: MirroredTopic) -> None:
    mirrored.create()
    # The cluster has one broker.
    made = mirrored.flow({"checkpoints.topic.replication.factor": "3"})
    made.run()
    delete_topic(mirrored.target, "A.checkpoints.internal")

    ran = run_preflight(made.path)

    assert ran.skipped == other_tasks(made.path) - {"translate_offsets", "report"}
    assert "translate_offsets" not in ran.pushed[STEP_KEY]


def test_steps_that_are_not_due_have_no_task_in_a_run_with_records_either(flow: Flow, mirrored: MirroredTopic) -> None:
    assert run_preflight(flow.path).skipped == other_tasks(flow.path)
    mirrored.produce(records(1))

    # Groups are translated behind the copy, and their interval may be over by then.
    steps = {"sync_topic_configs", "sync_topic_acls", "sync_group_offsets"}
    assert run_preflight(flow.path).skipped == _BEFORE_THE_COPY | steps


def test_the_step_that_commits_writes_the_checkpoints_too(mirrored: MirroredTopic) -> None:
    mirrored.create(records(5))
    settings = {f"{step}.interval.seconds": "0" for step in ("emit.checkpoints", "sync.group.offsets")}
    group = {"sync.group.offsets.enabled": "true", "A->B.groups": f"{mirrored.name}.*"}
    made = mirrored.flow({**_ONE_REPLICA, **settings, **group})
    made.run()
    commit_offset(mirrored.source, f"{mirrored.name}-g", mirrored.name, 3)

    steps = run_preflight(made.path).pushed[STEP_KEY]

    assert "sync_group_offsets writes the checkpoints" in steps["translate_offsets"]["skipped"]
    assert (steps["sync_group_offsets"]["checkpoints"], steps["sync_group_offsets"]["commits"]) == (1, 1)
    noted = {row.step: row.skipped for row in made.ledger.observations.steps("A->B")}
    assert noted["translate_offsets"] is noted["sync_group_offsets"] is None
    mirrored.produce(records(1))
    assert run_preflight(made.path).skipped & {"translate_offsets", "sync_group_offsets"} == {"translate_offsets"}
