"""What a verification decides to read, from what both sides hold."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.verify.findings import Verdict, VerifiedMark
from mirror_lib.features.verify.model import Budget, PartitionCheck, VerifyFacts, VerifyMode, VerifyPlan
from mirror_lib.features.verify.planning.plan import SAMPLE_RECORDS, clip, plan_verification, take
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.topology.names import FlowId
from tests.support.brokers.partitions import verify_facts
from tests.support.records.offset_maps import records, run_lists

FLOW = FlowId("A", "B")


def _facts(partition: int = 0, **changes: Any) -> VerifyFacts:
    usual: dict[str, Any] = {
        "runs": (OffsetRun(0, 0, 10_000),),
        "source_end": 10_000,
        "target_end": 10_000,
        "settled": VerifiedMark(10_000, 10_000),
        "source_bytes": 1_000_000,
    }
    return verify_facts(partition=partition, **(usual | changes))


def _plan(*facts: VerifyFacts, mode: VerifyMode = VerifyMode.FULL, **more: Any) -> VerifyPlan:
    return plan_verification(FLOW, facts, mode=mode, **more)


def _check(*facts: VerifyFacts, **more: Any) -> PartitionCheck:
    (check,) = _plan(*facts, **more).partitions
    return check


def _range(check: PartitionCheck) -> tuple[int, int, int, int]:
    (range_,) = check.ranges
    return range_.source_first, range_.source_next, range_.target_first, range_.target_next


def test_all_that_both_sides_hold_is_compared_and_behind_the_map_only_where_no_run_is_writing() -> None:
    whole = (0, 10_000, 0, 10_000)
    later = VerifiedMark(10_200, 10_200)

    for name, changes, range_, to_end in (
        ("both sides", {"source_start": 100, "target_start": 300}, (300, 10_000, 300, 10_000), True),
        ("nothing may follow the copy", {"target_end": 10_003}, (0, 10_000, 0, 10_003), True),
        ("a run writes", {"settled": None, "target_end": 10_500}, whole, False),
        # A position that is newer than the end says nothing of it.
        ("a newer position", {"settled": later, "source_end": 10_200}, whole, False),
        (
            "somebody wrote behind what retention has deleted",
            {"source_start": 10_000, "target_end": 10_001},
            (10_000, 10_000, 10_000, 10_001),
            True,
        ),
    ):
        check = _check(_facts(**changes))
        assert (_range(check), check.ranges[0].to_end) == (range_, to_end), name

    check = _check(_facts(source_start=100, target_start=300))
    assert (check.ranges[0].records, check.expired) == (9_700, 300)


def test_what_the_map_knows_behind_a_targets_end_is_compared_so_that_its_loss_is_found() -> None:
    check = _check(_facts(target_end=9_000))

    assert check.ranges[0].records == 10_000
    assert check.target_end == 9_000


def test_recent_begins_where_all_was_equal_last_or_anew_where_the_logs_are_others() -> None:
    mark = VerifiedMark(9_000, 9_000)
    copied_again = {
        "runs": (OffsetRun(0, 9_000, 10_000),),
        "target_end": 19_000,
        "settled": VerifiedMark(10_000, 19_000),
    }
    behind_all = {
        "target_start": 10_000,
        "target_end": 10_001,
        "source_end": 10_003,
        "settled": VerifiedMark(10_003, 10_001),
    }

    for name, verified, changes, range_ in (
        ("where it was equal", mark, {}, (9_000, 10_000, 9_000, 10_000)),
        # The first record that both sides have.
        ("the target has deleted", mark, {"target_start": 9_500}, (9_500, 10_000, 9_500, 10_000)),
        ("the source has deleted", mark, {"source_start": 9_500}, (9_500, 10_000, 9_500, 10_000)),
        ("behind all that was copied", mark, behind_all, (10_000, 10_003, 10_000, 10_001)),
        ("the log is shorter", VerifiedMark(20_000, 20_000), {}, (0, 10_000, 0, 10_000)),
        ("the partition was copied again", mark, copied_again, (0, 10_000, 9_000, 19_000)),
    ):
        check = _check(_facts(verified=verified, **changes), mode=VerifyMode.RECENT)
        assert _range(check) == range_, name
        if range_[0] == 9_500:
            assert (check.ranges[0].records, check.expired) == (500, 9_500), name


def test_where_nothing_came_recent_has_nothing_to_do_and_it_is_equal_up_to_the_end_still() -> None:
    resting = _facts(verified=VerifiedMark(10_000, 10_000))

    plan = _plan(resting, mode=VerifyMode.RECENT)

    assert (plan.partitions, plan.idle) == ((), 1)
    (verdict,) = plan.confirmed
    assert (verdict.source, verdict.verdict, verdict.records) == (resting.source, Verdict.EQUAL, 0)
    (outcome,) = verdict.outcomes
    assert (outcome.source_first, outcome.source_next) == (10_000, 10_000)
    assert (outcome.target_first, outcome.target_next) == (10_000, 10_000)


def test_where_something_may_have_come_nothing_is_confirmed() -> None:
    changes: dict[str, dict[str, Any]] = {
        "a run is writing": {"settled": None},
        "more was copied": {"settled": VerifiedMark(10_005, 10_005)},
        "more was written": {"target_end": 10_001},
        "never verified": {"verified": None, "runs": (), "settled": VerifiedMark(0, 0)},
        "not to the end": {"verified": VerifiedMark(9_000, 9_000)},
    }
    for name, changed in changes.items():
        facts = _facts(**{"verified": VerifiedMark(10_000, 10_000), **changed})
        assert _plan(facts, mode=VerifyMode.RECENT).confirmed == (), name


def test_where_retention_has_deleted_all_that_was_copied_it_is_equal_up_to_the_end_and_counted_as_expired() -> None:
    for start in ("source_start", "target_start"):
        for mode in (VerifyMode.RECENT, VerifyMode.FULL):
            (verdict,) = _plan(_facts(**{start: 10_000}), mode=mode).confirmed
            assert (verdict.verdict, verdict.records, verdict.expired_records) == (Verdict.EQUAL, 0, 10_000), start
            (outcome,) = verdict.outcomes
            assert (outcome.source_next, outcome.target_next) == (10_000, 10_000), start

    deleted = _facts(verified=VerifiedMark(9_000, 9_000), target_start=10_000)
    assert _plan(deleted, mode=VerifyMode.RECENT).partitions == ()


def test_given_an_empty_source_and_a_target_with_records_from_before_the_flow_then_none_of_them_is_compared() -> None:
    """A flow back whose partition nobody wrote to after the cutover: the first start there had skipped these three."""
    plan = _plan(_facts(runs=(), source_end=0, target_end=3, settled=VerifiedMark(0, 3)))

    assert (list(plan.unverifiable), list(plan.partitions)) == ([], [])


def test_without_a_map_nothing_can_be_said_of_a_partition_that_is_not_empty() -> None:
    plan = _plan(_facts(runs=(), settled=None))
    empty = _plan(_facts(runs=(), settled=None, source_end=0, target_end=0))

    assert [verdict.reason for verdict in plan.unverifiable] == ["no-map"]
    assert (empty.idle, empty.unverifiable) == (1, ())


def test_where_nothing_was_written_the_source_is_read_for_what_should_have_been() -> None:
    # All that a run has read may have been aborted; the target has no more than markers of fences.
    for target_end in (0, 1):
        check = _check(_facts(runs=(), target_end=target_end, settled=VerifiedMark(10_000, target_end)))

        assert check.nothing_copied
        assert _range(check) == (0, 10_000, 0, target_end)


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
