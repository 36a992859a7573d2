"""Tasks whose Airflow connection means a Spark Connect server: what is started, and with what.

What the DAG's first task says of a Spark cluster before anything is submitted.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

from mirror_lib.airflow.flow import check as checks
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY, ReplicateOperator
from mirror_lib.airflow.spark.connect_driver import ConnectDriver
from mirror_lib.airflow.spark.connection import check_connect_server, connect_address, describe_master, spark_master
from mirror_lib.airflow.spark.outcome import ReplicationRunError
from mirror_lib.config.loader import load_flow
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.errors import ConfigurationError, SparkUnreachableError
from mirror_lib.features.demo.ports import free_ports
from tests.support.airflow.stand_in_submit import DONE
from tests.support.flow_files import write_flow
from tests.support.spark.driver_hosts import StandInHost

_CONNECTION = "AIRFLOW_CONN_WARM"
#: Stands for the job: notes what it was given, writes the report it was told to.
_FAKE = """
import json, os, sys
from pathlib import Path
folder = Path(__file__).parents[1]
folder.joinpath("seen.json").write_text(json.dumps({"arguments": sys.argv[1:], "remote": os.environ["SPARK_REMOTE"],
    "log_level": os.environ["MIRROR_LOG_LEVEL"], "folder": os.getcwd()}))
report = json.loads(folder.joinpath("answer.json").read_text())
path = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--report=")][0]
Path(path).write_text(json.dumps(report))
print("a line of the job")
sys.exit(report["exit_code"])
"""


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ({"conn_type": "spark_connect", "host": "h"}, "sc://h:15002"),
        ({"conn_type": "spark_connect", "host": "sc://h", "port": 7}, "sc://h:7"),
        ({"conn_type": "spark", "host": "sc://h:7"}, "sc://h:7"),
        (
            {"conn_type": "spark_connect", "host": "h", "login": "ann", "password": "a/b", "extra": {"use_ssl": True}},
            "sc://h:15002/;user_id=ann;token=a%2Fb;use_ssl=true",
        ),
    ],
)
def test_a_connection_means_a_server(monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], url: str) -> None:
    monkeypatch.setenv(_CONNECTION, json.dumps(connection))

    address = connect_address("warm")

    assert address.url == url
    assert f"session of the Spark Connect server {address} (Airflow connection warm)." in (describe_master("warm"))
    assert "a/b" not in describe_master("warm")


def test_any_other_connection_does_not_and_the_first_task_sees_that_a_server_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(_CONNECTION, raising=False)
    assert connect_address("warm") is None
    check_connect_server("warm")

    monkeypatch.setenv(_CONNECTION, json.dumps({"conn_type": "spark", "host": "spark://m", "port": 7077}))
    assert connect_address("warm") is None
    check_connect_server("warm")

    monkeypatch.setenv(_CONNECTION, json.dumps({"conn_type": "spark", "host": f"sc://127.0.0.1:{free_ports(1)[0]}"}))
    with pytest.raises(SparkUnreachableError):
        check_connect_server("warm")


class Task:
    """The operator with a stand-in for the job."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.pushed: dict[str, Any] = {}
        (folder / "stand_in").mkdir()
        (folder / "stand_in" / "__init__.py").touch()
        (folder / "stand_in" / "job.py").write_text(_FAKE)

    def run(self, **answer: Any) -> dict[str, Any]:
        (self._folder / "answer.json").write_text(json.dumps({**DONE, **answer}))
        operator = ReplicateOperator(task_id="replicate", flow="A->B", config_path="/f", conn_id="warm")
        context = {
            "params": {"topics": None, "tasks": 2, "max_seconds": None, "dry_run": False},
            "dag": SimpleNamespace(dag_id="mirror__A__B"),
            "run_id": "manual 1",
            "ti": SimpleNamespace(xcom_push=lambda key, value: self.pushed.update({key: value})),
        }
        operator.execute(context)
        return json.loads((self._folder / "seen.json").read_text())


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    monkeypatch.setenv(_CONNECTION, json.dumps({"conn_type": "spark_connect", "host": "h", "password": "hush"}))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr("mirror_lib.airflow.spark.operator.job_module", lambda _job: "stand_in.job")
    # A spark-submit would not be found.
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("MIRROR_DRIVER_HOST", raising=False)
    return Task(tmp_path)


@pytest.fixture
def host(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHost]:
    with StandInHost(tmp_path, {}, modules=["stand_in.job"]) as running:
        monkeypatch.setenv("MIRROR_DRIVER_HOST", str(running.socket))
        yield running


def test_the_driver_gets_the_jobs_arguments_and_the_address_by_its_environment_alone(task: Task) -> None:
    seen = task.run()

    assert seen["remote"] == "sc://h:15002/;token=hush"
    assert {"--config=/f", "--flow=A->B", "--tasks=2"} <= set(seen["arguments"])
    assert not any("hush" in word for word in seen["arguments"])
    assert seen["log_level"] == "INFO"
    assert task.pushed[REPORT_KEY]["records"] == 5
    with pytest.raises(ReplicationRunError):
        task.run(exit_code=1)
    assert task.pushed[REPORT_KEY]["exit_code"] == 1


@pytest.mark.parametrize("how", ["gone", "other python"])
def test_without_a_driver_host_that_suits_the_driver_is_a_process_of_its_own(
    task: Task, host: StandInHost, how: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    if how == "gone":
        host.end()
    else:
        link = host.folder / "python"
        link.symlink_to(sys.executable)
        monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", str(link))

    task.run()

    assert task.pushed[REPORT_KEY]["records"] == 5
    assert "The driver runs as a separate process: " in caplog.text
    assert "The driver host runs the driver" not in caplog.text


def test_a_driver_that_has_not_run_yet_can_be_ended() -> None:
    ConnectDriver("m", ()).end()


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
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="mirror_lib"):
            checks._check_spark(flow, JobArguments(path, "A->B", tasks=tasks))
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
