"""What a verification decides to read, from what both sides hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.topology.names import FlowId, TopicPartition
from mirror_lib.verify.findings import Verdict, VerifiedMark
from mirror_lib.verify.model import Budget, PartitionCheck, VerifyFacts, VerifyMode, VerifyPlan
from mirror_lib.verify.planning.plan import SAMPLE_RECORDS, clip, plan_verification, take
from tests.support.records.offset_maps import records, run_lists

FLOW = FlowId("A", "B")


def _facts(partition: int = 0, **changes: Any) -> VerifyFacts:
    settings: dict[str, Any] = {
        "source": TopicPartition("orders", partition),
        "target": TopicPartition("A.orders", partition),
        "runs": (OffsetRun(0, 0, 10_000),),
        "source_start": 0,
        "source_end": 10_000,
        "target_start": 0,
        "target_end": 10_000,
        "settled": VerifiedMark(10_000, 10_000),
        "source_bytes": 1_000_000,
    }
    return VerifyFacts(**{**settings, **changes})


def _plan(*facts: VerifyFacts, mode: VerifyMode = VerifyMode.FULL, **more: Any) -> VerifyPlan:
    return plan_verification(FLOW, facts, mode=mode, **more)


def _check(*facts: VerifyFacts, **more: Any) -> PartitionCheck:
    (check,) = _plan(*facts, **more).partitions
    return check


def test_everything_that_both_sides_hold_is_compared() -> None:
    check = _check(_facts(source_start=100, target_start=300))

    (range_,) = check.ranges
    assert (range_.source_first, range_.source_next, range_.target_first, range_.target_next) == (
        300,
        10_000,
        300,
        10_000,
    )
    assert (range_.records, check.expired) == (9_700, 300)


def test_nothing_may_follow_the_copy_when_no_run_is_writing() -> None:
    (range_,) = _check(_facts(target_end=10_003)).ranges

    assert range_.to_end
    assert range_.target_next == 10_003


def test_what_follows_the_map_is_not_judged_while_a_run_writes() -> None:
    (range_,) = _check(_facts(settled=None, target_end=10_500)).ranges

    assert not range_.to_end
    assert range_.target_next == 10_000


def test_a_position_that_is_newer_than_the_end_says_nothing_of_it() -> None:
    (range_,) = _check(_facts(settled=VerifiedMark(10_200, 10_200), source_end=10_200)).ranges

    assert not range_.to_end
    assert (range_.source_next, range_.target_next) == (10_000, 10_000)


def test_what_the_map_knows_behind_a_targets_end_is_compared_so_that_its_loss_is_found() -> None:
    check = _check(_facts(target_end=9_000))

    assert check.ranges[0].records == 10_000
    assert check.target_end == 9_000


def test_offsets_before_the_map_are_told() -> None:
    check = _check(_facts(runs=(OffsetRun(500, 0, 9_500),), target_end=9_500, settled=VerifiedMark(10_000, 9_500)))

    assert check.offsets_before_map == 500


def test_recent_begins_where_all_was_equal_last() -> None:
    (range_,) = _check(_facts(verified=VerifiedMark(9_000, 9_000)), mode=VerifyMode.RECENT).ranges

    assert (range_.source_first, range_.target_first, range_.records) == (9_000, 9_000, 1_000)


def test_recent_has_nothing_to_do_where_nothing_came() -> None:
    plan = _plan(_facts(verified=VerifiedMark(10_000, 10_000)), mode=VerifyMode.RECENT)

    assert plan.partitions == ()
    assert plan.idle == 1


def test_where_nothing_came_it_is_equal_up_to_the_end_still() -> None:
    resting = _facts(verified=VerifiedMark(10_000, 10_000))

    (verdict,) = _plan(resting, mode=VerifyMode.RECENT).confirmed

    assert (verdict.source, verdict.verdict, verdict.records) == (resting.source, Verdict.EQUAL, 0)
    (outcome,) = verdict.outcomes
    assert (outcome.source_first, outcome.source_next) == (10_000, 10_000)
    assert (outcome.target_first, outcome.target_next) == (10_000, 10_000)


@pytest.mark.parametrize(
    "changes",
    [
        {"settled": None},
        {"settled": VerifiedMark(10_005, 10_005)},
        {"target_end": 10_001},
        {"verified": None, "runs": (), "settled": VerifiedMark(0, 0)},
        {"verified": VerifiedMark(9_000, 9_000)},
    ],
    ids=["a run is writing", "more was copied", "more was written", "never verified", "not to the end"],
)
def test_where_something_may_have_come_nothing_is_confirmed(changes: dict[str, Any]) -> None:
    settings = {"verified": VerifiedMark(10_000, 10_000), **changes}

    assert _plan(_facts(**settings), mode=VerifyMode.RECENT).confirmed == ()


@pytest.mark.parametrize(
    "deleted", [{"target_start": 9_500}, {"source_start": 9_500}], ids=["on the target", "at the source"]
)
def test_recent_begins_at_the_first_record_that_both_sides_have_where_retention_has_passed_what_was_verified(
    deleted: dict[str, int],
) -> None:
    check = _check(_facts(verified=VerifiedMark(9_000, 9_000), **deleted), mode=VerifyMode.RECENT)

    (range_,) = check.ranges
    assert (range_.source_first, range_.target_first, range_.records) == (9_500, 9_500, 500)
    assert check.expired == 9_500


def test_recent_has_nothing_to_compare_where_retention_has_deleted_all_that_was_copied() -> None:
    deleted = _facts(verified=VerifiedMark(9_000, 9_000), target_start=10_000)

    assert _plan(deleted, mode=VerifyMode.RECENT).partitions == ()


@pytest.mark.parametrize("mode", [VerifyMode.RECENT, VerifyMode.FULL])
@pytest.mark.parametrize("start", ["source_start", "target_start"])
def test_where_retention_has_deleted_all_that_was_copied_it_is_equal_up_to_the_end_and_counted_as_expired(
    mode: VerifyMode, start: str
) -> None:
    (verdict,) = _plan(_facts(**{start: 10_000}), mode=mode).confirmed

    assert (verdict.verdict, verdict.records, verdict.expired_records) == (Verdict.EQUAL, 0, 10_000)
    (outcome,) = verdict.outcomes
    assert (outcome.source_next, outcome.target_next) == (10_000, 10_000)


def test_where_somebody_wrote_behind_what_retention_has_deleted_that_is_compared() -> None:
    (range_,) = _check(_facts(source_start=10_000, target_end=10_001)).ranges

    assert (range_.source_first, range_.source_next, range_.target_first, range_.target_next) == (
        10_000,
        10_000,
        10_000,
        10_001,
    )


def test_recent_begins_behind_all_that_was_copied_where_retention_has_deleted_that() -> None:
    deleted = _facts(
        verified=VerifiedMark(9_000, 9_000),
        target_start=10_000,
        target_end=10_001,
        source_end=10_003,
        settled=VerifiedMark(10_003, 10_001),
    )

    (range_,) = _check(deleted, mode=VerifyMode.RECENT).ranges

    assert (range_.source_first, range_.source_next, range_.target_first) == (10_000, 10_003, 10_000)


def test_recent_begins_anew_where_the_log_is_shorter_than_what_was_verified() -> None:
    (range_,) = _check(_facts(verified=VerifiedMark(20_000, 20_000)), mode=VerifyMode.RECENT).ranges

    assert range_.source_first == 0


def test_recent_begins_anew_where_the_partition_was_copied_again() -> None:
    again = _facts(
        runs=(OffsetRun(0, 9_000, 10_000),),
        target_end=19_000,
        settled=VerifiedMark(10_000, 19_000),
        verified=VerifiedMark(9_000, 9_000),
    )

    (range_,) = _check(again, mode=VerifyMode.RECENT).ranges

    assert (range_.source_first, range_.target_first) == (0, 9_000)


def test_given_an_empty_source_and_a_target_with_records_from_before_the_flow_then_none_of_them_is_compared() -> None:
    """A flow back whose partition nobody wrote to after the cutover: the first start there had skipped these three."""
    fact = _facts(
        runs=(), verified=None, source_start=0, source_end=0, target_start=0, target_end=3, settled=VerifiedMark(0, 3)
    )

    plan = _plan(fact)

    assert (list(plan.unverifiable), list(plan.partitions)) == ([], [])


def test_without_a_map_nothing_can_be_said() -> None:
    plan = _plan(_facts(runs=(), settled=None))

    assert [verdict.reason for verdict in plan.unverifiable] == ["no-map"]


def test_where_nothing_was_written_the_source_is_read_for_what_should_have_been() -> None:
    # All that a run has read may have been aborted; the target has no more than markers of fences.
    for target_end in (0, 1):
        check = _check(_facts(runs=(), target_end=target_end, settled=VerifiedMark(10_000, target_end)))

        assert check.nothing_copied
        assert [(each.source_first, each.source_next, each.target_next) for each in check.ranges] == [
            (0, 10_000, target_end)
        ]


def test_an_empty_partition_is_idle() -> None:
    plan = _plan(_facts(runs=(), settled=None, source_end=0, target_end=0))

    assert (plan.idle, plan.unverifiable) == (1, ())


def test_a_budget_is_shared_by_all_partitions_and_takes_the_oldest_records() -> None:
    plan = _plan(_facts(0), _facts(1), _facts(2), budget=Budget(max_bytes=300_000))

    assert [check.ranges[0].records for check in plan.partitions] == [1_000, 1_000, 1_000]
    assert {check.ranges[0].source_first for check in plan.partitions} == {0}
    assert not any(check.ranges[0].to_end for check in plan.partitions)
    assert plan.estimated_bytes <= 300_000


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    facts = _facts(runs=(OffsetRun(0, 0, 1_000_000),), source_end=1_000_000, target_end=1_000_000)

    def chosen(seed: int) -> list[int]:
        check = _check(facts, mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=50_000), seed=seed)
        return [range_.source_first for range_ in check.ranges]

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)


def test_a_sample_keeps_to_its_budget_and_takes_something_of_every_partition() -> None:
    plan = _plan(*(_facts(number) for number in range(10)), mode=VerifyMode.SAMPLE, budget=Budget(max_bytes=200_000))

    assert len(plan.partitions) == 10
    assert plan.estimated_bytes == 10 * SAMPLE_RECORDS * 100
    assert all(check.population == 10_000 for check in plan.partitions)


@given(runs=run_lists(), source=st.integers(0, 60), target=st.integers(0, 60), end=st.integers(0, 80))
def test_clipping_keeps_exactly_the_records_within_bounds(
    runs: tuple[OffsetRun, ...], source: int, target: int, end: int
) -> None:
    clipped = clip(runs, source_first=source, source_next=end, target_first=target)

    assert records(clipped) == [(a, b) for a, b in records(runs) if source <= a < end and b >= target]


@given(runs=run_lists(), first=st.integers(0, 40), count=st.integers(0, 40))
def test_taking_gives_the_records_by_their_number(runs: tuple[OffsetRun, ...], first: int, count: int) -> None:
    assert records(take(runs, first, count)) == records(runs)[first : first + count]


@given(counts=st.lists(st.integers(1, 5_000), min_size=1, max_size=12), bins=st.integers(1, 5))
def test_every_partition_is_in_exactly_one_bin(counts: list[int], bins: int) -> None:
    facts = [
        _facts(number, runs=(OffsetRun(0, 0, count),), source_end=count, target_end=count, settled=None)
        for number, count in enumerate(counts)
    ]

    plan = _plan(*facts, bins_max=bins)

    assert sorted(check.source.partition for check in plan.partitions) == list(range(len(counts)))
    assert len(plan.bins) == min(bins, len(counts))
