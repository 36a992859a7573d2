"""`mirror verify` before it comes to any cluster."""

from __future__ import annotations

from tests.support.terminal import Terminal


def test_a_mode_or_flow_that_does_not_exist_is_wrong_usage(terminal: Terminal) -> None:
    code, found = terminal.json("verify", "--mode", "some")

    assert code == 2
    assert "full, sample, recent" in found["error"]["action"]
    assert terminal.say("verify", "--flow", "A->C")[0] == 2
