"""`mirror acls required`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A.sasl.jaas.config = org.x.PlainLoginModule required username="reader" password="hush";
A->B.enabled = true
A->B.topics = orders
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    return path


def _run(file: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, ["acls", "required", "--config", str(file), "--flow", "A->B", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def _commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.splitlines() if line.startswith("kafka-acls.sh")]


def test_a_table_for_each_cluster_tells_task_right_and_reason(file: Path) -> None:
    shown = _run(file)

    assert "cluster A (source)" in shown
    assert "cluster B (target)" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["copy", "WRITE", "topic", "A.orders", "produce", "the", "records", "yes"] in rows
    assert "hush" not in shown


def test_commands_grant_the_principal_that_is_given(file: Path) -> None:
    commands = _commands(_run(file, "--format", "kafka-acls", "--principal", "User:mirror"))

    assert {words[words.index("--allow-principal") + 1] for words in commands} == {"User:mirror"}
    assert {words[words.index("--bootstrap-server") + 1] for words in commands} == {"a:9092", "b:9092"}


def test_without_a_principal_the_file_tells_who_logs_in(file: Path) -> None:
    commands = _commands(_run(file, "--format", "kafka-acls"))

    assert {
        (words[words.index("--bootstrap-server") + 1], words[words.index("--allow-principal") + 1])
        for words in commands
    } == {("a:9092", "User:reader"), ("b:9092", "User:mirror")}


def test_commands_are_for_what_runs_by_itself_until_a_task_is_named(file: Path) -> None:
    def alters_source(*arguments: str) -> bool:
        commands = _commands(_run(file, "--format", "kafka-acls", *arguments))
        return any(words[-3:] == ["--operation", "Alter", "--cluster"] and "a:9092" in words for words in commands)

    # Forbidding writers to write is a cutover's affair.
    assert not alters_source()
    assert alters_source("--task", "cutover")


def test_json_has_the_rights_of_the_tasks_that_are_asked_for(file: Path) -> None:
    for arguments in (["--json"], ["--format", "json"]):
        data = json.loads(_run(file, "--task", "sync-topic-acls", *arguments))

        assert [(each["cluster"], each["operation"], each["resource"]) for each in data["required"]] == [
            ("A", "DESCRIBE", "cluster"),
            ("B", "ALTER", "cluster"),
        ]
        assert len(data["commands"]) == 2
