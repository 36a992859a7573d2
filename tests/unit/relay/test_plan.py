"""Planning: facts in, plan out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import OffsetOutOfRangeError, TopologyError
from mirror_lib.relay.model import PartitionFacts, PartitionPlan
from mirror_lib.relay.plan import FirstStart, pack, plan_round
from mirror_lib.topology.names import FlowId, TopicPartition

FLOW = FlowId("A", "B")


def facts(
    partition: int = 0,
    *,
    topic: str = "orders",
    log_start: int = 0,
    log_end: int = 100,
    position: int | None = None,
    position_topic_id: str | None = None,
    log_bytes: int | None = None,
) -> PartitionFacts:
    return PartitionFacts(
        source=TopicPartition(topic, partition),
        target=TopicPartition(f"A.{topic}", partition),
        log_start=log_start,
        log_end=log_end,
        topic_id="id-1",
        position=position,
        position_topic_id=position_topic_id,
        log_bytes=log_bytes,
        target_max_message_bytes=1_048_588,
    )


def planned(partition: int, weight: int, *, target: TopicPartition | None = None) -> PartitionPlan:
    source = TopicPartition("orders", partition)
    return PartitionPlan(
        source=source,
        target=target or TopicPartition("A.orders", partition),
        start=0,
        end=1,
        topic_id="id-1",
        target_max_message_bytes=1_048_588,
        estimated_bytes=weight,
    )


def test_a_partition_without_position_starts_at_the_log_start() -> None:
    plan = plan_round(FLOW, [facts(log_start=7)], tasks_max=1)

    assert [(p.start, p.end) for p in plan.partitions] == [(7, 100)]


def test_a_first_start_at_latest_has_nothing_to_copy() -> None:
    plan = plan_round(FLOW, [facts()], tasks_max=1, first_start=FirstStart.LATEST)

    assert plan.partitions == ()
    assert plan.idle == 1


def test_a_partition_goes_on_from_its_position() -> None:
    plan = plan_round(FLOW, [facts(position=40, position_topic_id="id-1")], tasks_max=1)

    assert [(p.start, p.end) for p in plan.partitions] == [(40, 100)]


def test_a_partition_that_is_copied_to_the_end_is_idle() -> None:
    plan = plan_round(FLOW, [facts(position=100)], tasks_max=1)

    assert (plan.partitions, plan.problems, plan.idle) == ((), (), 1)


def test_records_deleted_before_they_were_copied_stop_the_partition_and_only_it() -> None:
    plan = plan_round(FLOW, [facts(0, log_start=60, position=40), facts(1, position=40)], tasks_max=1)

    assert [p.source.partition for p in plan.partitions] == [1]
    (problem,) = plan.problems
    assert isinstance(problem.error, OffsetOutOfRangeError)
    assert "40 to 59" in str(problem.error)
    assert problem.error.where.topic == "orders"


def test_a_source_that_ends_before_the_position_stops_the_partition() -> None:
    plan = plan_round(FLOW, [facts(log_end=30, position=40)], tasks_max=1)

    assert isinstance(plan.problems[0].error, OffsetOutOfRangeError)


def test_a_topic_created_again_under_the_same_name_stops_the_partition() -> None:
    plan = plan_round(FLOW, [facts(position=40, position_topic_id="id-0")], tasks_max=1)

    assert isinstance(plan.problems[0].error, TopologyError)


def test_a_position_written_by_mm2_has_no_topic_id_and_is_trusted() -> None:
    plan = plan_round(FLOW, [facts(position=40, position_topic_id=None)], tasks_max=1)

    assert plan.problems == ()


def test_outstanding_bytes_are_the_share_of_the_log_that_is_left() -> None:
    plan = plan_round(FLOW, [facts(log_start=0, log_end=100, position=75, log_bytes=4_000)], tasks_max=1)

    assert plan.estimated_bytes == 1_000


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(1, 12))
def test_every_partition_is_in_exactly_one_bin(weights: list[int], tasks_max: int) -> None:
    partitions = [planned(number, weight) for number, weight in enumerate(weights)]

    bins = pack(partitions, tasks_max)

    assert sorted(p.source for bin_ in bins for p in bin_) == [p.source for p in partitions]
    assert len(bins) == min(tasks_max, len(partitions))


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=60), st.integers(1, 12))
def test_the_heaviest_bin_exceeds_the_average_by_at_most_one_partition(weights: list[int], tasks_max: int) -> None:
    # The bound of list scheduling (Graham 1966): no bin exceeds the mean plus the largest piece.
    bins = pack([planned(number, weight) for number, weight in enumerate(weights)], tasks_max)

    loads = [sum(p.weight for p in bin_) for bin_ in bins]
    assert max(loads) <= sum(weights) / len(bins) + max(weights)


def test_sources_merged_into_one_target_partition_share_a_bin() -> None:
    shared = TopicPartition("all-orders", 0)
    merged = [replace(planned(n, 10, target=shared), source=TopicPartition(f"orders-{n}", 0)) for n in range(3)]

    bins = pack([*merged, planned(5, 10)], tasks_max=4)

    assert sorted(len(bin_) for bin_ in bins) == [1, 3]


@pytest.mark.parametrize("tasks_max", [0, 1])
def test_at_least_one_task_runs(tasks_max: int) -> None:
    assert len(pack([planned(0, 1), planned(1, 1)], tasks_max)) == 1


class TestGivenAFirstStartAtTheEnd:
    def test_the_position_is_planned_and_nothing_is_copied(self) -> None:
        plan = plan_round(FLOW, [facts(log_end=100)], tasks_max=1, first_start=FirstStart.LATEST)
        assert plan.bins == ()
        assert [(partition.start, partition.end) for partition in plan.starts_at_end] == [(100, 100)]

    def test_a_partition_with_a_position_goes_on_from_there(self) -> None:
        plan = plan_round(FLOW, [facts(log_end=100, position=100)], tasks_max=1, first_start=FirstStart.LATEST)
        assert plan.starts_at_end == ()
        plan = plan_round(FLOW, [facts(log_end=120, position=100)], tasks_max=1, first_start=FirstStart.LATEST)
        assert [(partition.start, partition.end) for partition in plan.partitions] == [(100, 120)]

    def test_an_empty_first_start_from_the_beginning_stores_nothing(self) -> None:
        assert plan_round(FLOW, [facts(log_end=0)], tasks_max=1).starts_at_end == ()
