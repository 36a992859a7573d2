"""The rounds of a flow: expected and actual duration, and the age of the records at the commit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from mirror_lib.features.page.api_models import Answer
from mirror_lib.features.page.context import TheFlow
from mirror_lib.ledger.rows import RoundRow

router = APIRouter(prefix="/flows/{dag_id}")


class RoundPoint(Answer):
    """One round."""

    run_id: str
    number: int
    began_at: datetime
    #: Source offsets outstanding when it was planned.
    outstanding: int
    records: int
    bytes: int
    planning_seconds: float
    #: The time after the plan: claiming, copying and committing.
    seconds: float
    expected_seconds: float | None
    #: From the time of the oldest record, and of the newest, to the commit; None if nothing was copied.
    oldest_age_seconds: float | None
    newest_age_seconds: float | None
    #: True if its positions were stored; False while it is running, or if it was interrupted.
    committed: bool


class Rounds(Answer):
    """A flow's newest rounds, newest first."""

    now: datetime
    rounds: list[RoundPoint]


@router.get("/rounds")
def rounds(looked: TheFlow, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> Rounds:
    """Return the newest rounds."""
    rows = () if looked.ledger is None else looked.ledger.rounds(looked.flow.name, limit)
    return Rounds(now=looked.now, rounds=[_point(row) for row in rows])


def _point(row: RoundRow) -> RoundPoint:
    return RoundPoint.showing(
        row,
        outstanding=row.lag_records,
        oldest_age_seconds=None if row.oldest_age_ms is None else row.oldest_age_ms / 1000,
        newest_age_seconds=None if row.newest_age_ms is None else row.newest_age_ms / 1000,
        committed=row.committed_at is not None,
    )
