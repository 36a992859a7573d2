"""Partitions of runs in the ledger, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.rows import partition_run

PLANNED = partition_run(
    "r1", start_offset=5, end_offset=2**62, source_next=5, target_first=3, target_next=3, state="planned"
)


@pytest.fixture
def started(ledger: Ledger) -> Iterator[Ledger]:
    """A ledger with the run r1."""
    ledger.start_run(run_id="r1", flow="a->b", trigger="cli")
    return ledger


def _without_time(rows: tuple[PartitionRunRow, ...]) -> list[PartitionRunRow]:
    return [replace(row, updated_at=None) for row in rows]


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

    assert _without_time(started.partition_runs("r1")) == [done]


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
