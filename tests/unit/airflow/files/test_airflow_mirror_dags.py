import os

import pytest
from airflow.utils.types import DagRunType

from mirror_lib.airflow import dags as all_dags
from mirror_lib.airflow.dags import KINDS, mirror_dags
from mirror_lib.airflow.files.loaded_files import load_readable
from mirror_lib.errors import ConfigurationError

_CONFIG = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.mirror.airflow.pool = kafka
B->A.enabled = false
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "mirror.properties"
    path.write_text(_CONFIG)
    return path


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


def test_kinds_can_be_chosen(config):
    assert set(mirror_dags(config, only=["flows", "verifications"])) == {"mirror__A__B", "mirror_verify__A__B"}


def test_a_kind_that_is_not_known_is_refused(config):
    with pytest.raises(ConfigurationError, match="verifcations") as caught:
        mirror_dags(config, only=["verifcations"])

    assert ", ".join(KINDS) in caught.value.action


def test_the_file_may_come_from_the_environment(config, monkeypatch):
    monkeypatch.setenv("MIRROR_CONFIG", str(config))

    assert "mirror__A__B" in mirror_dags()


def test_without_any_file_it_says_how_to_name_one(monkeypatch):
    monkeypatch.delenv("MIRROR_CONFIG", raising=False)

    with pytest.raises(ConfigurationError, match="no configuration file is set"):
        mirror_dags()


def test_a_tasks_process_gets_only_its_own_dag(config, monkeypatch):
    class Context:
        dag_id = "mirror_verify__A__B"

    monkeypatch.setattr(all_dags, "get_parsing_context", Context)

    assert set(mirror_dags(config)) == {"mirror_verify__A__B"}


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
    config.write_text(_CONFIG + "A->B.mirror.schedule = 5m\nA->B.mirror.verify.schedule = @daily\n")

    scheduled = {dag_id: dag for dag_id, dag in mirror_dags(config).items() if dag.schedule is not None}

    assert set(scheduled) == {"mirror__A__B", "mirror_verify__A__B", "mirror_heartbeats__mirror"}
    for dag in scheduled.values():
        assert {kind.value for kind in DagRunType} - set(dag.allowed_run_types) == {"backfill"}


def test_a_file_is_read_once_until_it_changes(config):
    first = load_readable(config)
    assert load_readable(config) is first

    config.write_text(_CONFIG + "tasks.max = 7\n")
    os.utime(config, ns=(1, 1))

    assert load_readable(config) is not first
    assert load_readable(config).config.flow("A->B").tasks_max == 7
