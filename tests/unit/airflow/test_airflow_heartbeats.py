"""The heartbeat tasks of a flow's DAG, and the DAG of heartbeats alone."""

import logging
from datetime import timedelta
from functools import partial
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.flow.sync_tasks import SKIPPED_KEY
from mirror_lib.airflow.heartbeats import tasks as heartbeat_tasks
from mirror_lib.airflow.heartbeats.dag import build_heartbeat_dag, build_heartbeat_dags, heartbeat_dag_id
from mirror_lib.config.loader import load
from mirror_lib.errors import ClusterError, ConfigurationError
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.heartbeats.flow import EmittedHeartbeat, HeartbeatCheck, HeartbeatEmitter
from mirror_lib.sync.heartbeats.rules import HeartbeatState, UpstreamHeartbeat
from mirror_lib.topology.names import FlowId
from tests.support.flow_files import AWAY, LEDGER, write_flow

NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}
FRESH = UpstreamHeartbeat("A", 1, HeartbeatState.FRESH, "A.heartbeats", 1_000, 0.5)
STALE = UpstreamHeartbeat("A", 1, HeartbeatState.STALE, "A.heartbeats", 400, 0.5, problem="it has not arrived.")
EMPTY = UpstreamHeartbeat("A", 1, HeartbeatState.MISSING, problem="its heartbeats topics are empty.")
ABSENT = UpstreamHeartbeat("A", None, HeartbeatState.MISSING, problem="no heartbeats topic of it was copied.")
BEHIND = UpstreamHeartbeat("Z", 2, HeartbeatState.STALE, "A.Z.heartbeats", 1, 9.0, problem="it is 9 s old.")


@pytest.fixture
def write_config(tmp_path):
    return partial(write_flow, tmp_path, *AWAY, LEDGER)


def emitted(pair, timestamp_ms, error=None):
    return EmittedHeartbeat(FlowId.parse(pair), pair.partition("->")[2], "heartbeats", timestamp_ms, error)


def context(*written):
    """The task instance of a run that emitted these."""
    value = {"emitted": [each.to_dict() for each in written], "problems": []} if written else None
    pushed = {}
    instance = SimpleNamespace(
        xcom_pull=lambda task_ids, key="return_value": value if task_ids == "emit_heartbeats" else None,
        xcom_push=lambda key, value: pushed.update({key: value}),
        pushed=pushed,
    )
    return {"ti": instance}


def emit_heartbeats(path, *, attempt=1, skipped=(), **choices):
    """The task, after a preflight that had Airflow skip these."""
    pushed = {("preflight", SKIPPED_KEY): list(skipped)}
    instance = SimpleNamespace(try_number=attempt, xcom_pull=lambda task_ids, key: pushed.get((task_ids, key)))
    return heartbeat_tasks.emit_heartbeats("A->B", str(path), {**NO_CHOICE, **choices}, ti=instance)


@pytest.fixture
def found(monkeypatch):
    """Lets the target hold what a test says; gives what the check was asked."""
    asked = {}

    def hold(*upstreams):
        def check(flow, **arguments):
            asked.update(arguments)
            return HeartbeatCheck(flow.flow, 60, upstreams)

        monkeypatch.setattr(heartbeat_tasks, "check_flow_heartbeats", check)
        return asked

    return hold


@pytest.mark.integration
def test_what_cannot_be_written_is_told_and_fails_nothing(write_config, caplog, monkeypatch):
    monkeypatch.setattr(
        heartbeat_tasks,
        "write_heartbeats",
        lambda pairs, ledger: HeartbeatEmitter(pairs, ledger, timeout_seconds=1).emit(),
    )

    done = emit_heartbeats(write_config())

    assert [problem.partition(":")[0] for problem in done["problems"]] == ["B->A", "A->B"]
    assert "Heartbeat of B->A: cluster A" in caplog.text
    with pytest.raises(AirflowFailException, match="B->A"):
        heartbeat_tasks.emit_all_heartbeats(str(write_config()))


@pytest.fixture
def asked(monkeypatch):
    """Pairs whose heartbeats were written, a list for each time."""
    found = []

    def write(pairs, ledger, error=None):
        found.append(sorted(str(pair.flow) for pair in pairs))
        return tuple(EmittedHeartbeat(pair.flow, pair.flow.target, "heartbeats", 1, error) for pair in pairs)

    monkeypatch.setattr(heartbeat_tasks, "write_heartbeats", write)
    return found


def test_heartbeats_are_emitted_at_their_interval_whichever_task_asks_unless_somebody_clears_it(write_config, asked):
    path = write_config("emit.heartbeats.interval.seconds = 3600", "B->A.emit.heartbeats.interval.seconds = 0")

    heartbeat_tasks.emit_all_heartbeats(str(path))
    done = emit_heartbeats(path)

    assert asked == [["A->B", "B->A"], ["B->A"]]
    assert [each["pair"] for each in done["emitted"]] == ["B->A"]
    # It ran before; preflight had Airflow skip it.
    for cleared in ({"attempt": 2}, {"skipped": ["emit_heartbeats"]}):
        emit_heartbeats(path, **cleared)
        assert asked.pop() == ["A->B", "B->A"], cleared


def test_a_heartbeat_that_could_not_be_written_is_due_at_once(write_config, asked, monkeypatch):
    lost = partial(heartbeat_tasks.write_heartbeats, error=ClusterError("no broker responds."))
    monkeypatch.setattr(heartbeat_tasks, "write_heartbeats", lost)
    path = str(write_config("emit.heartbeats.interval.seconds = 3600"))

    emit_heartbeats(path)
    emit_heartbeats(path)

    assert asked == [["A->B", "B->A"]] * 2


def test_a_dry_run_and_switched_off_heartbeats_are_skipped_visibly(write_config):
    off = str(write_config("emit.heartbeats.enabled = false"))
    with pytest.raises(AirflowSkipException, match="is false"):
        emit_heartbeats(off)
    with pytest.raises(AirflowSkipException, match="dry run"):
        emit_heartbeats(off, dry_run=True)


@pytest.fixture
def check(write_config, found):
    """Runs the task that checks, after a run that wrote these; the target has what a test says."""

    def check(*upstreams, written=(), lines=(), **choices):
        asked, run = found(*upstreams), context(*written)
        try:
            done = heartbeat_tasks.heartbeats("A->B", str(write_config(*lines)), {**NO_CHOICE, **choices}, **run)
        finally:
            check.pushed = run["ti"].pushed
        return done["upstreams"][0]["state"], asked["written_ms"]

    return check


def test_the_check_asks_for_the_heartbeat_that_this_run_wrote_into_its_source(check):
    assert check(FRESH, written=(emitted("B->A", 900), emitted("A->B", 950))) == ("fresh", 900)
    # A copy that began at the end of the topic is no failure.
    assert check(EMPTY, written=(emitted("B->A", 900),)) == ("missing", 900)


def test_a_heartbeat_of_this_run_that_has_not_arrived_fails_the_run(check):
    with pytest.raises(AirflowFailException, match="flow A->B: A: it has not arrived"):
        check(STALE, written=(emitted("B->A", 900),))

    told = {"skipped": None, "failed": 1, "problems": ["A: it has not arrived."], "reasons": {"stale": 1}}
    assert check.pushed == {STEP_KEY: told}


@pytest.mark.parametrize(
    "written", [(), (emitted("B->A", 900, ConfigurationError("refused.")),), (emitted("A->B", 9),)]
)
def test_old_heartbeats_are_a_warning_where_this_run_wrote_none(check, caplog, written):
    assert check(STALE, written=written) == ("stale", None)
    assert "A: stale, 1 hop, age 0.5 s: it has not arrived." in caplog.text


def test_clusters_behind_the_source_are_a_warning(check, caplog):
    with caplog.at_level(logging.INFO):
        check(FRESH, BEHIND, written=(emitted("B->A", 900),))

    told = [record for record in caplog.records if record.name == heartbeat_tasks.__name__]
    assert [record.levelname for record in told] == ["INFO", "WARNING"]
    assert "upstream cluster Z: stale, 2 hops" in told[1].getMessage()


@pytest.mark.parametrize(
    ("lines", "choice", "why"),
    [
        ((), {}, "no heartbeats are written to cluster A"),
        (("heartbeats.replication.enabled = false", "A->B.topics = orders"), {}, "copies no heartbeats"),
        ((), {"topics": ["orders"]}, "copies no heartbeats"),
        ((), {"dry_run": True}, "copies no heartbeats"),
    ],
)
def test_a_run_whose_heartbeats_nobody_writes_or_copies_does_not_check_them(check, lines, choice, why):
    with pytest.raises(AirflowSkipException, match=why):
        check(ABSENT, lines=lines, **choice)


def test_each_check_is_kept_for_every_cluster_upstream_and_forgotten_once_nobody_writes_heartbeats(check, tmp_path):
    check(STALE, UpstreamHeartbeat("C", 2, HeartbeatState.FRESH, newest_ms=1_700_000_000_000))

    with Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        assert {row.pair: row.verdict for row in ledger.observations.heartbeats()} == {"A->B": "stale", "C->B": "fresh"}
        (step,) = ledger.observations.steps("A->B")
        assert (step.step, step.differences) == ("heartbeats", 1)
        with pytest.raises(AirflowSkipException):
            check(ABSENT)
        assert ledger.observations.heartbeats() == ()


@pytest.mark.parametrize(("seconds", "interval"), [(1, 60), (60, 60), (300, 300)])
def test_heartbeats_alone_have_their_own_interval_of_a_minute_or_more(write_config, seconds, interval):
    path = write_config(f"emit.heartbeats.interval.seconds = {seconds}")

    dag = build_heartbeat_dag(load(path), path)

    assert dag.schedule == timedelta(seconds=interval)
    assert (dag.catchup, dag.max_active_runs, list(dag.task_ids)) == (False, 1, ["emit_all_heartbeats"])


def test_there_is_one_dag_for_a_file_and_none_where_no_pair_emits(write_config, tmp_path):
    path = write_config()
    assert list(build_heartbeat_dags([path])) == ["mirror_heartbeats__mirror"]
    assert heartbeat_dag_id(path) == "mirror_heartbeats__mirror"
    assert build_heartbeat_dags([path], only="mirror__A__B") == {}
    # A file that cannot be used stops no other.
    assert list(build_heartbeat_dags([tmp_path / "gone.properties", path])) == ["mirror_heartbeats__mirror"]
    assert build_heartbeat_dags([write_config("emit.heartbeats.enabled = false")]) == {}
