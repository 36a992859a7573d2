"""`mirror transform preflight` without clusters: its options, and what the settings alone tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.flow_files import write_flow
from tests.support.terminal import Terminal

_LINES = ("A.bootstrap.servers = 127.0.0.1:1", "B.bootstrap.servers = 127.0.0.1:1", "A->B.topics = orders")


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    return Terminal(tmp_path, *_LINES)


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
