"""Runs in the ledger, on SQLite and PostgreSQL.

Partitions of runs in the ledger, on SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mirror_lib.errors import BrokerUnreachableError, LedgerError, MirrorError, Where
from mirror_lib.ledger.rows import RunState
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.rows import partition_run


def _start(ledger: Ledger, run_id: str, flow: str = "a->b", trigger: str = "cli") -> None:
    ledger.start_run(run_id=run_id, flow=flow, trigger=trigger)


def test_a_started_run_is_running_has_done_nothing_and_cannot_be_started_again(ledger: Ledger) -> None:
    before = datetime.now(UTC)

    started = ledger.start_run(run_id="r1", flow="a->b", trigger="airflow dag", planned_partitions=7)

    assert ledger.run("r1") == started
    assert (started.flow, started.trigger, started.state) == ("a->b", "airflow dag", RunState.RUNNING)
    assert (started.rounds, started.planned_partitions, started.records, started.bytes) == (0, 7, 0, 0)
    assert (started.finished_at, started.error) == (None, None)
    assert before <= started.started_at <= datetime.now(UTC)
    assert started.heartbeat_at == started.started_at
    with pytest.raises(LedgerError, match="r1 already exists") as caught:
        _start(ledger, "r1")
    assert caught.value.action


def test_a_heartbeat_moves_the_sign_of_life_and_only_what_it_is_given(ledger: Ledger) -> None:
    started = ledger.start_run(run_id="r1", flow="a->b", trigger="cli", planned_partitions=3)

    ledger.heartbeat("r1", records=10, bytes=2**40)
    ledger.heartbeat("r1", rounds=2)

    stored = ledger.run("r1")
    assert stored.heartbeat_at > started.heartbeat_at
    assert (stored.planned_partitions, stored.records, stored.bytes, stored.rounds) == (3, 10, 2**40, 2)
    assert stored.state == RunState.RUNNING


def test_a_finished_run_holds_its_end_and_its_error_as_plain_data(ledger: Ledger) -> None:
    error: MirrorError = BrokerUnreachableError(
        "nobody answered", where=Where(flow="a->b", cluster="ä", partition=3), action="Start it."
    )
    _start(ledger, "r1")

    ledger.finish_run("r1", state="partial", rounds=2, records=5, bytes=6, error=error.attributes())

    stored = ledger.run("r1")
    assert stored.state == RunState.PARTIAL
    assert stored.error == error.attributes()
    assert (stored.rounds, stored.records, stored.bytes) == (2, 5, 6)
    assert stored.finished_at is not None
    assert timedelta() <= stored.finished_at - stored.started_at < timedelta(minutes=1)


def test_a_run_that_fails_without_totals_gets_them_from_its_partitions(ledger: Ledger) -> None:
    _start(ledger, "r1")
    _start(ledger, "nothing to copy")
    ledger.save_partition_runs(
        [
            partition_run("r1", 0, records=4, bytes=40),
            partition_run("r1", 1, records=5, bytes=50),
            partition_run("r1", 1, round=2, records=1, bytes=10),
        ]
    )

    ledger.finish_run("r1", state="failed", error={"reason": "unexpected"})
    ledger.finish_run("nothing to copy", state="succeeded", rounds=1, records=0, bytes=0)

    for run_id, totals in (("r1", (2, 2, 10, 100)), ("nothing to copy", (1, 0, 0, 0))):
        stored = ledger.run(run_id)
        assert (stored.rounds, stored.planned_partitions, stored.records, stored.bytes) == totals
        assert (stored.error is None) == (stored.state == "succeeded")


def test_nothing_can_be_said_of_a_run_that_was_not_started(ledger: Ledger) -> None:
    assert ledger.run("nobody") is None
    for unknown_run in ("", "r2"):
        with pytest.raises(LedgerError, match="does not exist"):
            ledger.heartbeat(unknown_run)
        with pytest.raises(LedgerError, match="does not exist"):
            ledger.finish_run(unknown_run, state="failed")


def test_a_state_that_does_not_exist_is_refused_by_the_database(ledger: Ledger) -> None:
    _start(ledger, "r1")

    with pytest.raises(LedgerError):
        ledger.finish_run("r1", state="finished")

    stored = ledger.run("r1")
    assert stored.state == RunState.RUNNING


def test_runs_come_newest_first_of_one_flow_or_one_starter_or_all(ledger: Ledger) -> None:
    for run_id, flow, trigger in (
        ("1", "a->b", "cli"),
        ("2", "b->a", "cli"),
        ("3", "a->b", "dag"),
        ("4", "a->b", "cli"),
    ):
        _start(ledger, run_id, flow, trigger)

    assert [run.id for run in ledger.runs()] == ["4", "3", "2", "1"]
    assert [run.id for run in ledger.runs(limit=2)] == ["4", "3"]
    assert [run.id for run in ledger.runs("a->b")] == ["4", "3", "1"]
    assert [run.id for run in ledger.runs("a->b", limit=1)] == ["4"]
    assert [run.id for run in ledger.runs(trigger="cli")] == ["4", "2", "1"]
    assert [run.id for run in ledger.runs("a->b", trigger="dag")] == ["3"]
    assert ledger.runs("c->d") == ()


def _lock(ledger: Ledger, run_id: str, flow: str = "a->b", lease_seconds: float = 30.0) -> None:
    ledger.acquire_lock(flow=flow, run_id=run_id, holder=f"process of {run_id}", lease_seconds=lease_seconds)


def test_given_a_run_that_holds_its_lock_until_its_lease_ends_then_it_lives(ledger: Ledger) -> None:
    for flow, lease_seconds, died in (("a->b", 30.0, ()), ("a->c", 0.0, ("run of a->c",))):
        _lock(ledger, f"run of {flow}", flow, lease_seconds)
        _start(ledger, f"run of {flow}", flow)

        assert ledger.dead_runs(ledger.runs(flow, 5)) == frozenset(died)
        assert ledger.close_dead_runs(flow) == died


def test_given_a_run_without_a_lock_then_it_has_died_and_is_closed_once(ledger: Ledger) -> None:
    _start(ledger, "r1")
    ledger.save_partition_runs([partition_run("r1", records=4, bytes=400)])
    last_sign = ledger.runs("a->b", 1)[0].heartbeat_at

    assert ledger.dead_runs(ledger.runs("a->b", 5)) == {"r1"}
    assert ledger.close_dead_runs("a->b") == ("r1",)
    assert ledger.close_dead_runs("a->b") == ()

    closed = ledger.run("r1")
    assert (closed.state, closed.records, closed.bytes) == (RunState.FAILED, 4, 400)
    assert closed.error is not None
    assert (closed.error["reason"], closed.error["flow"]) == ("run-died", "a->b")
    assert closed.finished_at is not None
    assert closed.heartbeat_at == last_sign
    assert ledger.dead_runs([closed]) == frozenset()


def test_given_the_lock_of_another_run_or_flow_then_the_run_has_died_and_the_others_have_not(ledger: Ledger) -> None:
    _start(ledger, "old")
    _lock(ledger, "new")
    _start(ledger, "new")
    _start(ledger, "other", flow="a->c")

    assert ledger.dead_runs(ledger.runs(None, 5)) == {"old", "other"}
    assert ledger.close_dead_runs("a->b") == ("old",)
    assert ledger.dead_runs(ledger.runs(None, 5)) == {"other"}


def test_given_a_run_that_ended_after_it_was_read_then_it_has_not_died(ledger: Ledger) -> None:
    _start(ledger, "r1")
    read = ledger.runs("a->b", 1)
    ledger.finish_run("r1", state="succeeded")

    assert ledger.dead_runs(read) == frozenset()
    assert ledger.close_dead_runs("a->b") == ()


def test_given_the_living_run_is_known_then_all_others_of_its_flow_are_closed(ledger: Ledger) -> None:
    """As a run that holds the lock and is about to begin knows it."""
    _start(ledger, "old")

    assert ledger.close_dead_runs("a->b", living="new") == ("old",)


PLANNED = partition_run(
    "r1", start_offset=5, end_offset=2**62, source_next=5, target_first=3, target_next=3, state="planned"
)


@pytest.fixture
def started(ledger: Ledger) -> Iterator[Ledger]:
    """A ledger with the run r1."""
    ledger.start_run(run_id="r1", flow="a->b", trigger="cli")
    return ledger


def test_a_later_row_of_the_same_round_replaces_the_earlier_one(started: Ledger) -> None:
    done = replace(
        PLANNED,
        source_next=2**62,
        target_next=2**61,
        records=2**60,
        bytes=2**61,
        batches=9,
        first_timestamp=-1,
        last_timestamp=1_700_000_000_123,
        seconds=1.25,
        state="done",
    )
    started.save_partition_runs([PLANNED])

    started.save_partition_runs([done])

    assert [replace(row, updated_at=None) for row in started.partition_runs("r1")] == [done]


def test_rounds_and_partitions_stand_side_by_side_oldest_round_first(started: Ledger) -> None:
    rows = [
        replace(PLANNED, round=2),
        replace(PLANNED, partition=10),
        replace(PLANNED, partition=9),
        replace(PLANNED, topic="a"),
        PLANNED,
    ]

    started.save_partition_runs(rows)

    found = [(row.round, row.topic, row.partition) for row in started.partition_runs("r1")]
    assert found == [(1, "a", 0), (1, "orders", 0), (1, "orders", 9), (1, "orders", 10), (2, "orders", 0)]


def test_rows_of_a_run_that_was_not_started_are_refused_whole(started: Ledger) -> None:
    with pytest.raises(LedgerError) as caught:
        started.save_partition_runs([PLANNED, replace(PLANNED, run_id="r2")])

    assert caught.value.action
    assert started.partition_runs("r1") == ()
