"""The account of a round: expected and actual cost, and the age of its records when they were committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mirror_lib.copy.commit.round_metrics import RoundAccount, Step, expectation, record_ages_ms
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.model import OpenPartition, PartitionPlan, PartitionResult, RunPlan
from mirror_lib.topology.names import FlowId
from tests.support.brokers.partitions import partition_plan, partition_result
from tests.support.ledger.ledgers import ready_ledger

FLOW = FlowId("A", "B")
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
MB = 1_000_000


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        ledger.start_run(run_id="r", flow="A->B", trigger="cli")
        yield ledger


def planned(partition: int, size: int) -> PartitionPlan:
    return partition_plan(partition=partition, estimated_bytes=size)


def plan(*bins: tuple[PartitionPlan, ...]) -> RunPlan:
    return RunPlan(flow=FLOW, bins=bins, problems=(), idle=0)


def opened(*bins: tuple[PartitionPlan, ...]) -> list[tuple[OpenPartition, ...]]:
    return [
        tuple(OpenPartition(each, transactional_id=None, producer_id=1, epoch=0, target_offset=0) for each in bin_)
        for bin_ in bins
    ]


def result(
    partition: int, *, size: int = 1_000, first: int | None = NOW_MS - 60_000, last: int | None = NOW_MS - 1_000
) -> PartitionResult:
    return partition_result(planned(partition, 0), bytes=size, first_timestamp=first, last_timestamp=last)


def account(ledger: Ledger, number: int = 1) -> RoundAccount:
    return RoundAccount(ledger, flow="A->B", run_id="r", number=number)


class TestRecordAges:
    def test_the_oldest_counts_from_the_smallest_time_and_the_newest_from_the_largest(self) -> None:
        results = [result(0), result(1, first=NOW_MS - 90_000, last=NOW_MS - 20)]

        assert record_ages_ms(results, NOW) == (90_000, 20)

    def test_where_nothing_was_copied_there_is_no_age(self) -> None:
        assert record_ages_ms([result(0, first=None, last=None)], NOW) == (None, None)

    def test_records_without_a_time_have_no_age(self) -> None:
        assert record_ages_ms([result(0, first=-1, last=-1)], NOW) == (None, None)

    def test_the_beginning_of_the_epoch_is_a_time_and_one_that_is_ahead_is_now(self) -> None:
        assert record_ages_ms([result(0, first=0, last=0)], NOW) == (NOW_MS, NOW_MS)
        assert record_ages_ms([result(0, first=NOW_MS + 5, last=NOW_MS + 9)], NOW) == (0, 0)


class TestTheRowOfARound:
    def test_it_is_there_before_anything_is_opened_and_says_what_is_outstanding(self, ledger: Ledger) -> None:
        account(ledger).record_plan(plan((planned(0, 3 * MB),), (planned(1, 4 * MB), planned(2, MB))))

        (row,) = ledger.rounds(run_id="r")
        assert (row.tasks, row.partitions, row.lag_records, row.lag_bytes) == (2, 3, 300, 8 * MB)
        assert (row.expected_bytes, row.expected_seconds, row.committed_at) == (8 * MB, None, None)

    def test_a_round_that_copies_a_part_of_it_is_judged_by_that_part(self, ledger: Ledger) -> None:
        round_ = account(ledger)
        round_.record_plan(plan((planned(0, 3 * MB), planned(1, 4 * MB))))

        round_.begins(plan((planned(0, 3 * MB),)))

        (row,) = ledger.rounds(run_id="r")
        assert (row.lag_records, row.lag_bytes) == (200, 7 * MB)
        assert (row.planned_records, row.planned_bytes, row.expected_bytes) == (100, 3 * MB, 3 * MB)

    def test_bytes_outstanding_are_not_known_when_one_size_is_not(self, ledger: Ledger) -> None:
        account(ledger).record_plan(plan((planned(0, 3 * MB), planned(1, 0))))

        assert ledger.rounds(run_id="r")[0].lag_bytes is None

    def test_after_the_commit_it_says_what_was_copied_and_by_the_heaviest_bin(self, ledger: Ledger) -> None:
        bins = ((planned(0, 3),), (planned(1, 4), planned(2, 1)))
        round_ = account(ledger)
        round_.record_plan(plan(*bins))

        round_.record_commit(opened(*bins), [result(0, size=30), result(1, size=25), result(2, size=10)], NOW)

        (row,) = ledger.rounds(run_id="r")
        assert (row.records, row.bytes, row.heaviest_bytes) == (300, 65, 35)
        assert (row.oldest_age_ms, row.newest_age_ms, row.committed_at) == (60_000, 1_000, NOW)

    def test_each_step_has_its_own_seconds(self, ledger: Ledger) -> None:
        round_ = account(ledger)

        with round_.measure(Step.OPENING):
            pass
        with pytest.raises(ValueError, match="broken"), round_.measure(Step.COPYING):
            raise ValueError("broken")

        assert round_.row.opening_seconds > 0
        assert round_.row.copying_seconds > 0
        assert (round_.row.planning_seconds, round_.row.committing_seconds) == (0, 0)

    def test_a_round_with_nothing_to_copy_is_noted_only_when_it_is_the_first(self, ledger: Ledger) -> None:
        account(ledger, 1).record_plan(plan())
        account(ledger, 2).record_plan(plan())

        assert [row.number for row in ledger.rounds(run_id="r")] == [1]

    def test_a_ledger_that_does_not_answer_ends_no_round(self, tmp_path: Path) -> None:
        with Ledger.open(f"sqlite:///{tmp_path}/without-tables.sqlite3") as broken:
            round_ = account(broken)
            round_.record_plan(plan((planned(0, 3),)))
            round_.record_commit(opened((planned(0, 3),)), [result(0)], NOW)

        assert round_.row.records == 100


class TestTheExpectation:
    def test_it_is_made_of_the_flows_earlier_rounds(self, ledger: Ledger) -> None:
        for number, size in enumerate((10, 20, 30), start=1):
            round_ = account(ledger, number)
            ledger.save_round(
                replace(
                    round_.row,
                    tasks=1,
                    partitions=1,
                    copying_seconds=size + 5.0,
                    bytes=size * MB,
                    heaviest_bytes=size * MB,
                    planned_bytes=size * MB,
                    records=1,
                    committed_at=NOW,
                )
            )

        expected = expectation(plan((planned(0, 40 * MB),)), ledger, "A->B")

        assert expected.seconds == pytest.approx(45)
        assert expected.bytes == 40 * MB
        assert expectation(plan((planned(0, 40 * MB),)), ledger, "A->C").seconds is None

    def test_without_a_ledger_the_sizes_are_all_that_is_told(self) -> None:
        expected = expectation(plan((planned(0, 40 * MB),)), None, "A->B")

        assert (expected.bytes, expected.seconds) == (40 * MB, None)
