"""`mirror transform preflight` without clusters: its options, and what the settings alone tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app

_FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
A->B.topics = orders
"""
_URL = "A->B.mirror.transform.registry.{}.url = http://127.0.0.1:1\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    return path


def document(file: Path, *words: str) -> tuple[int, dict[str, Any]]:
    given = ["transform", "preflight", "--config", str(file), "--flow", "A->B", "--json", *words]
    result = CliRunner().invoke(app, given)
    return result.exit_code, json.loads(result.output)


@pytest.mark.parametrize("there", [(), ("source",), ("target",)])
def test_given_a_registry_that_is_not_set_then_its_key_is_told_before_any_cluster_is_asked(
    file: Path, there: tuple[str, ...]
) -> None:
    file.write_text(_FILE + "".join(map(_URL.format, there)))

    code, found = document(file)

    assert (code, found["error"]["reason"], found["error"]["flow"]) == (2, "configuration", "A->B")
    for side in ("source", "target"):
        assert (f"mirror.transform.registry.{side}.url" in found["error"]["action"]) is (side not in there)


@pytest.mark.parametrize("records", ["0", "-1", "many", "100001"])
def test_given_a_number_of_records_that_is_none_then_the_usage_is_wrong(file: Path, records: str) -> None:
    words = ["transform", "preflight", "--config", str(file), "--flow", "A->B", "--records", records]

    assert CliRunner().invoke(app, words).exit_code == 2


def test_given_a_flow_that_is_not_there_then_the_configuration_is_wrong(file: Path) -> None:
    given = ["transform", "preflight", "--config", str(file), "--flow", "A->C", "--json"]

    assert CliRunner().invoke(app, given).exit_code == 2
