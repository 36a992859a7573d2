"""`mirror transform` without clusters: its options, and what the settings alone tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.loader import load_flow
from mirror_lib.features.transforms.cli.preview import policy_text
from tests.support.flow_files import write_flow
from tests.support.terminal import Terminal

_LINES = ("A.bootstrap.servers = 127.0.0.1:1", "B.bootstrap.servers = 127.0.0.1:1", "A->B.topics = orders.*, logs")
_TRANSFORMS = (
    "A->B.mirror.transforms = live, dice",
    "A->B.mirror.transform.live.topics = orders.*",
    "A->B.mirror.transform.live.filter = key IS NOT NULL",
    "A->B.mirror.transform.dice.topics = orders-eu",
    "A->B.mirror.transform.dice.filter = rand() < 0.5",
)


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    return Terminal(tmp_path, *_LINES, *_TRANSFORMS)


def test_the_settings_alone_tell_the_transforms_in_their_order(terminal: Terminal) -> None:
    code, found = terminal.json("transform", "list", "--offline")

    assert code == 0
    assert [(each["transform"], each["topics"], each["what"]) for each in found["transforms"]] == [
        ("live", "orders.*", "filter"),
        ("dice", "orders-eu", "filter"),
    ]
    assert [each["deterministic"] for each in found["transforms"]] == ["deterministic", "not deterministic"]
    assert "topics" not in found, "no cluster was asked"

    write_flow(terminal.folder, *_LINES)
    code, shown, _ = terminal.say("transform", "list", "--offline")
    assert code == 0
    assert "Flow A->B has no transforms: every topic is copied unchanged." in shown


def test_wrong_usage_ends_with_2(terminal: Terminal) -> None:
    topic = ("--topic", "orders")
    for words in ((), (*topic, "--records", "0"), (*topic, "--records", "1001"), (*topic, "--partition", "-1")):
        assert terminal.say("transform", "preview", *words)[0] == 2, words


def test_a_place_that_is_none_is_told_before_anybody_is_asked(terminal: Terminal) -> None:
    for place in ("yesterday", "-1", "", "1.5"):
        code, found = terminal.json("transform", "preview", "--topic", "orders", f"--from={place}")

        assert (code, found["error"]["reason"]) == (2, "configuration"), place
        assert "earliest, latest, an offset, or a time" in found["error"]["action"], place


def test_a_topic_that_the_flow_does_not_take_is_a_wrong_argument(terminal: Terminal) -> None:
    for topic, why in (("payments", "filtered"), ("__consumer_offsets", "internal")):
        code, found = terminal.json("transform", "preview", "--topic", topic)

        assert (code, found["error"]["topic"]) == (2, topic)
        assert why in found["error"]["what"]


def test_each_policy_says_what_becomes_of_a_record_that_fails(tmp_path: Path) -> None:
    for policy, consequence in {
        PoisonPolicy.FAIL: "stops before it",
        PoisonPolicy.QUARANTINE: "mm2-quarantine.A.internal on B",
        PoisonPolicy.SKIP: "stored in the ledger",
    }.items():
        _, flow = load_flow(write_flow(tmp_path, f"mirror.poison.policy = {policy.value}"), "A->B")

        told = policy_text(flow)

        assert told.startswith(f"mirror.poison.policy={policy.value}: ")
        assert consequence in told


@pytest.mark.parametrize("there", [(), ("source",), ("target",)])
def test_given_a_registry_that_is_not_set_then_its_key_is_told_before_any_cluster_is_asked(
    terminal: Terminal, there: tuple[str, ...]
) -> None:
    urls = [f"A->B.mirror.transform.registry.{side}.url = http://127.0.0.1:1" for side in there]
    write_flow(terminal.folder, *_LINES, *urls)

    code, found = terminal.json("transform", "preflight")

    assert (code, found["error"]["reason"], found["error"]["flow"]) == (2, "configuration", "A->B")
    for side in ("source", "target"):
        assert (f"mirror.transform.registry.{side}.url" in found["error"]["action"]) is (side not in there)


def test_given_a_number_of_records_that_is_none_or_an_unknown_flow_then_the_usage_is_wrong(terminal: Terminal) -> None:
    for records in ("0", "-1", "many", "100001"):
        assert terminal.say("transform", "preflight", "--records", records)[0] == 2, records
    assert terminal.say("transform", "preflight", "--flow", "A->C", "--json")[0] == 2
