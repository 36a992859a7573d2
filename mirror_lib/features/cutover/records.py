"""Convert attempts to ledger rows, and back."""

from __future__ import annotations

from mirror_lib.features.cutover.model import Attempt, CutoverDefinition, Gate, Step, StepState
from mirror_lib.features.cutover.order import last_attempts
from mirror_lib.features.cutover.tables.cutovers import Cutovers, CutoverStepRow
from mirror_lib.former_names import with_present_names
from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.store import Ledger


def attempt_of(row: CutoverStepRow) -> Attempt:
    """Return a row as a value."""
    return Attempt(
        step=Step(row.step),
        number=row.attempt,
        state=StepState(row.state),
        by=row.by,
        started_at=row.started_at,
        finished_at=row.finished_at,
        gates=tuple(Gate.from_dict(each) for each in row.gates),
        facts=with_present_names(row.facts),
        error=row.error,
    )


def step_row(cutover: str, attempt: Attempt) -> CutoverStepRow:
    """Return a value as a row."""
    return CutoverStepRow(
        cutover=cutover,
        step=attempt.step.value,
        attempt=attempt.number,
        state=attempt.state.value,
        gates=[gate.to_dict() for gate in attempt.gates],
        facts=dict(attempt.facts),
        by=attempt.by,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        error=attempt.error,
    )


def definition_of(row: CutoverRow) -> CutoverDefinition:
    """Return the definition of a cutover."""
    return CutoverDefinition.from_dict(row.definition)


def attempts_of(ledger: Ledger, name: str) -> dict[Step, Attempt]:
    """Return the newest attempt at each step of a cutover."""
    return last_attempts([attempt_of(row) for row in Cutovers(ledger).steps(name)])
