"""What runs leave for those who watch, and that this is no part of them."""

from types import SimpleNamespace

import pytest

from mirror_lib.airflow.compatibility import AirflowSkipException
from mirror_lib.airflow.flow import sync_tasks
from mirror_lib.airflow.flow.observe_task import observe
from mirror_lib.airflow.heartbeats import tasks as heartbeat_tasks
from mirror_lib.errors import BrokerUnreachableError
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.heartbeats.flow import HeartbeatCheck
from mirror_lib.sync.heartbeats.rules import HeartbeatState, UpstreamHeartbeat
from mirror_lib.topology.names import FlowId
from tests.support.flow_files import AWAY, LEDGER, write_flow


@pytest.fixture
def config(tmp_path):
    return write_flow(tmp_path, *AWAY, LEDGER, "sync.topic.configs.enabled = false")


def steps(config):
    with Ledger.open(f"sqlite:///{config.parent / 'ledger.sqlite3'}") as ledger:
        return ledger.observations.steps("A->B")


def sync_configs(config, **choices):
    params = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False, **choices}
    instance = SimpleNamespace(try_number=1, xcom_push=lambda **_: None, xcom_pull=lambda **_: None)
    dag_run = SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1")
    sync_tasks.sync_topic_configs("A->B", str(config), params, dag_run=dag_run, ti=instance)


def test_a_cluster_that_is_away_leaves_what_was_known(config):
    with pytest.raises(BrokerUnreachableError):
        observe("A->B", str(config), dag_run=SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1"))

    with Ledger.open(f"sqlite:///{config.parent / 'ledger.sqlite3'}") as ledger:
        assert ledger.pages.newest_observations(["A->B"]) == {}


def test_how_a_step_ended_is_kept_under_the_name_of_its_task_unless_it_was_for_some_topics(config):
    with pytest.raises(AirflowSkipException):
        sync_configs(config, topics=["orders"])
    assert steps(config) == ()

    with pytest.raises(AirflowSkipException):
        sync_configs(config)

    (kept,) = steps(config)
    assert (kept.step, kept.skipped) == ("sync_topic_configs", "sync.topic.configs.enabled is false")


def check_heartbeats(config, monkeypatch, *upstreams):
    checked = HeartbeatCheck(FlowId("A", "B"), 900.0, upstreams)
    monkeypatch.setattr(heartbeat_tasks, "check_flow_heartbeats", lambda *_, **__: checked)
    params = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}
    instance = SimpleNamespace(xcom_push=lambda **_: None, xcom_pull=lambda **_: None)
    heartbeat_tasks.heartbeats("A->B", str(config), params, ti=instance)


def kept_heartbeats(config):
    with Ledger.open(f"sqlite:///{config.parent / 'ledger.sqlite3'}") as ledger:
        return {row.pair: row.verdict for row in ledger.observations.heartbeats("A->B")}


def test_heartbeats_are_kept_for_every_cluster_upstream(config, monkeypatch):
    upstreams = (
        UpstreamHeartbeat("A", 1, HeartbeatState.STALE, newest_ms=1_700_000_000_000),
        UpstreamHeartbeat("C", 2, HeartbeatState.FRESH, newest_ms=1_700_000_000_000),
    )

    check_heartbeats(config, monkeypatch, *upstreams)

    assert kept_heartbeats(config) == {"A->B": "stale", "C->B": "fresh"}
    (step,) = steps(config)
    assert (step.step, step.differences) == ("heartbeats", 1)


def test_where_nobody_writes_heartbeats_any_more_none_are_missed(config, monkeypatch):
    check_heartbeats(config, monkeypatch, UpstreamHeartbeat("A", 1, HeartbeatState.FRESH, newest_ms=1_700_000_000_000))

    with pytest.raises(AirflowSkipException, match="no heartbeats are written"):
        check_heartbeats(config, monkeypatch, UpstreamHeartbeat("A", None, HeartbeatState.MISSING))

    assert kept_heartbeats(config) == {}
