"""What the ledger forgets of old runs, on SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.history import Forgotten
from tests.support.ledger.rows import partition_run, round_row

FLOW = "A->B"
KEEP = timedelta(days=90)


def in_days(days: int) -> datetime:
    return datetime.now(UTC) + timedelta(days=days)


def run(ledger: Ledger, run_id: str, *partitions: int, flow: str = FLOW, state: str = "done") -> None:
    """A run of one round with these partitions, whose positions it commits when it is done."""
    ledger.start_run(run_id=run_id, flow=flow, trigger="cli")
    ledger.save_round(round_row(run_id, flow=flow, began_at=datetime.now(UTC)))
    ledger.save_partition_runs([partition_run(run_id, number, records=10, state=state) for number in partitions])
    if state == "done":
        ledger.save_positions(
            [
                PositionRow(flow=flow, topic="orders", partition=partition, offset=9, state="closed", run_id=run_id)
                for partition in partitions
            ]
        )


def partitions_of(ledger: Ledger, run_id: str) -> list[int]:
    return [row.partition for row in ledger.partition_runs(run_id)]


def test_old_runs_keep_their_totals_and_lose_the_partitions_that_later_ones_have_copied(ledger: Ledger) -> None:
    run(ledger, "first", 0, 1)
    run(ledger, "second", 0)

    forgotten = ledger.history.forget(FLOW, keep=KEEP, now=in_days(91))

    assert partitions_of(ledger, "first") == [1]
    assert partitions_of(ledger, "second") == [0]
    assert [row.id for row in ledger.runs(FLOW)] == ["second", "first"]
    assert forgotten.partition_runs == 1


def test_what_is_not_old_stays(ledger: Ledger) -> None:
    run(ledger, "first", 0)
    run(ledger, "second", 0)

    assert ledger.history.forget(FLOW, keep=KEEP, now=in_days(89)) == Forgotten(0, 0)

    assert partitions_of(ledger, "first") == [0]
    assert len(ledger.rounds(FLOW)) == 2


def test_interrupted_runs_stay_until_a_later_one_has_committed_the_partition_and_other_flows_are_left_alone(
    ledger: Ledger,
) -> None:
    run(ledger, "done", 0)
    run(ledger, "interrupted", 0, state="copying")
    run(ledger, "theirs", 0, flow="A->C")
    run(ledger, "theirs again", 0, flow="A->C")

    ledger.history.forget(FLOW, keep=KEEP, now=in_days(91))

    assert partitions_of(ledger, "interrupted") == [0]
    assert partitions_of(ledger, "theirs") == [0]


def test_old_rounds_go_but_the_largest_which_tell_how_fast_a_flow_copies_much(ledger: Ledger) -> None:
    for number in range(1, 7):
        size = 1000 * number
        run(ledger, f"run {number}", 0)
        now = datetime.now(UTC)
        sizes = {"bytes": size, "heaviest_bytes": size}
        ledger.save_round(round_row(f"run {number}", began_at=now, committed_at=now, **sizes))

    forgotten = ledger.history.forget(FLOW, keep=KEEP, now=in_days(91))

    assert [row.run_id for row in ledger.rounds(FLOW)] == ["run 6", "run 5", "run 4"]
    assert forgotten.rounds == 3


def test_a_flow_is_gone_through_once_a_day_and_only_from_where_it_was_left(ledger: Ledger) -> None:
    run(ledger, "first", 0)
    run(ledger, "second", 0)
    assert ledger.history.forget(FLOW, keep=KEEP, now=in_days(91)).partition_runs == 1
    run(ledger, "third", 0)

    assert ledger.history.forget(FLOW, keep=KEEP, now=in_days(91) + timedelta(hours=23)) == Forgotten(0, 0)
    assert partitions_of(ledger, "second") == [0]


def test_more_old_runs_than_one_transaction_takes_are_all_gone_through(ledger: Ledger) -> None:
    runs = [f"run {number:03}" for number in range(230)]
    for run_id in runs:
        run(ledger, run_id, 0)

    forgotten = ledger.history.forget(FLOW, keep=KEEP, now=in_days(91))

    assert forgotten.partition_runs == len(runs) - 1
    assert partitions_of(ledger, runs[-1]) == [0]
