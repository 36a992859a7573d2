"""What runs say about the speed of copying and about what is left, added up by the database."""

from __future__ import annotations

from typing import Any

import pytest

from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.ledger.store import Ledger
from tests.support.ledger import rows


def row(run_id: str, partition: int, **more: Any) -> PartitionRunRow:
    values = {"end_offset": 100, "source_next": 100, "target_next": 100, "records": 100, "bytes": 5_000}
    return rows.partition_run(run_id, partition, **{**values, "seconds": 2.0, **more})


def run(ledger: Ledger, run_id: str, *partitions: PartitionRunRow, flow: str = "A->B", ended: bool = True) -> None:
    ledger.start_run(run_id=run_id, flow=flow, trigger="cli")
    ledger.save_partition_runs(partitions)
    if ended:
        ledger.finish_run(run_id, state="succeeded")


def test_a_round_is_the_sum_of_its_partitions_in_the_time_of_the_slowest(ledger: Ledger) -> None:
    run(ledger, "r", row("r", 0), row("r", 1, records=300, seconds=4.0), row("r", 0, round=2, bytes=7_000))

    first, second = ledger.newest_rounds("A->B")

    assert (first.records, first.bytes, first.seconds) == (400, 10_000, 4.0)
    assert first.partition_records_per_second == pytest.approx(75)
    assert first.partition_bytes_per_second == pytest.approx(2_500)
    assert (second.records, second.bytes, second.seconds) == (100, 7_000, 2.0)


def test_the_newest_runs_of_the_flow_count_and_idle_ones_do_not(ledger: Ledger) -> None:
    for name in ("old", "middle", "new"):
        run(ledger, name, row(name, 0))
    run(ledger, "idle")
    run(ledger, "other", row("other", 0), flow="A->C")

    assert [each.run_id for each in ledger.newest_rounds("A->B", runs=2)] == ["new", "middle"]
    assert ledger.newest_rounds("B->A") == ()


def test_partitions_without_a_time_tell_no_speed(ledger: Ledger) -> None:
    run(ledger, "r", row("r", 0, seconds=0.0), row("r", 1, state="copying"))

    assert ledger.newest_rounds("A->B") == ()


def test_what_is_left_is_what_the_last_round_of_the_newest_run_did_not_reach(ledger: Ledger) -> None:
    run(ledger, "before", row("before", 0, source_next=0, state="failed"))
    run(
        ledger,
        "r",
        row("r", 0),
        row("r", 0, round=2, start_offset=100, end_offset=150, source_next=120, state="failed"),
        row("r", 1, start_offset=50, source_next=100),
    )
    run(ledger, "idle")

    lag = ledger.flow_lags()["A->B"]

    assert (lag.run_id, lag.partitions, lag.planned) == ("r", 2, 100)
    assert (lag.lag_offsets, lag.lagging_partitions) == (30, 1)
    assert lag.updated_at.tzinfo is not None


def test_while_a_round_copies_the_target_tells_how_far_it_is(ledger: Ledger) -> None:
    copying = row("r", 0, start_offset=10, source_next=10, target_first=500, target_next=560, state="copying")
    run(ledger, "r", copying, ended=False)

    assert ledger.flow_lags()["A->B"].lag_offsets == 30


def test_without_runs_nothing_is_known(ledger: Ledger) -> None:
    assert ledger.flow_lags() == {}
