"""Every reason code that waits for a decision has tests that take the ways on which its message names."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from mirror_lib import errors
from mirror_lib.errors import MirrorError, ReplicationError, TopicMissingError
from mirror_lib.relay.backfill import states as backfill_states
from mirror_lib.runbook.states import disaster as disaster_states
from tests.support.ways_on import (
    BACKFILL_STATES,
    BACKFILL_STOPS,
    BACKFILL_STOPS_ALIKE,
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


def waiting_for_somebody() -> set[str]:
    """Codes that stop a partition until somebody does something."""
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MirrorError)]
    return {
        kind.reason
        for kind in kinds
        if kind.exit_code == _DECIDED or issubclass(kind, ReplicationError) or kind is TopicMissingError
    }


def test_every_code_that_stops_a_partition_has_its_ways_on_tested() -> None:
    assert waiting_for_somebody() == set(WAYS_ON) | set(ELSEWHERE)
    assert set(WAYS_ON).isdisjoint(ELSEWHERE)


def test_every_code_of_a_run_that_was_refused_or_died_has_a_run_that_follows() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MirrorError)]
    assert {kind.reason for kind in kinds} - waiting_for_somebody() == set(RUNS) | set(RUNS_ELSEWHERE)


def test_every_state_and_every_stop_of_a_backfill_has_a_test() -> None:
    assert set(backfill_states.State) == set(BACKFILL_STATES)
    assert set(backfill_states.STOPS) == set(BACKFILL_STOPS) | set(BACKFILL_STOPS_ALIKE)
    assert set(BACKFILL_STOPS_ALIKE.values()) <= set(BACKFILL_STOPS)


def test_every_state_of_a_return_after_a_disaster_has_a_test() -> None:
    assert set(disaster_states.DisasterState) == set(RETURN_STATES)


def test_every_gate_of_a_cutover_that_can_fail_has_a_test_or_a_reason() -> None:
    assert gates_that_can_fail() == set(CUTOVER_GATES) | set(CUTOVER_GATES_ELSEWHERE)
    assert set(CUTOVER_GATES).isdisjoint(CUTOVER_GATES_ELSEWHERE)


def gates_that_can_fail() -> set[str]:
    """Names of gates in the program's text, but for those that it creates as passed."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in _sources(PROJECT / "mirror_lib/runbook")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {name for call in calls if (name := _gate_that_can_fail(call)) is not None}


def _sources(folder: Path) -> Iterator[Path]:
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names if name.endswith(".py"))


def _gate_that_can_fail(call: ast.Call) -> str | None:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if function not in ("Gate", "counts") or not call.args or not isinstance(call.args[0], ast.Constant):
        return None
    is_passed = isinstance(call.args[1], ast.Constant) and call.args[1].value is True
    return None if is_passed else str(call.args[0].value)


def test_the_named_tests_exist() -> None:
    tables = (WAYS_ON, RUNS, BACKFILL_STATES, BACKFILL_STOPS, RETURN_STATES, CUTOVER_GATES)
    named = {each for table in tables for tests in table.values() for each in tests}

    assert [each for each in sorted(named) if not _exists(each)] == []


def _exists(named: str) -> bool:
    file, _, name = named.partition("::")
    return (PROJECT / file).is_file() and (not name or name in _tests_of(PROJECT / file))


@cache
def _tests_of(file: Path) -> frozenset[str]:
    return frozenset(_names(ast.parse(file.read_text(encoding="utf-8")), ""))


def _names(node: ast.Module | ast.ClassDef, outer: str) -> Iterator[str]:
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            yield f"{outer}{each.name}"
        elif isinstance(each, ast.ClassDef):
            yield from _names(each, f"{each.name}::")
