"""The states of a cutover: what each event does in each of them, without a ledger."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mirror_lib.features.cutover.machine import Progress
from mirror_lib.features.cutover.model import Attempt, CutoverState, Step, StepState
from mirror_lib.features.cutover.states import shown as states_shown
from mirror_lib.features.cutover.states.cutover import INSIDE, Event, Known, Refusal, State, after, choices, state_of

CARRIED = [state for state in State if state.is_carried]
UNATTENDED = [state for state in State if state.is_unattended]
ASKING = [State.ASKING_FREEZE, State.ASKING_APPROVE]
ENDED = [State.FINISHED, State.ROLLED_BACK]
ROLLING_BACK = [state for state in State if state.value.startswith("rolling-back")]
RUNBOOKS = Path(__file__).resolve().parents[4] / "docs/runbooks.md"


def refused(state: State, event: Event) -> Refusal:
    then = after(state, event)
    assert isinstance(then, Refusal)
    return then


def test_every_state_is_of_one_kind() -> None:
    kinds = [*CARRIED, *UNATTENDED, *ROLLING_BACK, *ENDED]

    assert sorted(kinds) == sorted(State)


def test_a_yes_to_a_cutover_that_nobody_carries_out_says_to_trigger_it_again() -> None:
    for state in UNATTENDED:
        answer = refused(state, Event.YES)
        assert "has no running process" in answer.reason, state
        assert answer.way is Event.TRIGGER, state


def test_a_process_that_is_killed_leaves_a_state_in_which_it_can_be_triggered_again_or_taken_back() -> None:
    for state, event in itertools.product([*CARRIED, *ROLLING_BACK], (Event.KILL, Event.MARK)):
        then = after(state, event)
        assert then in UNATTENDED, (state, event)
        assert {Event.TRIGGER, Event.ROLL_BACK} <= set(choices(State(then))), (state, event)


def test_a_second_trigger_is_refused_while_a_process_carries_it_out() -> None:
    for state in CARRIED:
        assert "is already running" in refused(state, Event.TRIGGER).reason, state


def test_a_cleared_task_carries_it_out_again_and_asks_anew() -> None:
    for state in (*CARRIED, *UNATTENDED):
        then = after(state, Event.CLEAR)
        assert isinstance(then, State), state
        assert then.is_carried, state
        assert then.question is None, state


def test_a_step_that_failed_with_a_transient_error_may_be_repeated_and_others_need_somebody() -> None:
    for state, reason, died, code in (
        (CutoverState.FAILED, "broker-unreachable", None, 1),
        (CutoverState.FAILED, "authorization", None, 3),
        (CutoverState.FAILED, None, None, 3),
        (CutoverState.FAILED, "broker-unreachable", "it died", 3),
        (CutoverState.WAITING, "broker-unreachable", None, 3),
        (CutoverState.RUNNING, "broker-unreachable", None, 0),
    ):
        there: Any = SimpleNamespace(died=died)
        error = None if reason is None else {"reason": reason}
        attempt = Attempt(
            step=Step.PREFLIGHT, number=1, state=StepState.FAILED, by="me", started_at=datetime.now(UTC), error=error
        )
        definition: Any = None

        assert Progress(definition, state, Step.PREFLIGHT, (attempt,), there).exit_code == code, (state, reason)


def test_a_restart_of_airflow_changes_nothing_that_the_ledger_keeps() -> None:
    for state in State:
        assert after(state, Event.RESTART) is state


def test_people_can_bring_every_state_to_an_end() -> None:
    for state in (state for state in State if not state.has_ended):
        seen, ahead = {state}, [state]
        while ahead:
            here = ahead.pop()
            for event in (*choices(here), *INSIDE):
                then = after(here, event)
                if isinstance(then, State) and then not in seen:
                    seen.add(then)
                    ahead.append(then)

        assert State.FINISHED in seen or state in ROLLING_BACK, state
        assert State.ROLLED_BACK in seen, state


def test_the_writers_wait_from_their_word_to_the_release_whoever_acts() -> None:
    waiting = {state for state in State if state.writers_wait}

    assert waiting == {
        State.FREEZE_ANSWERED,
        State.CUTTING,
        State.ASKING_APPROVE,
        State.APPROVE_ANSWERED,
        State.STOPPED_FROZEN,
        State.ROLLING_BACK_FROZEN,
    }
    # Where nobody acts, both ways out are open.
    for state in (state for state in waiting if state.is_unattended):
        assert choices(state) == (Event.TRIGGER, Event.ROLL_BACK), state


def test_a_writer_that_is_found_takes_the_word_back() -> None:
    then = after(State.CUTTING, Event.WORD_LAPSES)

    assert isinstance(then, State)
    assert not then.writers_wait
    assert after(then, Event.ASKS) is State.ASKING_FREEZE


def test_a_finished_cutover_is_not_rolled_back_but_brought_home() -> None:
    assert "mirror cutover back" in refused(State.FINISHED, Event.ROLL_BACK).do
    assert after(State.FINISHED, Event.BRING_BACK) is State.FINISHED


def test_everything_that_the_ledger_can_say_is_a_state_and_every_state_can_be_said() -> None:
    flags = (False, True)
    found = {
        state_of(Known(recorded, begun, frozen, released, carried, rolled_back, question, answered))
        for recorded in CutoverState
        for begun, frozen, released, carried, rolled_back, answered in itertools.product(flags, repeat=6)
        for question in (None, Step.FREEZE, Step.APPROVE)
    }

    assert found == set(State)


def test_the_table_holds_what_it_promises_and_the_runbook_shows_it() -> None:
    assert states_shown.problems() == []
    assert states_shown.markdown() in RUNBOOKS.read_text(encoding="utf-8")
