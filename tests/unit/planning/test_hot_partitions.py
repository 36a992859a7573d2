"""A partition with more than a task's fair share is told, in words and as data."""

from __future__ import annotations

from mirror_lib.planning.model import PartitionPlan
from mirror_lib.planning.plan import find_hot_partitions, hot_partition_warnings, plan_round
from mirror_lib.topology.names import FlowId, TopicPartition
from tests.support.brokers.partitions import partition_facts, partition_plan

MB = 1_000_000


def planned(partition: int, size: int, *, offsets: int = 1) -> PartitionPlan:
    return partition_plan(partition=partition, end=offsets, estimated_bytes=size)


def alone(*partitions: PartitionPlan) -> list[list[PartitionPlan]]:
    return [[partition] for partition in partitions]


def test_a_partition_with_more_than_its_share_is_hot() -> None:
    (hot,) = find_hot_partitions(alone(planned(0, 900 * MB), *(planned(n, 20 * MB) for n in range(1, 6))), 4)

    assert hot.source == TopicPartition("orders", 0)
    assert (hot.weight, hot.fair_share, hot.tasks, hot.in_bytes) == (900 * MB, 250 * MB, 4, True)
    assert hot.times_fair_share == 3.6


def test_partitions_of_about_the_same_size_are_not_hot_however_many_tasks_there_are() -> None:
    partitions = alone(*(planned(number, (100 + number) * MB) for number in range(4)))

    assert [find_hot_partitions(partitions, tasks) for tasks in (2, 4, 100)] == [(), (), ()]


def test_a_single_partition_leaves_the_other_tasks_without_work() -> None:
    (hot,) = find_hot_partitions(alone(planned(0, 900 * MB)), 8)

    assert hot.times_fair_share == 2


def test_partitions_that_share_a_target_are_one_and_the_largest_of_them_gives_the_name() -> None:
    merged = [planned(0, 200 * MB), planned(1, 300 * MB)]

    (hot,) = find_hot_partitions([merged, *alone(*(planned(n, 20 * MB) for n in range(2, 6)))], 4)

    assert (hot.source, hot.weight) == (TopicPartition("orders", 1), 500 * MB)


def test_with_a_single_task_there_is_nothing_to_share_out_and_small_rounds_are_not_worth_a_word() -> None:
    assert find_hot_partitions(alone(planned(0, 900 * MB), planned(1, MB)), 1) == ()
    assert find_hot_partitions(alone(planned(0, 5 * MB), planned(1, 1_000)), 4) == ()


def test_where_sizes_are_not_known_offsets_are_told() -> None:
    partitions = alone(planned(0, 0, offsets=9_000_000), planned(1, 0, offsets=1_000), planned(2, 0, offsets=1_000))

    (hot,) = find_hot_partitions(partitions, 3)

    assert not hot.in_bytes
    assert "9,000,000 offsets" in hot_partition_warnings([hot])[0]


def test_the_warning_has_numbers_says_what_helps_and_that_more_tasks_do_not() -> None:
    hot = find_hot_partitions(alone(planned(0, 900 * MB), *(planned(n, 20 * MB) for n in range(1, 6))), 4)

    (warning,) = hot_partition_warnings(hot)

    for told in ("orders-0", "900.0 MB", "3.6 times", "250.0 MB", "4 tasks", "more tasks do not help"):
        assert told in warning
    for help_ in ("more partitions", "a separate flow", "batch.size", "mirror.batch.max.bytes"):
        assert help_ in warning


def test_a_plan_holds_the_hot_partitions_as_words_and_as_data() -> None:
    sizes = (900 * MB, 20 * MB, 20 * MB)
    facts = [partition_facts(partition=number, log_end=1_000, log_bytes=size) for number, size in enumerate(sizes)]

    plan = plan_round(FlowId("A", "B"), facts, tasks_max=2)

    assert len(plan.warnings) == 1
    (data,) = plan.to_dict()["hot_partitions"]
    assert (data["topic"], data["partition"], data["unit"]) == ("orders", 0, "bytes")
    assert (data["weight"], data["fair_share"], data["times_fair_share"]) == (900 * MB, 470 * MB, 1.91)
