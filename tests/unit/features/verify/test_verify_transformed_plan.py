"""What a verification decides to read of transformed topics, and how it is parted by what records go through."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.model import (
    ColumnExpressions,
    FunctionKind,
    FunctionReference,
    Influence,
    NonDeterminism,
    SelectStatement,
    Transform,
    TransformChain,
)
from mirror_lib.features.verify.findings import Verdict, VerifiedMark
from mirror_lib.features.verify.model import Budget, PartitionCheck, VerifyFacts, VerifyJob, VerifyMode, VerifyPlan
from mirror_lib.features.verify.planning.by_transform_chain import split_job
from mirror_lib.features.verify.planning.chains import may_give_several
from mirror_lib.features.verify.planning.plan import plan_verification
from mirror_lib.features.verify.raw.local import run_locally
from mirror_lib.offsets.runs import OffsetRun, merge
from mirror_lib.topology.names import FlowId
from tests.support.brokers.partitions import verify_facts, verify_job

FLOW = FlowId("A", "B")
FILTER = TransformChain((Transform("some", filter="key IS NOT NULL"),))
MASK = TransformChain((Transform("mask", columns=ColumnExpressions(value="'*'")),))
EXPLODE = TransformChain((Transform("parts", select=SelectStatement("a.sql", "SELECT", ("value",)), one_to_many=True),))


def _function(**more: Any) -> Transform:
    return Transform("own", function=FunctionReference("company.masking", "mask", FunctionKind.ARROW), **more)


@cache
def _every_fourth(width: int) -> tuple[OffsetRun, ...]:
    return merge(OffsetRun(offset, offset // 4 * width, 1) for offset in range(0, 10_000, 4))


def _facts(partition: int = 0, **changes: Any) -> VerifyFacts:
    """Every fourth record is on the target, and three times where transforms make several of it."""
    several = may_give_several(changes.get("chain", FILTER))
    width = 3 if several else 1
    usual: dict[str, Any] = {
        "runs": _every_fourth(width),
        "source_end": 10_000,
        "target_end": 2_500 * width,
        "settled": VerifiedMark(10_000, 2_500 * width),
        "source_bytes": 1_000_000,
        "chain": FILTER,
    }
    return verify_facts(partition=partition, **(usual | changes))


def _plan(*facts: VerifyFacts, mode: VerifyMode = VerifyMode.FULL, **more: Any) -> VerifyPlan:
    return plan_verification(FLOW, facts, mode=mode, **more)


def _ranges(*facts: VerifyFacts, **more: Any) -> list[tuple[int, int, int, int]]:
    (check,) = _plan(*facts, **more).partitions
    return [(each.source_first, each.source_next, each.target_first, each.target_next) for each in check.ranges]


def test_when_no_run_is_writing_then_all_up_to_the_ends_of_both_logs_is_compared() -> None:
    for chain, target_end in ((FILTER, 2_500), (EXPLODE, 7_500)):
        (check,) = _plan(_facts(chain=chain)).partitions
        assert _ranges(_facts(chain=chain)) == [(0, 10_000, 0, target_end)]
        assert (check.chain, check.several, check.ranges[0].to_end) == (chain, chain is EXPLODE, True)


def test_while_a_run_writes_then_what_was_made_of_the_last_record_is_left_out_where_its_end_is_not_known() -> None:
    assert _ranges(_facts(settled=None, target_end=9_000)) == [(0, 9_997, 0, 2_500)]
    assert _ranges(_facts(settled=None, target_end=9_000, chain=EXPLODE)) == [(0, 9_996, 0, 7_497)]


def test_while_a_run_writes_and_only_one_record_is_known_that_becomes_several_then_nothing_is_compared() -> None:
    runs = (OffsetRun(0, 0, 1),)

    assert _plan(_facts(settled=None, target_end=3, runs=runs, chain=EXPLODE)).partitions == ()


def test_recent_begins_where_all_was_equal_last() -> None:
    mark = VerifiedMark(9_000, 6_750)

    assert _ranges(_facts(chain=EXPLODE, verified=mark), mode=VerifyMode.RECENT) == [(9_000, 10_000, 6_750, 7_500)]


def test_a_smaller_budget_ends_between_two_records() -> None:
    assert _ranges(_facts(), budget=Budget(max_bytes=500_000)) == [(0, 4_997, 0, 1_250)]
    assert _ranges(_facts(chain=EXPLODE), budget=Budget(max_bytes=500_000)) == [(0, 5_000, 0, 3_750)]


@given(seed=st.integers(0, 50), share=st.floats(0.01, 1.0), unsettled=st.booleans())
def test_every_stretch_of_a_sample_begins_and_ends_between_two_records(
    seed: int, share: float, unsettled: bool
) -> None:
    facts = _facts(chain=EXPLODE, **({"settled": None} if unsettled else {}))

    ranges = _ranges(facts, mode=VerifyMode.SAMPLE, seed=seed, budget=Budget(max_bytes=int(1_000_000 * share)))

    for source_first, source_next, target_first, target_next in ranges:
        assert (source_first % 4, target_first) == (0, source_first // 4 * 3)
        assert (source_next % 4, target_next) == (0, source_next // 4 * 3)
        assert source_first < source_next


def test_where_transforms_may_have_dropped_all_then_the_source_is_read_for_what_they_keep() -> None:
    facts = _facts(runs=(), target_start=0, target_end=0, settled=VerifiedMark(10_000, 0))

    (check,) = _plan(facts).partitions

    assert _ranges(facts) == [(0, 10_000, 0, 0)]
    assert check.nothing_copied


def test_without_a_map_nothing_can_be_verified_in_any_other_case() -> None:
    for changes in ({"target_end": 50}, {"settled": None}):
        settings: dict[str, Any] = {"runs": (), "target_end": 0, "settled": VerifiedMark(10_000, 0), **changes}
        (verdict,) = _plan(_facts(**settings)).unverifiable
        assert verdict.reason == "no-map", changes


_CHANCE = NonDeterminism("rand()", Influence.RANDOM)


def test_what_cannot_be_made_again_in_its_place_is_unverifiable() -> None:
    for transform, told in (
        (Transform("dice", filter="rand() < 0.5", non_determinism=(_CHANCE,)), "rand() depends on"),
        (_function(), "own (it is a function)"),
    ):
        plan = _plan(_facts(chain=TransformChain((*MASK.transforms, transform))))

        assert plan.partitions == ()
        (verdict,) = plan.unverifiable
        assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "not-deterministic")
        assert told in (verdict.detail or "")


def test_a_function_that_is_stated_to_be_deterministic_is_compared_and_may_give_several() -> None:
    chain = TransformChain((_function(stated_deterministic=True),))

    assert _plan(_facts(chain=chain)).partitions[0].several


def test_what_stays_is_compared_by_the_map_where_transforms_send_other_records_elsewhere() -> None:
    for columns in (ColumnExpressions(topic="'elsewhere'"), ColumnExpressions(partition="0")):
        chain = TransformChain((Transform("away", columns=columns),))
        assert _ranges(_facts(chain=chain)) == _ranges(_facts()), columns


def test_nothing_is_said_of_transforms_where_nothing_was_copied_yet() -> None:
    chain = TransformChain((_function(),))

    plan = _plan(_facts(chain=chain, runs=(), target_end=0, settled=VerifiedMark(0, 0)))

    assert (plan.unverifiable, plan.idle) == ((), 1)


def _job(plan: VerifyPlan, **more: Any) -> VerifyJob:
    return verify_job(bins=plan.bins, **more)


def _checks(job: VerifyJob) -> set[PartitionCheck]:
    return {check for bin_ in job.bins for check in bin_}


@given(
    chains=st.lists(st.sampled_from([TransformChain(), FILTER, MASK]), min_size=1, max_size=12), bins=st.integers(1, 5)
)
def test_a_job_is_parted_by_chains_and_nothing_is_lost(chains: list[TransformChain], bins: int) -> None:
    # Maps of few runs: how many there are is no matter of this.
    runs = (OffsetRun(0, 0, 2_500),)
    facts = [_facts(number, chain=chain, runs=runs) for number, chain in enumerate(chains)]
    job = _job(_plan(*facts, bins_max=bins))

    raw, transformed = split_job(job)

    assert {check.chain for check in _checks(raw)} <= {TransformChain()}
    assert [each.chain for each in transformed] == list(dict.fromkeys(each.chain for each in transformed))
    for each in transformed:
        assert {check.chain for check in _checks(each.job)} == {each.chain}
    parts = [_checks(raw), *(_checks(each.job) for each in transformed)]
    assert sum(map(len, parts)) == len(chains)
    assert set().union(*parts) == _checks(job)


def test_a_budget_of_bytes_is_shared_by_weight() -> None:
    plan = _plan(_facts(0, chain=TransformChain()), _facts(1, source_bytes=3_000_000), bins_max=2)

    raw, (filtered,) = split_job(_job(plan, bin_max_bytes=200_000))

    assert (raw.bin_max_bytes, filtered.job.bin_max_bytes) == (100_000, 300_000)


def test_without_spark_what_goes_through_transforms_is_left_unverifiable() -> None:
    (verdict,) = run_locally(1)(_job(_plan(_facts())))

    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "needs-spark")
    assert "spark_jobs/verify.py" in (verdict.detail or "")


def test_the_plan_names_the_transforms() -> None:
    (partition,) = _plan(_facts(chain=MASK)).to_dict()["partitions"]

    assert partition["transforms"] == ["mask"]
