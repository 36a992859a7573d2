"""`mirror transform` without clusters: its options, and what the settings alone tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.config.loader import load_flow
from mirror_lib.config.model import PoisonPolicy

_FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
A->B.topics = orders.*, logs
A->B.mirror.transforms = live, dice
A->B.mirror.transform.live.topics = orders.*
A->B.mirror.transform.live.filter = key IS NOT NULL
A->B.mirror.transform.dice.topics = orders-eu
A->B.mirror.transform.dice.filter = rand() < 0.5
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)
    return path


def say(file: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["transform", *words, "--config", str(file), "--flow", "A->B"])
    return result.exit_code, result.output


def document(file: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code, told = say(file, *words, "--json")
    return code, json.loads(told)


def test_the_settings_alone_tell_the_transforms_in_their_order(file: Path) -> None:
    code, found = document(file, "list", "--offline")

    assert code == 0
    assert [(each["transform"], each["topics"], each["what"]) for each in found["transforms"]] == [
        ("live", "orders.*", "filter"),
        ("dice", "orders-eu", "filter"),
    ]
    assert [each["the_same_result_twice"] for each in found["transforms"]] == ["deterministic", "not deterministic"]
    assert "topics" not in found, "no cluster was asked"


def test_a_flow_without_transforms_says_so(file: Path) -> None:
    file.write_text("".join(line + "\n" for line in _FILE.splitlines() if "mirror.transform" not in line))

    code, told = say(file, "list", "--offline")

    assert code == 0
    assert "Flow A->B has no transforms: every topic is copied unchanged." in told


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--topic", "orders", "--records", "0"),
        ("--topic", "orders", "--records", "1001"),
        ("--topic", "orders", "--partition", "-1"),
    ],
)
def test_wrong_usage_ends_with_2(file: Path, words: tuple[str, ...]) -> None:
    assert say(file, "preview", *words)[0] == 2


@pytest.mark.parametrize("place", ["yesterday", "-1", "", "1.5"])
def test_a_place_that_is_none_is_told_before_anybody_is_asked(file: Path, place: str) -> None:
    code, found = document(file, "preview", "--topic", "orders", f"--from={place}")

    assert (code, found["error"]["reason"]) == (2, "configuration")
    assert "earliest, latest, an offset, or a time" in found["error"]["action"]


@pytest.mark.parametrize(("topic", "why"), [("payments", "filtered"), ("__consumer_offsets", "internal")])
def test_a_topic_that_the_flow_does_not_take_is_a_wrong_argument(file: Path, topic: str, why: str) -> None:
    code, found = document(file, "preview", "--topic", topic)

    assert (code, found["error"]["topic"]) == (2, topic)
    assert why in found["error"]["what"]


@pytest.mark.parametrize(
    ("policy", "consequence"),
    [
        (PoisonPolicy.FAIL, "stops before it"),
        (PoisonPolicy.QUARANTINE, "mm2-quarantine.A.internal on B"),
        (PoisonPolicy.SKIP, "stored in the ledger"),
    ],
)
def test_each_policy_says_what_becomes_of_a_record_that_fails(
    file: Path, policy: PoisonPolicy, consequence: str
) -> None:
    from mirror_lib.cli.transform.preview import policy_text

    file.write_text(f"{_FILE}mirror.poison.policy = {policy.value}\n")
    _, flow = load_flow(file, "A->B")

    told = policy_text(flow)

    assert told.startswith(f"mirror.poison.policy={policy.value}: ")
    assert consequence in told
