"""Rows of cutovers as the ledger keeps them, for tests that run none."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mirror_lib.features.cutover.model import CutoverDefinition
from mirror_lib.features.cutover.tables.cutovers import CutoverStepRow
from mirror_lib.ledger.cutover_rows import CutoverRow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def cutover_row(
    of: CutoverDefinition | str,
    *,
    flow: str = "A->B",
    state: str = "waiting",
    step: str = "freeze",
    at: datetime = NOON,
    by: str = "ann",
    definition: Mapping[str, Any] | None = None,
) -> CutoverRow:
    """A cutover that asks for the freeze, unless said otherwise.

    Args:
        of: its definition, or its name alone.
        flow: where `of` does not say it.
        definition: where it is not that of `of`.
    """
    known = of if isinstance(of, CutoverDefinition) else CutoverDefinition(name=of, flow=flow, topics=("orders",))
    return CutoverRow(
        name=known.name,
        flow=known.flow,
        state=state,
        step=step,
        definition=known.to_dict() if definition is None else definition,
        created_at=at,
        created_by=by,
        updated_at=at,
    )


def attempt_row(
    cutover: str,
    step: str = "freeze",
    *,
    number: int = 1,
    state: str = "waiting",
    gates: list[dict[str, Any]] | None = None,
    at: datetime = NOON,
    by: str = "ann",
) -> CutoverStepRow:
    """An attempt at a step; one that waits for an answer, unless said otherwise."""
    return CutoverStepRow(
        cutover=cutover, step=step, attempt=number, state=state, gates=gates or [], facts={}, by=by, started_at=at
    )
