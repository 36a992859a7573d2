from importlib import import_module
from pathlib import Path

import pytest
from airflow.utils.types import DagRunType

from mirror_lib.airflow.dags import kinds, mirror_dags
from mirror_lib.airflow.files.flow_dags import build_flow_dags, config_files
from mirror_lib.errors import ConfigurationError
from tests.support.flow_files import write_flow

_POOL = "A->B.mirror.airflow.pool = kafka"


@pytest.fixture
def config(tmp_path):
    return write_flow(tmp_path, _POOL)


def test_one_call_makes_every_kind_of_dag(config):
    found = mirror_dags(config)

    assert set(found) == {
        "mirror__A__B",
        "mirror_verify__A__B",
        "mirror_backfill__A__B",
        "mirror_cutover__A__B",
        "mirror_heartbeats__mirror",
    }
    assert all(dag.dag_id == dag_id for dag_id, dag in found.items())


def test_kinds_can_be_chosen_and_one_that_is_not_known_is_refused(config):
    assert set(mirror_dags(config, only=["flows", "verifications"])) == {"mirror__A__B", "mirror_verify__A__B"}

    with pytest.raises(ConfigurationError, match="verifcations") as caught:
        mirror_dags(config, only=["verifcations"])
    assert ", ".join(kinds()) in caught.value.action


def test_the_file_may_come_from_the_environment(config, monkeypatch):
    monkeypatch.setenv("MIRROR_CONFIG", str(config))
    assert "mirror__A__B" in mirror_dags()

    monkeypatch.delenv("MIRROR_CONFIG")
    with pytest.raises(ConfigurationError, match="no configuration file is set"):
        mirror_dags()


def test_given_copies_of_earlier_versions_dag_files_then_their_builders_are_there(config):
    for name in ("backfill", "verify", "cutover", "after_disaster"):
        builder = getattr(import_module(f"mirror_lib.airflow.{name}"), f"build_{name}_dags")
        assert set(builder([config])) <= mirror_dags(config).keys()


def test_only_tasks_that_submit_spark_jobs_take_slots_of_the_flows_pool(config):
    pools = {
        f"{dag_id}.{task.task_id}": task.pool
        for dag_id, dag in mirror_dags(config).items()
        for task in dag.tasks
        if task.pool != "default_pool"
    }

    assert pools == {
        "mirror__A__B.replicate": "kafka",
        "mirror_verify__A__B.verify": "kafka",
        "mirror_backfill__A__B.copy": "kafka",
        "mirror_cutover__A__B.carry_out": "kafka",
    }


def test_no_task_that_fails_for_its_configuration_is_tried_again(config):
    """Heartbeats alone come again by themselves."""
    for dag_id, dag in mirror_dags(config).items():
        for task in dag.tasks:
            known = type(task.retry_policy).__name__ == "ErrorClassRetryPolicy"
            assert known or not task.retries, f"{dag_id}.{task.task_id}"


def test_no_scheduled_dag_takes_airflows_backfills(config):
    """They would be many runs of the same work, ten at a time by default: `max_active_runs` does not count them."""
    write_flow(config.parent, "mirror.schedule = 5m", "mirror.verify.schedule = @daily", "mirror.audit.schedule = 1h")

    scheduled = {dag_id: dag for dag_id, dag in mirror_dags(config).items() if dag.schedule is not None}

    assert set(scheduled) == {f"mirror{kind}__A__B" for kind in ("", "_verify", "_audit")} | {
        "mirror_heartbeats__mirror"
    }
    for dag in scheduled.values():
        assert {kind.value for kind in DagRunType} - set(dag.allowed_run_types) == {"backfill"}


def test_the_variable_names_files_and_without_it_the_local_clusters_file_comes_before_the_example(tmp_path):
    assert config_files({"MIRROR_CONFIG": "/a:/b"}, Path("/p")) == [Path("/a"), Path("/b")]
    assert config_files({}, tmp_path) == [tmp_path / "examples" / "mirror.properties"]
    local = tmp_path / ".mirror" / "mirror.properties"
    local.parent.mkdir()
    local.touch()
    assert config_files({}, tmp_path) == [local]


def test_every_enabled_flow_of_every_file_has_a_dag_and_a_worker_gets_the_one_that_it_wants(tmp_path):
    paths = [
        write_flow(tmp_path, name="ab.properties"),
        write_flow(tmp_path, source="B", target="C", name="bc.properties"),
    ]

    assert set(build_flow_dags(paths)) == {"mirror__A__B", "mirror__B__C"}
    assert set(build_flow_dags(paths, only="mirror__B__C")) == {"mirror__B__C"}
