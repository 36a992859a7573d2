import os
import subprocess
import sys
from pathlib import Path

import pytest

from mirror_lib.config.loader import load
from mirror_lib.features.demo.airflow import LocalAirflow, airflow_settings
from mirror_lib.features.demo.demo_config import demo_properties
from mirror_lib.features.page.plugin import HOSTS_VARIABLE
from mirror_lib.topology.names import FlowId


@pytest.fixture
def airflow(tmp_path):
    return LocalAirflow(home=tmp_path / "airflow", project=tmp_path)


def test_an_airflow_without_login_is_reached_from_this_machine_only(tmp_path):
    settings = airflow_settings(tmp_path, tmp_path, port=23456)
    assert settings["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "True"
    assert settings["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert settings[HOSTS_VARIABLE].split() == ["127.0.0.1", "localhost"]
    # Tasks call the API server on its own port.
    assert settings["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:23456/execution/"
    assert settings["AIRFLOW__API__PORT"] == "23456"


def test_settings_of_another_airflow_are_not_inherited_and_no_proxy_stands_between_the_parts(airflow, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW__SMTP__SMTP_HOST", "mail.example")
    monkeypatch.setenv("NO_PROXY", "intern.example")

    environment = airflow.environment({"MIRROR_CONFIG": "/x"})

    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert "AIRFLOW__SMTP__SMTP_HOST" not in environment
    assert environment["MIRROR_CONFIG"] == "/x"
    assert environment["NO_PROXY"] == "127.0.0.1,localhost,intern.example"
    # Stopping what does not run is no error.
    assert airflow.stop() is False


def test_airflows_parts_serve_no_logs_to_other_machines(airflow, tmp_path):
    """Their servers listen on all interfaces; `airflow standalone` finds its parts by PATH."""
    airflow._write_programs()
    first = Path(airflow.environment({})["PATH"].split(os.pathsep)[0])
    real = Path(sys.executable).with_name("airflow")
    text = (first / "airflow").read_text()
    assert str(real) in text
    assert os.access(first / "airflow", os.X_OK)
    (tmp_path / "program").write_text(text.replace(str(real), "echo"))

    for asked, run in {
        "scheduler": "scheduler --skip-serve-logs",
        "triggerer": "triggerer --skip-serve-logs",
        "api-server": "api-server",
        "dag-processor": "dag-processor",
        "db migrate": "db migrate",
    }.items():
        said = subprocess.run(["sh", tmp_path / "program", *asked.split()], capture_output=True, text=True, check=True)
        assert said.stdout.strip() == run


def test_the_demos_file_is_valid_and_enables_one_flow(tmp_path):
    path = tmp_path / "demo.properties"
    path.write_text(demo_properties(("A", "h:1"), ("B", "h:2"), topics=["orders", "clicks"], tasks=2))
    config = load(path)
    assert [flow.flow for flow in config.enabled_flows] == [FlowId("A", "B")]
    flow = config.flow("A->B")
    assert flow.topics == ("orders", "clicks")
    assert flow.isolation_level == "read_committed"
    assert flow.schedule is None
    assert flow.offset_storage_replication_factor == 1
