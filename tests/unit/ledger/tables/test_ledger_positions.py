"""Positions in the ledger, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import TopicPartition
from tests.support.ledger.rows import transaction_count

CLOSED = PositionRow(
    flow="a->b",
    topic="orders",
    partition=0,
    offset=41,
    target_offset=42,
    state="closed",
    producer_id=2**40,
    epoch=3,
    run_id="a run of another ledger",
    topic_id="NTm0jB-tS9ef8pSV1Hq2Tg",
)


def _stored(ledger: Ledger, flow: str = "a->b") -> list[PositionRow]:
    return [replace(row, updated_at=None) for row in ledger.positions(flow)]


def test_positions_come_back_by_topic_and_partition(ledger: Ledger) -> None:
    other = replace(CLOSED, partition=10, state="open")
    first = replace(CLOSED, topic="a", partition=2)
    elsewhere = replace(CLOSED, flow="b->a")

    ledger.save_positions([other, CLOSED, elsewhere, first])

    assert _stored(ledger) == [first, CLOSED, other]
    assert _stored(ledger, "b->a") == [elsewhere]
    assert _stored(ledger, "c->d") == []


def test_a_later_position_replaces_the_earlier_one_and_none_are_no_work(ledger: Ledger) -> None:
    ledger.save_positions([CLOSED])
    later = replace(CLOSED, offset=50, target_offset=53, epoch=4, state="open")

    ledger.save_positions([later])
    ledger.save_positions([])

    assert _stored(ledger) == [later]


def test_given_a_run_that_slept_when_it_commits_then_the_position_of_its_successor_stays(ledger: Ledger) -> None:
    successor = replace(CLOSED, claim=8, copy="first")
    ledger.save_positions([successor])

    ledger.commit_positions([replace(CLOSED, claim=7, copy="first", offset=30)])
    assert _stored(ledger) == [successor]

    count = transaction_count(copy="first", counted_to=60, aborted=5)
    place = TopicPartition("orders", 0)
    ledger.save_transaction_counts([count], claims={place: 8})
    ledger.save_transaction_counts([replace(count, counted_to=30, aborted=1)], claims={place: 7})
    ledger.save_transaction_counts([replace(count, copy="an earlier one", aborted=1)], claims={place: 9})
    assert [(row.counted_to, row.aborted) for row in ledger.transaction_counts("a->b")] == [(60, 5)]

    # Another copy begins its own claims, and the same claim commits again.
    for newer in (replace(CLOSED, claim=1, copy="second"), replace(CLOSED, claim=1, copy="second", offset=50)):
        ledger.commit_positions([newer])
        assert _stored(ledger) == [newer]


def test_given_positions_that_are_reset_then_only_those_are_gone(ledger: Ledger) -> None:
    kept = [replace(CLOSED, partition=1), replace(CLOSED, topic="payments")]
    ledger.save_positions([CLOSED, *kept, replace(CLOSED, flow="b->a")])

    ledger.forget_positions("a->b", [TopicPartition("orders", 0), TopicPartition("unknown", 0)])

    assert _stored(ledger) == kept
    assert len(_stored(ledger, "b->a")) == 1


def test_given_a_claim_then_the_last_commit_and_its_time_stay(ledger: Ledger) -> None:
    """Deletions may be pending since then, and the rows of that run are kept."""
    before = replace(CLOSED, claim=5, copy="first", updated_at=datetime(2026, 1, 1, tzinfo=UTC))
    ledger.save_positions([before])

    claimed = replace(CLOSED, offset=41, run_id="the next run", state="open", claim=6, copy="first")
    ledger.save_claims([claimed, replace(claimed, topic="unknown")])
    ledger.save_claims([])

    assert ledger.positions("a->b") == (replace(before, claim=6, state="open"),)
