"""What verifications found, in the ledger, on SQLite and PostgreSQL."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mirror_lib.features.verify.tables import VerificationRow, Verifications, VerifiedRow
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.rows import verification

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EQUAL = verification(
    source_first=10,
    source_next=100,
    target_next=90,
    records=90,
    bytes=9_000,
    digest="0" * 64,
    started_at=NOW - timedelta(seconds=5),
    finished_at=NOW,
)


def _later(row: VerificationRow, number: int, **changes: object) -> VerificationRow:
    hours = timedelta(hours=number)
    return replace(
        row,
        id=f"v{number + 1}",
        started_at=row.started_at + hours,
        finished_at=row.finished_at + hours,
        **changes,  # type: ignore[arg-type]
    )


def test_what_was_found_comes_back_newest_first(ledger: Ledger) -> None:
    difference = {"kind": "altered", "source_offset": 5, "target_offset": 5, "what": ["value"]}
    other = _later(EQUAL, 1, verdict="different", difference_count=1, differences=[difference])

    Verifications(ledger).save([EQUAL, other, replace(EQUAL, flow="b->a", id="of another flow")])

    assert Verifications(ledger).newest("a->b") == (other, EQUAL)
    assert Verifications(ledger).newest("a->b", limit=1) == (other,)
    assert Verifications(ledger).of_id("v1") == (EQUAL,)


def test_a_partition_that_rests_does_not_age_and_keeps_one_row_that_says_so(ledger: Ledger) -> None:
    at_rest = {"mode": "recent", "source_first": 100, "target_first": 90, "records": 0, "bytes": 0}
    first, second = (_later(EQUAL, number, **at_rest) for number in (1, 2))
    another = replace(first, partition=1)

    Verifications(ledger).save([EQUAL, first, another])
    Verifications(ledger).save([second])

    assert Verifications(ledger).verified_up_to("a->b")[0] == VerifiedRow(
        topic="orders", partition=0, source_next=100, target_next=90, verified_at=second.finished_at
    )
    assert Verifications(ledger).newest("a->b") == (second, another, EQUAL)


def test_a_partition_is_verified_up_to_the_furthest_range_that_was_equal(ledger: Ledger) -> None:
    recent = _later(EQUAL, 1, mode="recent", source_first=100, source_next=150, target_first=90, target_next=140)
    cut = _later(EQUAL, 2, source_next=20, target_next=10)

    Verifications(ledger).save([EQUAL, recent, cut, replace(EQUAL, partition=1)])

    assert Verifications(ledger).verified_up_to("a->b") == (
        VerifiedRow(topic="orders", partition=0, source_next=150, target_next=140, verified_at=recent.finished_at),
        VerifiedRow(topic="orders", partition=1, source_next=100, target_next=90, verified_at=NOW),
    )


def test_samples_and_what_could_not_be_verified_prove_nothing_of_the_whole(ledger: Ledger) -> None:
    sample = _later(EQUAL, 1, mode="sample", source_next=500)
    unverifiable = _later(EQUAL, 2, verdict="unverifiable", source_next=500)

    for row in (EQUAL, sample, unverifiable):
        Verifications(ledger).save([row])
        assert [row.source_next for row in Verifications(ledger).verified_up_to("a->b")] == [100], row


def test_after_a_difference_everything_has_to_be_verified_anew(ledger: Ledger) -> None:
    Verifications(ledger).save([EQUAL, _later(EQUAL, 1, verdict="different", mode="sample")])
    assert Verifications(ledger).verified_up_to("a->b") == ()

    again = _later(EQUAL, 2, source_next=60, target_next=50)
    Verifications(ledger).save([again])

    assert [(row.source_next, row.verified_at) for row in Verifications(ledger).verified_up_to("a->b")] == [
        (60, again.finished_at)
    ]
