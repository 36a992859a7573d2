"""What a run refuses for reasons in the file is found by the check, and what it takes is not refused there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.first_start import first_starts
from mirror_lib.config.loader import load
from mirror_lib.config.model import Problem, Severity
from mirror_lib.errors import MirrorError
from tests.support.config_files import ConfigFile

PLAIN = "A.security.protocol = SASL_SSL\nA.sasl.mechanism = PLAIN\n"
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

USED = [
    "A.bootstrap.servers = my-listener://h:1",
    "A.bootstrap.servers = ::1:9092",
    "A.bootstrap.servers = [::1]:9092, h_1:9092",
    "A.consumer.auto.offset.reset = latest",
    "A.consumer.auto.offset.reset = none",
    "A.consumer.auto.offset.reset = by_duration:P7D",
    "A.consumer.auto.offset.reset = by_duration:pt1h30m2.5s",
    "A.consumer.request.timeout.ms = 0",
    "topics.blacklist = *",
    "A->B.groups.blacklist = *",
    f'{PLAIN}A.sasl.jaas.config = {MODULE} required username="u" password="p";',
    f'{PLAIN}A.sasl.jaas.config = {MODULE} required username="u" password="p"; /* not closed',
]
REFUSED = [
    ("A.bootstrap.servers = =host:9092", "remove the second ="),
    ("A.bootstrap.servers = <host>:9092", "fill in <host>"),
    ("A.bootstrap.servers = ${X}.y:9092", "fill in ${X}"),
    ("A.bootstrap.servers = {{ brokers }}", "fill in {{ brokers }}"),
    ("A.bootstrap.servers = :9092", "write the host before :9092"),
    ("A.bootstrap.servers = host", "write host:9092"),
    ("A.bootstrap.servers = h:99999", ""),
    ("A.consumer.auto.offset.reset = LATEST", ""),
    ("A.consumer.auto.offset.reset = by_duration:-P1D", ""),
    ("A.consumer.auto.offset.reset = by_duration:P", ""),
    ("A.consumer.auto.offset.reset = by_duration:P999999999D", ""),
    ("A.consumer.request.timeout.ms = soon", ""),
    ("A.metadata.max.age.ms = 5m", ""),
    ("A.security.protocol = SASL_SSL", "set it"),
    (PLAIN, "set it"),
    (f'{PLAIN}A.sasl.jaas.config = {MODULE} required username="u" password="p"', "LoginModule"),
    (f'{PLAIN}A.sasl.jaas.config = {MODULE} required username="u";', "add it"),
    (f'{PLAIN}A.sasl.jaas.config = {MODULE} required username="u" /* password="p";', "LoginModule"),
]


def run_refuses(file: Path) -> bool:
    """What a run makes of the configuration before it looks at a cluster."""
    try:
        (flow,) = load(file).enabled_flows
        first_starts(flow)
        for name in ("data_consumer", "source_admin", "target_admin", "data_producer"):
            Connection.from_settings(getattr(flow.clients, name))
    except MirrorError:
        return True
    return False


def command_errors(file: Path) -> list[dict[str, str]]:
    found = CliRunner().invoke(app, ["config", "check", str(file), "--json"])
    problems: list[dict[str, str]] = json.loads(found.stdout)["problems"]
    return [problem for problem in problems if problem["severity"] == "error"]


def test_what_a_run_takes_passes_the_check(file: ConfigFile, subtests: pytest.Subtests) -> None:
    for text in USED:
        with subtests.test(text):
            path = file.write(f"{text}\n")
            assert command_errors(path) == []
            assert not run_refuses(path)


def test_what_a_run_refuses_fails_the_check_with_its_line(file: ConfigFile, subtests: pytest.Subtests) -> None:
    for text, todo in REFUSED:
        with subtests.test(text):
            path = file.write(f"{text}\n")
            found = command_errors(path)
            assert run_refuses(path)
            assert {problem["line"] for problem in found} <= {5, 6, 7}
            assert found
            assert any(todo in (problem["suggestion"] or "") for problem in found)


def placeholder_warnings(file: ConfigFile, line: str) -> list[Problem]:
    return [problem for problem in file.problems(f"{line}\n") if "placeholder" in problem.message]


def test_placeholders_that_kafka_would_take_as_text_are_doubted_and_not_shown_in_secrets(file: ConfigFile) -> None:
    (told,) = placeholder_warnings(file, "A.client.id = ${CLIENT}")
    assert (told.severity, told.line) == (Severity.WARNING, 5)
    assert "${env:CLIENT}" in (told.suggestion or "")

    (told,) = placeholder_warnings(file, "A.ssl.key.password = hu${sh}")
    assert "sh}" not in f"{told.message} {told.suggestion}"

    assert placeholder_warnings(file, "A->B.topics = (?<name>orders)-[0-9]{1}[A-Z]") == []
