"""`mirror config`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.terminal import invoke

_FILE = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A.sasl.jaas.config = org.x.PlainLoginModule required username="me" password="hush";
mirror.ledger.url = postgresql+psycopg://me:hush@host/db
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    return path


def _run(*arguments: object) -> tuple[int, str]:
    return invoke(*arguments)[:2]


def test_check_lists_everything_that_is_wrong(file: Path) -> None:
    assert _run("config", "check", file) == (0, f"{file}: 0 error(s), 0 warning(s)\n")

    file.write_text(_FILE + "topcs = x\ntasks.max = 0\ntopics.blacklist = y\n")
    code, shown = _run("config", "check", file)
    assert code == 2
    assert f"{file}: line 7: error: topcs" in shown
    assert f"{file}: line 8: error: tasks.max must be at least 1, not '0'" in shown
    assert "2 error(s), 1 warning(s)" in shown
    code, document = _run("config", "check", file, "--json")
    data = json.loads(document)
    assert (code, data["exit_code"], data["errors"], data["warnings"]) == (2, 2, 2, 1)
    assert [problem["line"] for problem in data["problems"]] == [7, 8, 9]

    code, document = _run("config", "check", file.parent / "none", "--json")
    assert code == 2
    assert json.loads(document)["error"]["reason"] == "invalid-configuration"


def test_check_finds_an_expression_that_cannot_be_parsed_and_shows_the_place_in_it(file: Path) -> None:
    file.write_text(_FILE + "A->B.mirror.transforms = t\nA->B.mirror.transform.t.filter = upper(value\n")

    code, shown = _run("config", "check", file)

    assert code == 2
    assert f"{file}: line 8: error: A->B.mirror.transform.t.filter: line 1, column 6: " in shown
    assert "    upper(value\n         ^" in shown


def test_show_lists_the_transforms_of_a_flow(file: Path) -> None:
    file.write_text(
        _FILE + "mirror.transforms = t\nmirror.transform.t.topics = a, b\nmirror.transform.t.value = upper(key)\n"
        "A->B.transforms = r\nA->B.transforms.r.type = org.apache.kafka.connect.transforms.RegexRouter\n"
        "A->B.transforms.r.regex = x\nA->B.transforms.r.replacement = y\n"
    )

    _, document = _run("config", "show", file, "--flow", "A->B", "--json")

    data = json.loads(document)
    assert data["transforms"] == [
        {"transform": "r", "topics": "all", "what": "RegexRouter", "determinism": "deterministic"},
        {"transform": "t", "topics": "a, b", "what": "value", "determinism": "deterministic"},
    ]
    rows = {row["key"]: row["line"] for row in data["settings"]}
    assert (rows["mirror.transform.t.value"], rows["transforms.r.regex"]) == (9, 12)


def test_show_masks_secrets_and_names_origins_and_can_leave_out_defaults(file: Path) -> None:
    for options in ((), ("--json",), ("--set",)):
        code, shown = _run("config", "show", file, "--flow", "A->B", *options)
        assert code == 0
        assert "hush" not in shown
        assert "[hidden]" in shown
    _, document = _run("config", "show", file, "--flow", "A->B", "--json")
    rows = {row["key"]: row for row in json.loads(document)["settings"]}
    written = {"value": "true", "origin": "flow A->B", "line": 4, "written_as": "A->B.enabled"}
    assert rows["enabled"] == {"key": "enabled", **written}
    assert rows["tasks.max"]["origin"] == "default"
    _, document = _run("config", "show", file, "--flow", "A->B", "--json", "--set")
    assert all(row["origin"] != "default" for row in json.loads(document)["settings"])


def test_show_of_another_flow_names_the_flows_and_of_none_is_wrong_usage(file: Path) -> None:
    code, _, told = invoke("config", "show", file, "--flow", "A->C")
    assert code == 2
    assert "Its flows are: A->B." in told
    assert _run("config", "show", file)[0] == 2
    assert _run("config", "nothing")[0] == 2


def test_keys_are_listed() -> None:
    _, document = _run("config", "keys", "--json")
    assert {"mirror.schedule", "topics", "clusters", "mirror.transform.<name>.filter"} <= {
        row["name"] for row in json.loads(document)["keys"]
    }
    code, text = _run("config", "keys", "--markdown")
    assert code == 0
    assert "# Configuration" in text
