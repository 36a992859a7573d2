"""Tasks whose Airflow connection means a Spark Connect server: what is started, and with what."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY, ReplicateOperator
from mirror_lib.airflow.spark.connect_driver import ConnectDriver
from mirror_lib.airflow.spark.connection import check_connect_server, connect_address, describe_master
from mirror_lib.airflow.spark.outcome import ReplicationRunError
from mirror_lib.errors import SparkUnreachableError
from mirror_lib.features.demo.ports import free_ports
from tests.support.airflow.stand_in_submit import DONE
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

    assert address is not None
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
        seen: dict[str, Any] = json.loads((self._folder / "seen.json").read_text())
        return seen


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
