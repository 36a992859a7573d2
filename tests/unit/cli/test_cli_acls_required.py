"""`mirror acls required`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.support.flow_files import write_flow
from tests.support.terminal import invoke


@pytest.fixture
def file(tmp_path: Path) -> Path:
    login = 'A.sasl.jaas.config = org.x.PlainLoginModule required username="reader" password="hush";'
    return write_flow(tmp_path, login, "A->B.topics = orders")


def _run(file: Path, *arguments: str) -> str:
    code, shown, told = invoke("acls", "required", "--config", file, "--flow", "A->B", *arguments)
    assert code == 0, told
    return shown


def _commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.splitlines() if line.startswith("kafka-acls.sh")]


def test_a_table_for_each_cluster_tells_task_right_and_reason(file: Path) -> None:
    shown = _run(file)

    assert "cluster A (source)" in shown
    assert "cluster B (target)" in shown
    rows = [line.split() for line in shown.splitlines()]
    assert ["copy", "WRITE", "topic", "A.orders", "produce", "the", "records", "yes"] in rows
    assert "hush" not in shown


def test_commands_grant_the_principal_that_is_given_or_the_one_of_the_file(file: Path) -> None:
    def granted(*arguments: str) -> set[tuple[str, str]]:
        return {
            (words[words.index("--bootstrap-server") + 1], words[words.index("--allow-principal") + 1])
            for words in _commands(_run(file, "--format", "kafka-acls", *arguments))
        }

    assert granted("--principal", "User:other") == {("a:9092", "User:other"), ("b:9092", "User:other")}
    # The file tells who logs in.
    assert granted() == {("a:9092", "User:reader"), ("b:9092", "User:mirror")}


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
