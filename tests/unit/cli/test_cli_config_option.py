"""`--config` may be left out where `MIRROR_CONFIG` names one file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from tests.support.ledger.ledgers import ready_ledger

_REQUIRED = ["acls", "required", "--flow", "A->B"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.properties"
    path.write_text(
        "clusters = A, B\nA.bootstrap.servers = a:9092\nB.bootstrap.servers = b:9092\nA->B.enabled = true\n"
        f"mirror.ledger.url = sqlite:///{tmp_path}/ledger.sqlite3\n"
    )
    return path


def test_the_file_of_the_variable_is_taken_and_the_option_wins(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_option = CliRunner().invoke(app, [*_REQUIRED, "--config", str(file)])
    monkeypatch.setenv("MIRROR_CONFIG", str(file))
    by_variable = CliRunner().invoke(app, _REQUIRED)
    other = CliRunner().invoke(app, [*_REQUIRED, "--config", str(file.parent / "other.properties")])

    assert by_option.exit_code == by_variable.exit_code == 0
    assert by_variable.output == by_option.output
    assert other.exit_code == 2
    assert "other.properties" in other.output


def test_status_takes_the_ledger_of_that_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ready_ledger(f"sqlite:///{file.parent}/ledger.sqlite3") as ledger:
        ledger.start_run(run_id="theirs", flow="A->B", trigger="cli")
    monkeypatch.setenv("MIRROR_CONFIG", str(file))

    assert "theirs" in CliRunner().invoke(app, ["status"]).output


@pytest.mark.parametrize("command", [_REQUIRED, ["status"]])
def test_a_variable_with_several_files_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("MIRROR_CONFIG", os.pathsep.join([str(file), "/etc/other.properties"]))

    refused = CliRunner().invoke(app, command, env={"COLUMNS": "400"})

    assert refused.exit_code == 2
    assert "is a list of files, which only Airflow takes (MIRROR_CONFIG): name one." in refused.output
