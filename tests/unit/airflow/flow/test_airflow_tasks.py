import uuid
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow import check, report_task, sync_tasks
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY, report_text, steps_text
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.errors import BrokerUnreachableError, ConfigurationError
from mirror_lib.past_runs.airflow_runs import trigger_text
from mirror_lib.past_runs.run_totals import TopicTotal
from mirror_lib.sync.intervals import SyncStep
from tests.support.flow_files import AWAY, LEDGER, write_flow
from tests.support.ledger.ledgers import ready_ledger
from tests.support.ledger.rows import partition_run

OUTCOME = {"exit_code": 0, "dry_run": False, "problems": [], "failed": 0, "planned": [], "run_id": "r"}
NOTHING_TO_DO = {"skipped": "it is not due", "failed": 0, "problems": []}


@pytest.fixture
def config(tmp_path):
    return write_flow(tmp_path, *AWAY, LEDGER)


@pytest.fixture
def ledger(tmp_path):
    with ready_ledger(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as ledger:
        yield ledger


def note_run(ledger, trigger, records, state="done"):
    run_id = str(uuid.uuid4())
    ledger.start_run(run_id=run_id, flow="A->B", trigger=trigger)
    ledger.save_partition_runs([partition_run(run_id, records=records, state=state)])
    return run_id


def run_with(pull, get_task_states=lambda **_: {}):
    """What the report task is given of a run."""
    return {
        "ti": SimpleNamespace(xcom_pull=pull, get_task_states=get_task_states),
        "dag_run": SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1"),
    }


def context(outcome, **steps):
    """A run whose tasks beside the copy had nothing to do, or what a test says."""

    def pull(task_ids, key):
        nothing = None if task_ids == "preflight" or key == "return_value" else NOTHING_TO_DO
        return {"replicate": outcome, **steps}.get(task_ids, nothing)

    return run_with(pull)


def after_preflight(states, steps, **outcomes):
    """A run that preflight has done, of which somebody has cleared some tasks."""

    def pull(task_ids, key):
        if task_ids == "preflight":
            return OUTCOME if key == REPORT_KEY else steps
        return outcomes.get(task_ids)

    def get_task_states(dag_id, task_ids, run_ids):
        return {run_ids[0]: {task: states.get(task, "skipped") for task in task_ids}}

    return run_with(pull, get_task_states)


DONE_BEFORE = dict.fromkeys(report_task.REPORTED_STEPS, NOTHING_TO_DO)


def test_the_report_of_a_run_that_preflight_has_done_tells_of_that_and_of_tasks_that_were_cleared(config, ledger):
    done = report_task.report("A->B", str(config), **after_preflight({}, DONE_BEFORE))
    assert done["steps"] == DONE_BEFORE
    assert done["records"] == 0

    cleared = {"skipped": None, "failed": 1, "problems": ["topic a: denied."]}
    with pytest.raises(AirflowFailException, match="topic a: denied"):
        report_task.report("A->B", str(config), **after_preflight({}, DONE_BEFORE, sync_topic_acls=cleared))
    # One that ends without a word.
    for task in ("replicate", *report_task.REPORTED_STEPS):
        with pytest.raises(AirflowFailException, match="A->B"):
            report_task.report("A->B", str(config), **after_preflight({task: "failed"}, DONE_BEFORE))


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


def test_a_run_that_left_the_copy_to_another_is_skipped_and_says_so_unless_a_step_failed(config, ledger, caplog):
    with caplog.at_level("INFO"), pytest.raises(AirflowSkipException, match="run r1 is active"):
        report_task.report("A->B", str(config), **context(LEFT_TO_ANOTHER))
    assert "Flow A->B: run r1 is active." in caplog.text

    with pytest.raises(AirflowFailException, match="sync_topic_acls"):
        report_task.report("A->B", str(config), **context(LEFT_TO_ANOTHER, sync_topic_acls=None))


@pytest.mark.parametrize(
    ("step", "done", "lines"),
    [
        pytest.param(
            "sync_topic_configs",
            {"skipped": None, "changed": 2, "unchanged": 5},
            ("- sync_topic_configs: 2 changed, 5 unchanged\n", "- sync_topic_acls: skipped, it is not due\n"),
            id="what was done and what was skipped",
        ),
        pytest.param(
            "heartbeats",
            {"skipped": None, "problems": ["A: 9 s in the future."], "reasons": {"clock-ahead": 1}},
            ("- heartbeats: 1 clock-ahead; note: A: 9 s in the future.",),
            id="clocks that differ, which fail nothing",
        ),
        pytest.param(
            "sync_topics",
            {
                "dry_run": False,
                "created": 2,
                "grown": 1,
                "unchanged": 3,
                "failed": 1,
                "problems": ["topic a: a conflict."],
                "notices": ["B refuses segment.bytes."],
            },
            (
                "- sync_topics: 2 created, 3 unchanged, 1 grown, 1 failed: topic a: a conflict.; ",
                "note: B refuses segment.bytes.",
            ),
            id="notices and conflicts about topics, which fail nothing",
        ),
        pytest.param(
            "translate_offsets",
            {
                "skipped": None,
                "groups": 2,
                "checkpoints": 4,
                "notices": ["2 records are not of the format."],
                "reasons": {"group-active-on-target": 1, "in-sync": 3},
            },
            (
                "- translate_offsets: 2 groups, 4 checkpoints, 1 group-active-on-target, 3 in-sync",
                "in-sync; note: 2 records are not of the format.",
            ),
            id="groups by their reasons",
        ),
    ],
)
def test_the_report_tells_what_was_done_beside_the_copy(config, ledger, caplog, step, done, lines):
    with caplog.at_level("INFO"):
        report_task.report("A->B", str(config), **context(OUTCOME, **{step: {"failed": 0, "problems": [], **done}}))

    for line in lines:
        assert line in caplog.text
    # Nothing about topics where the run did not sync them.
    assert ("sync_topics" in caplog.text) is (step == "sync_topics")


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
        check.check_flow(JobArguments(config, "A->B"))
    assert "Flow A->B: cannot use cluster A at 127.0.0.1:9." in caplog.text


@pytest.mark.parametrize(
    ("flow", "name", "topics", "what"),
    [
        ("A->B", "mirror.properties", ("orders(",), "Java regexes of source topics"),
        ("B->C", "mirror.properties", (), "B->C"),
        ("A->B", "gone.properties", (), "gone"),
    ],
    ids=["a regex that is none", "a flow that the file lost since parsing", "a file that is gone"],
)
def test_what_is_wrong_is_a_configuration_error_before_any_cluster_is_asked(config, flow, name, topics, what):
    with pytest.raises(ConfigurationError, match=what):
        check.check_flow(JobArguments(config.parent / name, flow, topics=topics))


def test_a_run_that_copied_shows_a_line_for_each_topic():
    total = TopicTotal("orders", "A.orders", 4, 1_200, 34_500, 1.26, 0)
    assert report_text("A->B", OUTCOME, [total]).splitlines() == [
        "Flow A->B copied 1,200 records:",
        "",
        "topic   target topic  partitions  records     size  seconds  failed",
        "------  ------------  ----------  -------  -------  -------  ------",
        "orders      A.orders           4    1,200  34.5 kB      1.3",
    ]


def test_a_run_with_nothing_new_and_a_job_that_never_ended_are_told_apart():
    assert report_text("A->B", OUTCOME, []) == "Flow A->B: no new records to copy."
    assert "copied nothing" in report_text("A->B", None, [])


def test_problems_are_listed_and_those_left_out_are_counted():
    outcome = {**OUTCOME, "exit_code": 1, "problems": ["[fenced] a-0: x"], "failed": 3}
    assert report_text("A->B", outcome, []).splitlines()[-2:] == ["- [fenced] a-0: x", "- ... and 2 more"]


def test_a_dry_run_shows_the_plan():
    planned = [{"topic": "t", "target_topic": "A.t", "partitions": 2, "offsets": 1100, "estimated_bytes": 5}]
    text = report_text("A->B", {**OUTCOME, "dry_run": True, "planned": planned}, [])
    assert "nothing was changed" in text
    assert "1,100" in text


def test_what_was_left_out_is_told_though_the_run_succeeded():
    place = "[record-too-large] orders-0, offset 7 (skipped): x"
    outcome = {**OUTCOME, "skipped_records": 1_200, "skipped_ranges": [place]}
    assert report_text("A->B", outcome, []).splitlines()[-2:] == [
        "Skipped by mirror.poison.policy, 1,200 records:",
        "- [record-too-large] orders-0, offset 7 (skipped): x",
    ]


def test_records_that_groups_would_skip_or_read_again_and_denials_left_out_are_told():
    groups = {"skipped": None, "failed": 0, "problems": [], "groups": 2, "duplicates": 3, "skipped_records": 60}
    acls = {"skipped": None, "failed": 0, "problems": [], "skipped_denials": 1, "notices": ["1 denials ..."]}
    assert steps_text({"sync_group_offsets": groups, "sync_topic_acls": acls}).splitlines()[1:] == [
        "- sync_group_offsets: 2 groups, 3 duplicates, 60 skipped records",
        "- sync_topic_acls: 1 skipped denials; note: 1 denials ...",
    ]


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
def syncing(tmp_path):
    return write_flow(tmp_path, *AWAY, LEDGER, "sync.group.offsets.enabled = true")


def run(kind, syncing, instance=None, **choices):
    dag_run = SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1")
    params = {**NO_CHOICE, **choices}
    return TASKS[kind]("A->B", str(syncing), params, dag_run=dag_run, ti=instance or Instance())


def note_done(syncing, *steps):
    with ready_ledger(f"sqlite:///{syncing.parent / 'ledger.sqlite3'}") as ledger:
        for step in steps:
            ledger.note_sync("A->B", step, datetime.now(UTC))


@pytest.mark.parametrize("kind", TASKS)
def test_a_step_that_is_switched_off_or_not_due_is_shown_as_skipped_and_is_done_when_somebody_clears_it(syncing, kind):
    note_done(syncing, *SyncStep)
    with pytest.raises(AirflowSkipException, match=rf"due again at .*{kind}\.interval\.seconds"):
        run(kind, syncing)

    # It goes to work, and so notices that the clusters are away. Airflow counts a task that preflight has seen to as
    # its first try.
    for cleared in (Instance(try_number=2), Instance(skipped=[TASKS[kind].__name__])):
        with pytest.raises(BrokerUnreachableError):
            run(kind, syncing, cleared)

    write_flow(syncing.parent, *AWAY, LEDGER, f"{kind}.enabled = false")
    instance = Instance(try_number=2)
    with pytest.raises(AirflowSkipException, match=rf"{kind}\.enabled is false"):
        run(kind, syncing, instance)
    assert "is false" in instance.pushed[STEP_KEY]["skipped"]


def test_how_a_step_ended_is_kept_under_the_name_of_its_task_unless_it_was_for_some_topics(syncing):
    write_flow(syncing.parent, *AWAY, LEDGER, "sync.topic.configs.enabled = false")
    with ready_ledger(f"sqlite:///{syncing.parent / 'ledger.sqlite3'}") as ledger:
        with pytest.raises(AirflowSkipException):
            run("sync.topic.configs", syncing, topics=["orders"])
        assert ledger.observations.steps("A->B") == ()

        with pytest.raises(AirflowSkipException):
            run("sync.topic.configs", syncing)

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
