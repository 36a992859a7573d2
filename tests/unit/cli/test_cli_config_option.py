"""`--config` may be left out where `MIRROR_CONFIG` names one file."""

from __future__ import annotations

import os

import pytest

from tests.support.terminal import Terminal, invoke

_REQUIRED = ["acls", "required", "--flow", "A->B"]


def test_the_file_of_the_variable_is_taken_and_the_option_wins(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_option = invoke(*_REQUIRED, "--config", terminal.file)
    monkeypatch.setenv("MIRROR_CONFIG", str(terminal.file))

    assert by_option[0] == 0
    assert invoke(*_REQUIRED) == by_option
    code, _, told = invoke(*_REQUIRED, "--config", terminal.folder / "other.properties")
    assert code == 2
    assert "other.properties" in told


def test_status_takes_the_ledger_of_that_file(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal.ledger.start_run(run_id="theirs", flow="A->B", trigger="cli")
    monkeypatch.setenv("MIRROR_CONFIG", str(terminal.file))

    assert "theirs" in invoke("status")[1]


@pytest.mark.parametrize("command", [_REQUIRED, ["status"]])
def test_a_variable_with_several_files_is_refused(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("MIRROR_CONFIG", os.pathsep.join([str(terminal.file), "/etc/other.properties"]))
    monkeypatch.setenv("COLUMNS", "400")

    code, _, told = invoke(*command)

    assert code == 2
    assert "is a list of files, which only Airflow takes (MIRROR_CONFIG): name one." in told
