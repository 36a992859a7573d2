"""`mirror cutover` on a ledger of its own: answers, and who acts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.features.cutover.model import CutoverDefinition, Gate
from mirror_lib.features.cutover.states.cutover import Event, State
from mirror_lib.features.cutover.tables.carriers import CarrierRow, Carriers, QuestionRow
from mirror_lib.features.cutover.tables.cutovers import Cutovers
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import lock_name
from tests.support.ledger.cutover_rows import NOON, attempt_row, cutover_row
from tests.support.terminal import Terminal, invoke

Call = Callable[..., tuple[int, str]]
WAVE = CutoverDefinition(name="scope", flow="A->B", topics=("orders",))


@pytest.fixture
def ledger(terminal: Terminal) -> Ledger:
    """With a cutover that waits for the word that the writers are stopped."""
    Cutovers(terminal.ledger).create(cutover_row(WAVE))
    Cutovers(terminal.ledger).save_step(attempt_row(WAVE.name))
    return terminal.ledger


@pytest.fixture
def call(terminal: Terminal) -> Call:
    def call(*arguments: str) -> tuple[int, str]:
        code, shown, told = invoke("cutover", *arguments, "--config", terminal.file)
        return code, shown + told

    return call


def test_one_command_shows_what_each_event_does_in_each_state() -> None:
    code, shown, _ = invoke("cutover", "states", "--json")

    told = json.loads(shown)
    assert (code, told["problems"]) == (0, [])
    assert [row["state"] for row in told["states"]] == [state.value for state in State]
    assert all(set(row) == {"state", *(event.value.replace(" ", "_") for event in Event)} for row in told["states"])


def test_a_ledger_without_cutovers_is_said_to_have_none(call: Call, terminal: Terminal) -> None:
    assert Cutovers(terminal.ledger).find("scope") is None
    assert call("list") == (0, "No cutovers found.\n")


def test_the_status_says_that_nobody_acts_and_what_to_do(call: Call, ledger: Ledger) -> None:
    code, told = call("status", "scope")

    assert code == 3
    assert "No process runs it. Stop the writers of these topics, then confirm: " in told
    assert "mirror cutover run scope --confirm freeze" in told


def test_the_status_says_who_carries_it_out_and_what_it_asks_and_a_wrong_answer_is_refused(
    call: Call, ledger: Ledger
) -> None:
    with hold_lock(ledger, flow=lock_name("scope"), run_id="job", lease_seconds=30.0) as lease:
        Carriers(ledger).begin(
            CarrierRow(cutover="scope", id="job", kind="run", by="ann", holder=lease.holder, since=NOON)
        )
        Carriers(ledger).ask(QuestionRow(cutover="scope", step="freeze", attempt=1, carrier="job", asked_at=NOON))

        _, told = call("status", "scope")
        code, refused = call("confirm", "scope", "approve", "--yes")

    assert "Run by ann (process" in told
    assert "mirror cutover confirm scope freeze" in told
    assert code == 3
    assert "cutover scope does not wait for approve: it waits for freeze." in refused


def test_a_run_that_ends_at_a_gate_shows_what_to_do_about_each_gate_of_that_step_that_does_not_hold(
    call: Call, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_lib.features.cutover.command._run_job", lambda *_: 0)
    gates = [
        Gate("topics", True, "1 topic.").to_dict(),
        Gate("not split", False, "1 would be split.", "Use `--may-split`.").to_dict(),
    ]
    earlier = [Gate("lag", False, "lag is 7.", "Run the flow.").to_dict()]
    Cutovers(ledger).create(cutover_row("other", state="failed", step="inventory"))
    Cutovers(ledger).save_step(attempt_row("other", "inventory", number=1, state="failed", gates=earlier))
    Cutovers(ledger).save_step(attempt_row("other", "inventory", number=2, state="failed", gates=gates))

    _, shown = call("run", "other")

    assert "FAILED not split: 1 would be split. Use `--may-split`." in " ".join(shown.split())
    assert "Run the flow." not in shown
    assert "topics: 1 topic." not in shown
