"""The run lock's row: one holder at a time, by the database's clock. Holds for SQLite and PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text, update

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import RunLockRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import is_held_by

FLOW = "a->b"
LEASE = 30.0


def acquire(ledger: Ledger, run_id: str, holder: str = "", *, flow: str = FLOW, **more: object) -> RunLockRow:
    given = {"lease_seconds": LEASE, **more}
    return ledger.acquire_lock(flow=flow, run_id=run_id, holder=holder or f"process of {run_id}", **given)  # type: ignore[arg-type]


def let_time_pass(ledger: Ledger, seconds: float) -> None:
    """Make the lock as old as if so many seconds had passed."""
    row = ledger.lock_holder(FLOW)
    assert row is not None
    with ledger.database.write() as connection:
        connection.execute(
            update(METADATA.tables["run_lock"]).values(renewed_at=row.renewed_at - timedelta(seconds=seconds))
        )


def test_given_a_free_lock_when_acquired_then_it_has_the_run_the_holder_and_the_lease(ledger: Ledger) -> None:
    taken = acquire(ledger, "r1")

    assert (taken.flow, taken.run_id, taken.holder, taken.lease_seconds) == (FLOW, "r1", "process of r1", LEASE)
    assert taken.acquired_at == taken.renewed_at
    assert ledger.lock_holder(FLOW) == taken


def test_given_a_held_lock_when_another_run_or_attempt_wants_it_then_the_present_holder_is_the_answer(
    ledger: Ledger,
) -> None:
    first = acquire(ledger, "r1", "process 1")

    assert acquire(ledger, "r2") == acquire(ledger, "r1", "process 2") == first
    assert ledger.lock_holder(FLOW) == first
    assert not ledger.renew_lock(flow=FLOW, run_id="r1", holder="process 2")
    # Other flows have locks of their own.
    assert acquire(ledger, "r2", flow="b->a").run_id == "r2"
    assert ledger.lock_holder("c->d") is None


def test_given_an_answer_that_was_lost_when_the_holder_asks_again_then_it_has_the_lock(ledger: Ledger) -> None:
    first = acquire(ledger, "r1")

    again = acquire(ledger, "r1")

    assert is_held_by(again, "r1", "process of r1")
    assert again.acquired_at == first.acquired_at
    assert again.renewed_at >= first.renewed_at


def test_given_a_lease_that_ended_or_a_clock_that_was_set_back_when_another_run_wants_it_then_it_has_it(
    ledger: Ledger,
) -> None:
    acquire(ledger, "r0")
    # The clock was set back by less than a lease, and by two days.
    for number, (seconds, is_held) in enumerate(((LEASE, False), (1 - LEASE, True), (-2 * 86_400, False))):
        before, after = f"r{number}", f"r{number + 1}"
        let_time_pass(ledger, seconds)
        if is_held:
            assert acquire(ledger, after).run_id == before
            ledger.release_lock(flow=FLOW, run_id=before, holder=f"process of {before}")
        else:
            assert ledger.lock_holder(FLOW) is None
        assert acquire(ledger, after).run_id == after
        assert not ledger.renew_lock(flow=FLOW, run_id=before, holder=f"process of {before}")


def test_given_a_renewal_when_the_old_lease_would_have_ended_then_the_lock_is_still_held(ledger: Ledger) -> None:
    first = acquire(ledger, "r1")
    let_time_pass(ledger, LEASE - 5)

    assert ledger.renew_lock(flow=FLOW, run_id="r1", holder="process of r1")

    let_time_pass(ledger, 10)
    held = acquire(ledger, "r2")
    assert held.run_id == "r1"
    assert held.acquired_at == first.acquired_at


def test_the_lease_is_the_holders_not_that_of_the_one_who_asks(ledger: Ledger) -> None:
    acquire(ledger, "r1")
    let_time_pass(ledger, 5)

    assert acquire(ledger, "r2", lease_seconds=1.0).run_id == "r1"


def test_only_the_holder_releases_and_then_it_is_free(ledger: Ledger) -> None:
    held = acquire(ledger, "r1")

    for run_id, holder in (("r2", "process of r1"), ("r1", "process of r2")):
        ledger.release_lock(flow=FLOW, run_id=run_id, holder=holder)
        assert ledger.lock_holder(FLOW) == held, (run_id, holder)

    ledger.release_lock(flow=FLOW, run_id="r1", holder="process of r1")
    assert ledger.lock_holder(FLOW) is None
    assert not ledger.renew_lock(flow=FLOW, run_id="r1", holder="process of r1")
    assert acquire(ledger, "r2").run_id == "r2"


def test_given_a_holder_known_to_be_dead_when_taken_from_it_then_its_lease_does_not_count_unless_it_was_renewed_since(
    ledger: Ledger,
) -> None:
    seen = acquire(ledger, "r1")
    assert ledger.renew_lock(flow=FLOW, run_id="r1", holder="process of r1")

    earlier = replace(seen, renewed_at=seen.renewed_at - timedelta(microseconds=1))
    held = acquire(ledger, "r2", instead_of=earlier)

    assert held.run_id == "r1"
    assert acquire(ledger, "r2", instead_of=held).run_id == "r2"


@pytest.mark.integration
def test_on_postgres_times_are_those_of_its_clock(empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose clock is a day ahead takes nothing from anybody, and its own lock ends no later."""
    with Ledger.open(empty_postgres_url) as ledger:
        ledger.migrate()
        first = acquire(ledger, "r1")
        monkeypatch.setattr("mirror_lib.ledger.tables.locks.now", lambda: first.renewed_at + timedelta(days=1))

        assert acquire(ledger, "r2").run_id == "r1"
        assert ledger.renew_lock(flow=FLOW, run_id="r1", holder="process of r1")
        with ledger.database.read() as connection:
            clock = connection.scalar(text("SELECT clock_timestamp()"))
        held = ledger.lock_holder(FLOW)

    assert held is not None
    assert first.renewed_at < held.renewed_at < clock


def test_given_threads_that_want_it_at_once_then_one_has_it_and_all_agree(ledger: Ledger) -> None:
    with ThreadPoolExecutor(max_workers=6) as pool:
        answers = list(pool.map(lambda number: acquire(ledger, f"r{number}"), range(6)))

    assert {answer.run_id for answer in answers} == {answers[0].run_id}
