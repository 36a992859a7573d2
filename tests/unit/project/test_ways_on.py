"""Every reason code that waits for a decision has tests that take the ways on which its message names."""

from __future__ import annotations

import ast
from pathlib import Path

from mirror_lib import errors
from mirror_lib.errors import MirrorError, ReplicationError, TopicMissingError
from mirror_lib.features.backfill import states as backfill_states
from mirror_lib.features.cutover.states import disaster as disaster_states
from tests.support.ways_on import (
    BACKFILL_STOPS_ALIKE,
    BACKFILLS,
    CUTOVER_GATES,
    CUTOVER_GATES_ELSEWHERE,
    ELSEWHERE,
    RETURN_STATES,
    RUNS,
    RUNS_ELSEWHERE,
    WAYS_ON,
)

PROJECT = Path(__file__).resolve().parents[3]
_DECIDED = 3
_KINDS = {
    each.reason: each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MirrorError)
}


def names(file: str, word: str) -> bool:
    """Whether a test file names a code, a gate or the error of the code."""
    text = (PROJECT / file).read_text(encoding="utf-8")
    return word in text or (word in _KINDS and _KINDS[word].__name__ in text)


def test_every_code_that_stops_a_partition_or_a_run_has_its_ways_on_tested() -> None:
    waiting = {
        reason
        for reason, kind in _KINDS.items()
        if kind.exit_code == _DECIDED or issubclass(kind, ReplicationError) or kind is TopicMissingError
    }

    assert waiting == WAYS_ON.keys() | ELSEWHERE.keys()
    assert WAYS_ON.keys().isdisjoint(ELSEWHERE)
    assert _KINDS.keys() - waiting == RUNS.keys() | RUNS_ELSEWHERE.keys()
    assert [code for code, file in {**WAYS_ON, **RUNS}.items() if not names(file, code)] == []


def test_every_state_and_every_stop_of_a_backfill_has_a_test() -> None:
    stops = backfill_states.STOPS.keys() - BACKFILL_STOPS_ALIKE.keys()

    assert [each for each in (*backfill_states.State, *stops) if not names(BACKFILLS, each)] == []
    assert set(BACKFILL_STOPS_ALIKE.values()) <= stops


def test_every_state_of_a_return_after_a_disaster_has_a_test() -> None:
    assert set(disaster_states.DisasterState) == set(RETURN_STATES)
    assert [file for file in RETURN_STATES.values() if not (PROJECT / file).is_file()] == []


def test_every_gate_of_a_cutover_that_can_fail_has_a_test_or_a_reason() -> None:
    assert gates_that_can_fail() == CUTOVER_GATES.keys() | CUTOVER_GATES_ELSEWHERE.keys()
    assert CUTOVER_GATES.keys().isdisjoint(CUTOVER_GATES_ELSEWHERE)
    assert [gate for gate, file in CUTOVER_GATES.items() if not names(file, gate)] == []


def gates_that_can_fail() -> set[str]:
    """Names of gates in the program's text, but for those that it creates as passed."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for path in (PROJECT / "mirror_lib/features/cutover").rglob("*.py")
    ]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {name for call in calls if (name := _gate_that_can_fail(call)) is not None}


def _gate_that_can_fail(call: ast.Call) -> str | None:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if function not in ("Gate", "counts") or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    is_passed = isinstance(call.args[1], ast.Constant) and call.args[1].value is True
    return None if is_passed else str(call.args[0].value)
