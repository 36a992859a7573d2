"""How fast a run may copy: the limits of its flow and of its clusters, round by round."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.config import loader as loading
from mirror_lib.config.model import FlowConfig
from mirror_lib.copy.transfer.throttle import task_rates
from mirror_lib.errors import ClusterError
from mirror_lib.ledger.rows import RateSide
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.rate_claims import RateAsk
from mirror_lib.planning.model import PartitionPlan, PartitionResult, RunPlan
from mirror_lib.planning.rate_limits import RunRate, cluster_limits
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_result
from tests.support.ledger.ledgers import ready_ledger
from tests.unit.copy.conftest import Clock

FLOW = FlowId("A", "B")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ready_ledger(f"sqlite:///{tmp_path}/ledger.sqlite3") as ledger:
        for flow in ("A->B", "A->C"):
            ledger.acquire_lock(flow=flow, run_id="r", holder="me", lease_seconds=30)
        yield ledger


def configured(folder: Path, *lines: str, flow: FlowId = FLOW) -> FlowConfig:
    file = folder / "mirror.properties"
    clusters = [f"{alias}.bootstrap.servers = {alias.lower()}:9092" for alias in "ABC"]
    file.write_text("\n".join(["clusters = A, B, C", *clusters, f"{flow}.enabled = true", *lines]))
    return loading.load(file).flow(flow)


def partition(number: int, start: int, end: int, size: int) -> PartitionPlan:
    return PartitionPlan(TopicPartition("t", number), TopicPartition("A.t", number), start, end, None, 1 << 20, size)


def plan_of(*bins: tuple[PartitionPlan, ...]) -> RunPlan:
    return RunPlan(flow=FLOW, bins=bins, problems=(), idle=0)


def result(each: PartitionPlan, size: int, *, error: ClusterError | None = None) -> PartitionResult:
    return partition_result(each, source_next=each.start if error else each.end, bytes=size, error=error)


class Rates:
    """Makes the rates of runs by lines of a configuration, over one ledger."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self.folder, self.ledger, self.clock = folder, ledger, Clock()

    def of(self, *lines: str, flow: FlowId = FLOW, chosen: int | None = None) -> RunRate:
        configured_flow = configured(self.folder, *lines, flow=flow)
        clock = self.clock
        return RunRate(
            configured_flow, self.ledger, run_id="r", bytes_per_second=chosen, clock=clock, sleep=clock.sleep
        )


@pytest.fixture
def rates(tmp_path: Path, ledger: Ledger) -> Rates:
    return Rates(tmp_path, ledger)


@given(st.floats(1, 1e10), st.lists(st.integers(0, 10**12), min_size=1, max_size=50))
def test_the_parts_of_the_tasks_add_up_to_the_limit_and_none_is_nothing(limit: float, weights: list[int]) -> None:
    rates = task_rates(limit, weights)

    assert sum(rates) == pytest.approx(limit)
    assert min(rates) >= 0.1 * limit / len(weights) * (1 - 1e-9)
    assert sorted(range(len(weights)), key=lambda at: (weights[at], at)) == sorted(
        range(len(weights)), key=lambda at: (rates[at], weights[at], at)
    )


def test_a_task_with_all_the_bytes_has_nearly_all_of_the_limit() -> None:
    # A tenth is shared evenly by three: sizes are estimates.
    assert task_rates(3000.0, [1_000_000, 0, 0]) == pytest.approx([2800.0, 100.0, 100.0])
    assert task_rates(3000.0, [0, 0, 0]) == [1000.0, 1000.0, 1000.0]


def test_a_flow_has_a_limit_and_a_run_may_have_another(rates: Rates) -> None:
    for chosen, kept in ((None, 5_000), (700, 700), (9_000, 9_000)):
        rate = rates.of("mirror.rate.limit.bytes = 5000", chosen=chosen)

        rate.begin(plan_of((partition(0, 0, 10, 100),)))

        assert rate.bytes_per_second == kept, chosen


def test_the_limits_of_clusters_are_those_of_the_source_for_reading_and_of_the_target_for_writing(
    tmp_path: Path,
) -> None:
    flow = configured(
        tmp_path,
        "A.mirror.rate.limit.read.bytes = 1000",
        "A.mirror.rate.limit.write.bytes = 1",
        "B.mirror.rate.limit.read.bytes = 1",
        "B.mirror.rate.limit.write.bytes = 2000",
    )

    assert cluster_limits(flow) == (RateAsk(RateSide.READ, "A", 1000), RateAsk(RateSide.WRITE, "B", 2000))


def test_given_a_limit_of_a_cluster_when_a_run_wants_more_than_the_flow_may_then_the_flows_limit_is_claimed(
    rates: Rates,
) -> None:
    lines = ("A.mirror.rate.limit.read.bytes = 10000", "A->B.mirror.rate.limit.bytes = 3000")
    first = rates.of(*lines)
    second = rates.of(*lines, flow=FlowId("A", "C"))

    first.begin(plan_of((partition(0, 0, 10, 10**9),)))
    second.begin(plan_of((partition(0, 0, 10, 10**9),)))

    assert (first.bytes_per_second, second.bytes_per_second) == (3_000, 7_000)


def test_given_a_short_round_then_others_have_what_it_does_not_need(rates: Rates) -> None:
    line = "A.mirror.rate.limit.read.bytes = 10000000"
    first = rates.of(line)
    second = rates.of(line, flow=FlowId("A", "C"))

    # In five seconds.
    first.begin(plan_of((partition(0, 0, 10, 5 * 2_000_000),)))
    second.begin(plan_of((partition(0, 0, 10, 10**9),)))

    assert (first.bytes_per_second, second.bytes_per_second) == (2_000_000, 8_000_000)


def test_given_an_interrupted_partition_without_anything_to_copy_then_a_part_of_the_plan_has_it_too(
    rates: Rates,
) -> None:
    interrupted = partition(1, 500, 500, 0)
    much = partition(0, 0, 1_000, 100_000_000)

    part = rates.of("B.mirror.rate.limit.write.bytes = 1000").begin(plan_of((much, interrupted)))

    assert interrupted in part.partitions
    assert part.partitions[0].end < 1_000


def test_given_a_partition_that_failed_when_the_run_goes_on_then_it_is_left_alone(rates: Rates) -> None:
    rate = rates.of("A.mirror.rate.limit.read.bytes = 1000")
    wanted = plan_of((partition(0, 0, 500, 10**6),), (partition(1, 0, 500, 10**6),))
    good, bad = rate.begin(wanted).partitions

    rate.end([result(good, 10_000), result(bad, 0, error=ClusterError("it broke."))])

    assert rate.may_continue
    again = rate.begin(plan_of((partition(0, good.end, 500, 9 * 10**5),), (partition(1, 0, 500, 10**6),)))
    assert [each.source.partition for each in again.partitions] == [0]


def test_given_partitions_that_were_not_opened_then_the_run_does_not_go_on_for_them(rates: Rates) -> None:
    rate = rates.of("A.mirror.rate.limit.read.bytes = 1000")
    rate.begin(plan_of((partition(0, 0, 500, 10**9),)))

    rate.end([])

    assert not rate.may_continue


def test_given_a_round_that_read_more_than_its_time_allows_then_the_next_one_waits(rates: Rates) -> None:
    clock = rates.clock
    rate = rates.of("mirror.rate.limit.bytes = 1000")
    plan = plan_of((partition(0, 0, 10, 5_000),))
    copied = 0

    for _ in range(4):
        rate.begin(plan)
        assert copied <= 1000 * clock.now
        clock.now += 1
        rate.end([result(plan.partitions[0], 5_000)])
        copied += 5_000


def test_given_the_end_of_a_round_then_its_share_is_free(rates: Rates) -> None:
    rate = rates.of("A.mirror.rate.limit.read.bytes = 1000")
    plan = rate.begin(plan_of((partition(0, 0, 10, 100),)))
    assert [(claim.flow, claim.cluster) for claim in rates.ledger.rate_claims()] == [("A->B", "A")]

    rate.end([result(each, 100) for each in plan.partitions])

    assert rates.ledger.rate_claims() == ()


def test_a_large_plan_without_limits_is_cut_into_rounds_of_about_ten_minutes(rates: Rates) -> None:
    clock, size = rates.clock, 1 << 40
    rate = rates.of()
    first = rate.begin(plan_of((partition(0, 0, 1 << 30, size),))).partitions[0]
    assert first.estimated_bytes == pytest.approx(4 << 30, rel=0.01)

    clock.now += 100.0
    rate.end([result(first, first.estimated_bytes)])
    assert rate.may_continue
    assert rate.left == (1 << 30) - first.end

    # More has come since: the run copies the plan that it began with.
    rest = partition(0, first.end, 2 << 30, 2 * size)
    second = rate.begin(plan_of((rest,))).partitions[0]
    assert second.estimated_bytes == pytest.approx(6 * first.estimated_bytes, rel=0.01)
    # The network has become fast.
    clock.now += 1.0
    rate.end([result(second, 2 * size)])
    assert rate.may_continue

    third = rate.begin(plan_of((partition(0, second.end, 2 << 30, 2 * size),))).partitions[0]
    assert third.end == 1 << 30
    rate.end([result(third, size)])
    assert (rate.may_continue, rate.left) == (False, 0)


def test_partitions_of_unknown_size_are_cut_too_and_their_size_is_learned(rates: Rates) -> None:
    """A principal that may not describe log directories gets no sizes."""
    clock, offsets = rates.clock, 1 << 30
    rate = rates.of()
    first = rate.begin(plan_of((partition(0, 0, offsets, 0),))).partitions[0]
    assert (first.end, first.estimated_bytes) == ((4 << 30) // 1024, 0)

    # Records of 10 bytes at 1 MB/s: ten minutes are 60 million offsets.
    clock.now += first.end * 10 / 1e6
    rate.end([result(first, first.end * 10)])
    assert rate.left == offsets - first.end
    second = rate.begin(plan_of((partition(0, first.end, offsets, 0),))).partitions[0]

    assert second.end - second.start == pytest.approx(60_000_000, rel=0.01)
