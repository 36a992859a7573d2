from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow import sync_tasks
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.errors import BrokerUnreachableError
from mirror_lib.sync.intervals import SyncStep
from tests.support.flow_files import AWAY, LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger

NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}
TASKS = {
    "sync.topic.configs": sync_tasks.sync_topic_configs,
    "sync.topic.acls": sync_tasks.sync_topic_acls,
    "emit.checkpoints": sync_tasks.translate_offsets,
    "sync.group.offsets": sync_tasks.sync_group_offsets,
}


class Instance:
    """What a task is given of its task instance; keeps what it pushes."""

    def __init__(self, try_number=1, skipped=()):
        self.skipped = list(skipped)
        self.try_number = try_number
        self.pushed = {}

    def xcom_push(self, key, value):
        self.pushed[key] = value

    def xcom_pull(self, task_ids, key):
        return self.skipped if (task_ids, key) == ("preflight", sync_tasks.SKIPPED_KEY) else None


@pytest.fixture
def config(tmp_path):
    return write_flow(tmp_path, *AWAY, LEDGER, "sync.group.offsets.enabled = true")


def run(kind, config, instance=None, **choices):
    dag_run = SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1")
    params = {**NO_CHOICE, **choices}
    return TASKS[kind]("A->B", str(config), params, dag_run=dag_run, ti=instance or Instance())


def note_done(config, *steps):
    with ready_ledger(f"sqlite:///{config.parent / 'ledger.sqlite3'}") as ledger:
        for step in steps:
            ledger.note_sync("A->B", step, datetime.now(UTC))


@pytest.mark.parametrize("kind", TASKS)
def test_a_step_that_is_switched_off_or_not_due_is_shown_as_skipped_and_is_done_when_somebody_clears_it(config, kind):
    note_done(config, *SyncStep)
    with pytest.raises(AirflowSkipException, match=rf"due again at .*{kind}\.interval\.seconds"):
        run(kind, config)

    # It goes to work, and so notices that the clusters are away. Airflow counts a task that preflight has seen to as
    # its first try.
    for cleared in (Instance(try_number=2), Instance(skipped=[TASKS[kind].__name__])):
        with pytest.raises(BrokerUnreachableError):
            run(kind, config, cleared)

    write_flow(config.parent, *AWAY, LEDGER, f"{kind}.enabled = false")
    instance = Instance(try_number=2)
    with pytest.raises(AirflowSkipException, match=rf"{kind}\.enabled is false"):
        run(kind, config, instance)
    assert "is false" in instance.pushed[STEP_KEY]["skipped"]


def test_how_a_step_ended_is_kept_under_the_name_of_its_task_unless_it_was_for_some_topics(config):
    write_flow(config.parent, *AWAY, LEDGER, "sync.topic.configs.enabled = false")
    with ready_ledger(f"sqlite:///{config.parent / 'ledger.sqlite3'}") as ledger:
        with pytest.raises(AirflowSkipException):
            run("sync.topic.configs", config, topics=["orders"])
        assert ledger.observations.steps("A->B") == ()

        with pytest.raises(AirflowSkipException):
            run("sync.topic.configs", config)

        (kept,) = ledger.observations.steps("A->B")
    assert (kept.step, kept.skipped) == ("sync_topic_configs", "sync.topic.configs.enabled is false")


def test_a_step_gives_its_counts_and_one_that_was_refused_in_part_fails_and_leaves_its_reasons_for_the_report():
    done = {"skipped": None, "failed": 0, "problems": [], "changed": 5}
    assert sync_tasks._finish_step("A->B", "topic configs", done, {"ti": Instance()}) == done

    refused = {"skipped": None, "failed": 2, "problems": ["topic a: no.", "topic b: no."], "changed": 5}
    instance = Instance()
    with pytest.raises(AirflowFailException, match=r"flow A->B: 2 topic configs were rejected: topic a: no\.; topic b"):
        sync_tasks._finish_step("A->B", "topic configs", refused, {"ti": instance})
    assert instance.pushed == {STEP_KEY: refused}
