"""The ledger's account of rounds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mirror_lib.ledger.rows import RoundRow
from mirror_lib.ledger.store import Ledger

START = datetime(2026, 1, 1, tzinfo=UTC)


def save(ledger: Ledger, run_id: str, number: int, *, flow: str = "A->B", minute: int = 0, **more: Any) -> RoundRow:
    if ledger.run(run_id) is None:
        ledger.start_run(run_id=run_id, flow=flow, trigger="cli")
    began = START + timedelta(minutes=minute, seconds=number)
    row = RoundRow(run_id=run_id, flow=flow, number=number, began_at=began, planning_seconds=0.5, **more)
    ledger.save_round(row)
    return row


def copied(size: int) -> dict[str, Any]:
    return {"bytes": size, "heaviest_bytes": size, "records": 1, "committed_at": START}


def test_a_round_comes_back_as_it_was_saved_last(ledger: Ledger) -> None:
    save(ledger, "r", 1, expected_seconds=2.5, lag_records=10)
    more = {"expected_seconds": 2.5, "expected_bytes": 7, "lag_records": 10, "oldest_age_ms": 5, "newest_age_ms": 1}
    row = save(ledger, "r", 1, **more, **copied(9))

    assert ledger.rounds() == (row,)


def test_rounds_come_newest_first_by_flow_and_by_run(ledger: Ledger) -> None:
    save(ledger, "old", 1)
    save(ledger, "old", 2)
    save(ledger, "new", 1, minute=5)
    save(ledger, "other", 1, flow="A->C", minute=9)

    assert [(row.run_id, row.number) for row in ledger.rounds("A->B")] == [("new", 1), ("old", 2), ("old", 1)]
    assert [row.number for row in ledger.rounds(run_id="old")] == [2, 1]
    assert [row.run_id for row in ledger.rounds(limit=2)] == ["other", "new"]


def test_the_rounds_that_tell_a_speed_are_the_newest_and_the_largest(ledger: Ledger) -> None:
    save(ledger, "huge", 1, minute=0, **copied(10_000))
    for minute in range(1, 6):
        save(ledger, f"small-{minute}", 1, minute=minute, **copied(minute))
    save(ledger, "idle", 1, minute=7)
    save(ledger, "dead", 1, minute=8, bytes=5)

    found = ledger.measured_rounds("A->B", newest=2, largest=2)

    assert [row.run_id for row in found] == ["small-5", "small-4", "huge"]
