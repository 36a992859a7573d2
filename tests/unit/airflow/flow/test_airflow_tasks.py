import uuid
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow import check, report_task
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.errors import BrokerUnreachableError, ConfigurationError
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.observe.airflow_runs import trigger_text
from tests.support.ledger.ledgers import ready_ledger

OUTCOME = {"exit_code": 0, "dry_run": False, "problems": [], "failed": 0, "planned": [], "run_id": "r"}
NOTHING_TO_DO = {"skipped": "it is not due", "failed": 0, "problems": []}
CONFIG = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:9
B.bootstrap.servers = 127.0.0.1:9
A->B.enabled = true
admin.timeout.ms = 1000
mirror.ledger.url = sqlite:///ledger.sqlite3
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "mirror.properties"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def ledger(tmp_path):
    with ready_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as ledger:
        yield ledger


def note_run(ledger, trigger, records, state="done"):
    run_id = str(uuid.uuid4())
    ledger.start_run(run_id=run_id, flow="A->B", trigger=trigger)
    row = PartitionRunRow(
        run_id=run_id,
        round=1,
        topic="orders",
        partition=0,
        target_topic="A.orders",
        start_offset=0,
        end_offset=10,
        source_next=records,
        target_first=0,
        target_next=records,
        records=records,
        state=state,
    )
    ledger.save_partition_runs([row])
    return run_id


def context(outcome, **steps):
    """A run whose tasks beside the copy had nothing to do, or what a test says."""

    def pull(task_ids, key):
        if task_ids == "preflight":
            return None
        return (
            outcome
            if task_ids == "replicate"
            else steps.get(task_ids, None if key == "return_value" else NOTHING_TO_DO)
        )

    return {
        "ti": SimpleNamespace(xcom_pull=pull, get_task_states=lambda **_: {}),
        "dag_run": SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1"),
    }


def after_preflight(states, steps, **outcomes):
    """A run that preflight has done, of which somebody has cleared some tasks."""

    def pull(task_ids, key):
        if task_ids == "preflight":
            return OUTCOME if key == REPORT_KEY else steps
        return outcomes.get(task_ids)

    def get_task_states(dag_id, task_ids, run_ids):
        return {run_ids[0]: {task: states.get(task, "skipped") for task in task_ids}}

    return {
        "ti": SimpleNamespace(xcom_pull=pull, get_task_states=get_task_states),
        "dag_run": SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1"),
    }


DONE_BEFORE = dict.fromkeys(report_task.REPORTED_STEPS, NOTHING_TO_DO)


def test_the_report_of_a_run_that_preflight_has_done_tells_of_that(config, ledger):
    done = report_task.report("A->B", str(config), **after_preflight({}, DONE_BEFORE))

    assert done["steps"] == DONE_BEFORE
    assert done["records"] == 0


@pytest.mark.parametrize("task", ["replicate", *report_task.REPORTED_STEPS])
def test_a_cleared_task_that_ends_without_a_word_fails_the_report_whatever_preflight_has_done(config, ledger, task):
    with pytest.raises(AirflowFailException, match="A->B"):
        report_task.report("A->B", str(config), **after_preflight({task: "failed"}, DONE_BEFORE))


def test_a_cleared_step_tells_of_itself_in_the_report(config, ledger):
    done = {"skipped": None, "failed": 1, "problems": ["topic a: denied."]}

    with pytest.raises(AirflowFailException, match="topic a: denied"):
        report_task.report("A->B", str(config), **after_preflight({}, DONE_BEFORE, sync_topic_acls=done))


def test_a_report_adds_up_all_attempts_of_its_dag_run_and_no_other(config, ledger):
    trigger = trigger_text("mirror__A__B", "manual 1")
    ids = [note_run(ledger, trigger, 4, state="failed"), note_run(ledger, trigger, 6)]
    note_run(ledger, trigger_text("mirror__A__B", "manual 2"), 100)
    done = report_task.report("A->B", str(config), **context(OUTCOME))
    assert (done["records"], done["topics"]) == (10, 1)
    assert set(done["runs"]) == set(ids)


@pytest.mark.parametrize("outcome", [None, {**OUTCOME, "exit_code": 1, "problems": ["[fenced] orders-0: x"]}])
def test_a_run_that_did_not_copy_everything_fails(config, ledger, outcome):
    with pytest.raises(AirflowFailException, match="A->B"):
        report_task.report("A->B", str(config), **context(outcome))


LEFT_TO_ANOTHER = {**OUTCOME, "exit_code": 1, "problems": ["[run-locked] x"], "skipped": "run r1 is active."}


def test_a_run_that_left_the_copy_to_another_is_skipped_and_says_so(config, ledger, caplog):
    with caplog.at_level("INFO"), pytest.raises(AirflowSkipException, match="run r1 is active"):
        report_task.report("A->B", str(config), **context(LEFT_TO_ANOTHER))

    assert "Flow A->B: run r1 is active." in caplog.text


def test_a_step_that_failed_fails_a_run_that_left_the_copy_to_another(config, ledger):
    with pytest.raises(AirflowFailException, match="sync_topic_acls"):
        report_task.report("A->B", str(config), **context(LEFT_TO_ANOTHER, sync_topic_acls=None))


def test_the_report_tells_what_was_done_beside_the_copy_and_what_was_skipped(config, ledger, caplog):
    done = {"skipped": None, "failed": 0, "problems": [], "changed": 2, "unchanged": 5}

    with caplog.at_level("INFO"):
        report_task.report("A->B", str(config), **context(OUTCOME, sync_topic_configs=done))

    assert "- sync_topic_configs: 2 changed, 5 unchanged\n" in caplog.text
    assert "- sync_topic_acls: skipped, it is not due\n" in caplog.text


def test_clocks_that_differ_are_told_and_fail_nothing(config, ledger, caplog):
    done = {"skipped": None, "failed": 0, "problems": ["A: 9 s in the future."], "reasons": {"clock-ahead": 1}}

    with caplog.at_level("INFO"):
        report_task.report("A->B", str(config), **context(OUTCOME, heartbeats=done))

    assert "- heartbeats: 1 clock-ahead; note: A: 9 s in the future." in caplog.text


def test_notices_and_conflicts_about_topics_are_told_and_fail_nothing(config, ledger, caplog):
    done = {
        "dry_run": False,
        "created": 2,
        "grown": 1,
        "unchanged": 3,
        "failed": 1,
        "problems": ["topic a: a conflict."],
    }
    done["notices"] = ["B refuses segment.bytes."]

    with caplog.at_level("INFO"):
        report_task.report("A->B", str(config), **context(OUTCOME, sync_topics=done))

    assert (
        "- sync_topics: 2 created, 3 unchanged, 1 with new partitions, 1 failed: topic a: a conflict.; " in caplog.text
    )
    assert "note: B refuses segment.bytes." in caplog.text


def test_a_report_has_no_line_about_topics_that_the_run_did_not_sync(config, ledger, caplog):
    with caplog.at_level("INFO"):
        report_task.report("A->B", str(config), **context(OUTCOME))

    assert "sync_topics" not in caplog.text


def test_groups_are_told_by_their_reasons(config, ledger, caplog):
    reasons = {"group-active-on-target": 1, "in-sync": 3}
    done = {"skipped": None, "failed": 0, "problems": [], "groups": 2, "checkpoints": 4, "reasons": reasons}
    done["notices"] = ["2 records are not of the format."]

    with caplog.at_level("INFO"):
        report_task.report("A->B", str(config), **context(OUTCOME, translate_offsets=done))

    assert "- translate_offsets: 2 groups, 4 checkpoints, 1 group-active-on-target, 3 in-sync" in caplog.text
    assert "in-sync; note: 2 records are not of the format." in caplog.text


@pytest.mark.parametrize(
    ("done", "what"),
    [
        ({"skipped": None, "failed": 1, "problems": ["topic a: denied."], "created": 1}, "1 failed: topic a: denied."),
        (None, "failed, see the log of its task"),
    ],
)
def test_a_step_beside_the_copy_that_did_not_do_everything_fails_the_run(config, ledger, done, what):
    with pytest.raises(AirflowFailException, match=f"sync_topic_acls: .*{what}"):
        report_task.report("A->B", str(config), **context(OUTCOME, sync_topic_acls=done))


def test_preflight_says_which_cluster_cannot_be_reached(config, caplog, monkeypatch):
    monkeypatch.setattr(check, "_CONTACT_SECONDS", 1.0)
    with pytest.raises(BrokerUnreachableError, match="cluster A"):
        check.check_flow("A->B", str(config), TriggerChoices())
    assert "Flow A->B: cannot use cluster A at 127.0.0.1:9." in caplog.text


def test_a_regex_that_is_none_is_refused_before_anything_is_asked(config):
    with pytest.raises(ConfigurationError, match="Java regexes of source topics"):
        check.check_flow("A->B", str(config), TriggerChoices(topics=("orders(",)))


def test_a_flow_that_the_file_lost_since_parsing_is_a_configuration_error(config):
    with pytest.raises(ConfigurationError, match="B->C"):
        check.check_flow("B->C", str(config), TriggerChoices())


def test_a_file_that_is_gone_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigurationError, match="gone"):
        check.check_flow("A->B", str(tmp_path / "gone.properties"), TriggerChoices())
