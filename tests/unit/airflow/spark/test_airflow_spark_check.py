"""What the DAG's first task says of a Spark cluster before anything is submitted."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from mirror_lib.airflow.flow import check
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.airflow.flow.replicate_operator import ReplicateOperator
from mirror_lib.airflow.spark.connection import spark_master
from mirror_lib.config.loader import load_flow
from mirror_lib.errors import ConfigurationError

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
tasks.max = 8
mirror.spark.connection = spark_of_this_test
"""


def _told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    master: str,
    tasks_max: int | None,
    defaults: str = "",
) -> list[str]:
    path = folder / "mirror.properties"
    path.write_text(_FILE)
    (folder / "spark-defaults.conf").write_text(f"spark.cores.max 4\nspark.ssl.rpc.enabled true\n{defaults}")
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OF_THIS_TEST", master)
    _, flow = load_flow(path, "A->B")
    choices = TriggerChoices.from_params(
        {"topics": None, "tasks": tasks_max, "max_seconds": None, "dry_run": False, "gaps": "ask"}
    )
    with caplog.at_level(logging.WARNING, logger="mirror_lib"):
        check._check_spark(flow, choices)
    return [record.getMessage() for record in caplog.records if record.name.startswith("mirror_lib")]


_STANDALONE = '{"conn_type": "spark", "host": "spark://master", "port": 7077}'


def test_bins_that_will_wait_for_cores_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (told,) = _told(tmp_path, monkeypatch, caplog, _STANDALONE, None)

    assert "run 4 tasks in parallel, but this flow has up to 8" in told


def test_the_choice_of_the_trigger_form_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert _told(tmp_path, monkeypatch, caplog, _STANDALONE, 4) == []


def test_a_local_master_needs_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert _told(tmp_path, monkeypatch, caplog, '{"conn_type": "spark", "host": "local[2]"}', None) == []


def test_a_connection_from_a_uri_means_the_master_that_the_provider_submits_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The notes about cores depend on the kind of the master.
    (told,) = _told(tmp_path, monkeypatch, caplog, "spark://master:7077", None)

    assert "run 4 tasks in parallel" in told
    assert spark_master("spark_of_this_test") == "spark://master:7077"
    assert SparkSubmitHook(conn_id="spark_of_this_test")._connection["master"] == "spark://master:7077"


@pytest.mark.parametrize(
    ("connection", "what"),
    [
        # Without a host the provider submits to `spark://`, and spark-submit ends with 0.
        ({"conn_type": "spark"}, "has no host"),
        ({"conn_type": "spark", "host": "master"}, "the master master, and Spark"),
        ({"conn_type": "http", "host": "spark://m:7077"}, "the master http://spark://m:7077, and Spark"),
        ({"conn_type": "spark", "host": "spark://m:7077", "extra": {"deploy-mode": "cluster"}}, "client mode only"),
        ({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "cluster"}}, "client mode only"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "Client"}}, "deploy-mode Client"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"spark-binary": "/opt/spark/bin/spark-submit"}}, "binary"),
        ({"conn_type": "spark", "host": "yarn", "extra": {"spark-home": "/opt/spark"}}, "spark-home"),
        ({"conn_type": "spark", "host": "k8s://https://h", "port": 443}, "apache-airflow-providers-cncf-kubernetes"),
    ],
)
def test_a_connection_with_which_nothing_can_be_submitted_is_refused_before_the_job(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    connection: dict[str, Any],
    what: str,
) -> None:
    with pytest.raises(ConfigurationError, match=f"connection spark_of_this_test .*{what}"):
        _told(tmp_path, monkeypatch, caplog, json.dumps(connection), 4)


def test_a_deploy_mode_of_sparks_defaults_counts_unless_the_connection_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    more = "spark.submit.deployMode cluster\n"
    with pytest.raises(ConfigurationError, match=r"spark-defaults.conf has spark.submit.deployMode cluster"):
        _told(tmp_path, monkeypatch, caplog, _STANDALONE, 4, more)
    client = '{"conn_type": "spark", "host": "spark://master", "port": 7077, "extra": {"deploy-mode": "client"}}'

    assert _told(tmp_path, monkeypatch, caplog, client, 4, more) == []


def test_a_driver_in_the_cluster_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    yarn = '{"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}'

    assert any(
        "its report does not reach this worker" in each for each in _told(tmp_path, monkeypatch, caplog, yarn, 1)
    )


def test_a_task_without_preflight_refuses_the_connection_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_OF_THIS_TEST", '{"conn_type": "spark", "host": "master", "port": null}')
    operator = ReplicateOperator(task_id="replicate", flow="A->B", config_path="/f", conn_id="spark_of_this_test")

    with pytest.raises(ConfigurationError, match="the master master"):
        operator.execute({"params": {}})


def test_given_no_java_when_a_cluster_has_the_executors_then_the_missing_driver_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))

    (told,) = _told(tmp_path, monkeypatch, caplog, _STANDALONE, 4)
    assert "Java does not run" in told
    assert "fails unless spark-env.sh sets JAVA_HOME" in told
    with pytest.raises(ConfigurationError, match="Java does not run"):
        _told(tmp_path, monkeypatch, caplog, '{"conn_type": "spark", "host": "local[2]"}', 4)
