"""`mirror gaps` with a ledger and without clusters: what is listed, chosen, stopped and resumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.ledger.rows import GapState
from mirror_lib.topology.names import TopicPartition
from tests.support.ledger.rows import gap
from tests.support.terminal import Terminal

GAP = gap(id="1111-gap", flow="A->B", first_offset=40, next_offset=60, detail="records 40 to 59 were deleted.")


class Gaps(Terminal):
    """Commands about gaps of which the ledger has three of this flow and one of another."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "mirror.run.lease.seconds = 5")
        for row in (
            GAP,
            replace(GAP, id="2222-gap", partition=1),
            replace(GAP, id="3333-gap", topic="payments"),
            replace(GAP, id="4444-gap", flow="A->C"),
        ):
            self.ledger.record_gap(row)

    def say(self, *words: object, answer: str | None = None) -> tuple[int, str, str]:
        return super().say("gaps", *words, answer=answer)

    def states(self) -> dict[str, str]:
        return {gap.id: gap.state for gap in self.ledger.gaps("A->B")}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Gaps]:
    with Gaps(tmp_path) as made:
        yield made


def test_gaps_that_wait_are_listed_and_want_a_person(terminal: Gaps) -> None:
    code, shown, _ = terminal.say("list")

    assert code == 3
    assert "1111-gap" in shown
    assert "orders-0: records 40 to 59 were deleted." in shown
    assert "4444-gap" not in shown


def test_once_all_are_decided_nothing_waits(terminal: Gaps) -> None:
    for each in terminal.ledger.open_gaps("A->B"):
        terminal.ledger.decide_gap(each.id, GapState.ACCEPTED, by="alice", note="test data")

    code, found = terminal.json("list")

    assert code == 0
    assert {(row["decided_by"], row["note"]) for row in found["gaps"]} == {("alice", "test data")}
    assert terminal.json("list", "--open")[1]["gaps"] == []


@pytest.mark.parametrize(
    ("choice", "stopped"),
    [
        (["--topic", "orders"], {"1111-gap", "2222-gap"}),
        (["--topic", "orders", "--partition", "1"], {"2222-gap"}),
        (["--id", "3333"], {"3333-gap"}),
        (["--all"], {"1111-gap", "2222-gap", "3333-gap"}),
    ],
)
def test_the_gaps_that_are_meant_are_stopped_and_only_they(
    terminal: Gaps, choice: list[str], stopped: set[str]
) -> None:
    code, found = terminal.json("stop", *choice, "--yes", "--note", "retired")

    assert (code, found["done"]) == (0, len(stopped))
    assert {gap for gap, state in terminal.states().items() if state == "stopped"} == stopped
    assert {gap.note for gap in terminal.ledger.gaps("A->B") if gap.id in stopped} == {"retired"}
    assert {gap.note for gap in terminal.ledger.gaps("A->C")} == {None}


def test_a_choice_without_gaps_is_named_with_the_gaps_that_are_open(terminal: Gaps) -> None:
    for choice, text in (
        (["--topic", "ordres"], "no gap of topic ordres is open"),
        (["--topic", "orders", "--partition", "7"], "no gap of topic orders, partition 7, is open"),
        (["--id", "9"], "no gap with an id that starts with 9 is open"),
    ):
        code, shown, _ = terminal.say("accept", *choice, "--yes")
        assert (code, f"{text}; 3 other gaps are open." in " ".join(shown.split())) == (0, True), choice


def test_an_unclear_choice_is_wrong_usage(terminal: Gaps) -> None:
    for choice in (
        [],
        ["--partition", "1"],
        ["--all", "--topic", "orders"],
        ["--id", "1111", "--all"],
        ["--id", "1", "--partition", "0"],
    ):
        code, found = terminal.json("stop", *choice, "--yes")
        assert code == 2, choice
        assert "--topic" in found["error"]["action"], choice
        assert set(terminal.states().values()) == {"open"}, choice


def test_whoever_does_not_agree_changes_nothing_and_whoever_agrees_is_kept_in_the_ledger(terminal: Gaps) -> None:
    for answer in ("n\n", ""):
        code, shown, asked = terminal.say("stop", "--all", answer=answer)
        assert code == 1
        assert "orders-0: is no longer replicated" in shown
        assert "Stop for 3 partitions?" in asked
        assert set(terminal.states().values()) == {"open"}

    assert terminal.say("stop", "--id", "1111", answer="y\n")[0] == 0
    (gap,) = [gap for gap in terminal.ledger.gaps("A->B") if gap.state == "stopped"]
    assert "@" in (gap.decided_by or "")


def test_a_partition_is_resumed_from_all_its_stops(terminal: Gaps) -> None:
    terminal.ledger.record_gap(replace(GAP, id="5555-gap", cause="source-truncated", first_offset=1, next_offset=2))
    terminal.json("stop", "--topic", "orders", "--yes")

    code, _ = terminal.json("resume", "--id", "1111", "--yes")

    assert code == 0
    assert terminal.ledger.stopped_partitions("A->B") == {TopicPartition("orders", 1)}


def test_nothing_to_decide_is_no_failure(terminal: Gaps) -> None:
    code, shown, _ = terminal.say("resume", "--all", "--yes")

    assert code == 0
    assert "Nothing was changed" in shown


def test_nothing_is_decided_while_a_run_is_active(terminal: Gaps) -> None:
    with hold_lock(terminal.ledger, flow="A->B", run_id="running", lease_seconds=3):
        code, found = terminal.json("stop", "--all", "--yes")

    assert code == 1
    assert found["error"]["reason"] == "run-locked"
    assert set(terminal.states().values()) == {"open"}
