"""What the DAG's first task says of a Spark cluster before anything is submitted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from mirror_lib.airflow.flow import check as checks
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.airflow.flow.replicate_operator import ReplicateOperator
from mirror_lib.airflow.spark.connection import spark_master
from mirror_lib.config.loader import load_flow
from mirror_lib.errors import ConfigurationError
from tests.support.flow_files import write_flow

_STANDALONE = '{"conn_type": "spark", "host": "spark://master", "port": 7077}'
_LOCAL = '{"conn_type": "spark", "host": "local[2]"}'
Check = Callable[..., list[str]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Check:
    """Checks a connection for a flow with up to eight tasks, and returns what is logged."""
    path = write_flow(tmp_path, "tasks.max = 8", "mirror.spark.connection = spark_of_this_test")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    def check(connection: str, tasks: int | None = None, defaults: str = "") -> list[str]:
        (tmp_path / "spark-defaults.conf").write_text(f"spark.cores.max 4\nspark.ssl.rpc.enabled true\n{defaults}")
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_OF_THIS_TEST", connection)
        _, flow = load_flow(path, "A->B")
        choices = TriggerChoices.from_params(
            {"topics": None, "tasks": tasks, "max_seconds": None, "dry_run": False, "gaps": "ask"}
        )
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="mirror_lib"):
            checks._check_spark(flow, choices)
        return [record.getMessage() for record in caplog.records if record.name.startswith("mirror_lib")]

    return check


def test_tasks_that_will_wait_for_cores_of_a_cluster_are_told_unless_the_trigger_form_has_fewer(check: Check) -> None:
    (told,) = check(_STANDALONE)
    assert "run 4 tasks in parallel, but this flow has up to 8" in told

    assert check(_STANDALONE, 4) == []
    assert check(_LOCAL) == []


def test_a_connection_from_a_uri_means_the_master_that_the_provider_submits_to(check: Check) -> None:
    # The notes about cores depend on the kind of the master.
    (told,) = check("spark://master:7077")

    assert "run 4 tasks in parallel" in told
    assert spark_master("spark_of_this_test") == "spark://master:7077"
    assert SparkSubmitHook(conn_id="spark_of_this_test")._connection["master"] == "spark://master:7077"


@pytest.mark.parametrize(
    ("connection", "what"),
    [
        # Without a host the provider submits to `spark://`, and spark-submit ends with 0.
        ({}, "has no host"),
        ({"host": "master"}, "the master master, and Spark"),
        ({"conn_type": "http", "host": "https://hooks.example/SECRET"}, r"the master http://\.\.\., and Spark"),
        ({"host": "spark://m:7077", "extra": {"deploy-mode": "cluster"}}, "client mode only"),
        ({"host": "local[2]", "extra": {"deploy-mode": "cluster"}}, "client mode only"),
        ({"host": "yarn", "extra": {"deploy-mode": "Client"}}, "deploy-mode Client"),
        ({"host": "yarn", "extra": {"spark-binary": "/opt/spark/bin/spark-submit"}}, "binary"),
        ({"host": "yarn", "extra": {"spark-home": "/opt/spark"}}, "spark-home"),
        ({"host": "k8s://https://h", "port": 443}, "apache-airflow-providers-cncf-kubernetes"),
    ],
)
def test_a_connection_with_which_nothing_can_be_submitted_is_refused_before_the_job(
    check: Check, connection: dict[str, Any], what: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"connection spark_of_this_test .*{what}"):
        check(json.dumps({"conn_type": "spark", **connection}), 4)


def test_a_deploy_mode_of_sparks_defaults_counts_unless_the_connection_has_one(check: Check) -> None:
    more = "spark.submit.deployMode cluster\n"
    with pytest.raises(ConfigurationError, match=r"spark-defaults.conf has spark.submit.deployMode cluster"):
        check(_STANDALONE, 4, more)
    client = '{"conn_type": "spark", "host": "spark://master", "port": 7077, "extra": {"deploy-mode": "client"}}'

    assert check(client, 4, more) == []


def test_a_driver_in_the_cluster_is_told(check: Check) -> None:
    told = check('{"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}', 1)

    assert any("its report does not reach this worker" in each for each in told)


def test_a_task_without_preflight_refuses_the_connection_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OF_THIS_TEST", '{"conn_type": "spark", "host": "master", "port": null}')
    operator = ReplicateOperator(task_id="replicate", flow="A->B", config_path="/f", conn_id="spark_of_this_test")

    with pytest.raises(ConfigurationError, match="the master master"):
        operator.execute({"params": {}})


def test_given_no_java_when_a_cluster_has_the_executors_then_the_missing_driver_is_told(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    (told,) = check(_STANDALONE, 4)
    assert "Java does not run" in told
    assert "fails unless spark-env.sh sets JAVA_HOME" in told
    with pytest.raises(ConfigurationError, match="Java does not run"):
        check(_LOCAL, 4)
