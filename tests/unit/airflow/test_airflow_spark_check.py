"""What the DAG's first task says of a Spark cluster before anything is submitted."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from mirror_lib.airflow.flow import check
from mirror_lib.airflow.flow.form import TriggerChoices
from mirror_lib.config.loader import load_flow

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
tasks.max = 8
mirror.spark.connection = spark_of_this_test
"""


def _told(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, master: str, tasks_max: int | None
) -> list[str]:
    path = folder / "mirror.properties"
    path.write_text(_FILE)
    (folder / "spark-defaults.conf").write_text("spark.cores.max 4\nspark.ssl.rpc.enabled true\n")
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
