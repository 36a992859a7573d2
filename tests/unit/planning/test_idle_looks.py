"""Idle partitions are asked in parts, and after as many plans as there are parts all were asked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.planning.idle_looks import MOST_BYTES, MOST_PARTITIONS, parts
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition

SIZES = st.lists(st.integers(61, 2 * MOST_BYTES), max_size=40)


def idle(sizes: list[int]) -> dict[TopicPartition, LastRecord]:
    return {TopicPartition("t", number): LastRecord(9, size, 1) for number, size in enumerate(sizes)}


@given(SIZES)
def test_each_partition_is_in_one_part_and_no_part_is_too_large(sizes: list[int]) -> None:
    found = parts(idle(sizes))

    assert sorted(partition for part in found for partition in part) == sorted(idle(sizes))
    assert all(len(part) == 1 or sum(each.batch_bytes for each in part.values()) <= MOST_BYTES for part in found)


def test_given_more_partitions_than_a_plan_asks_then_parts_are_as_few_as_possible() -> None:
    assert parts({}) == []
    assert [len(part) for part in parts(idle([100] * MOST_PARTITIONS))] == [MOST_PARTITIONS]
    assert [len(part) for part in parts(idle([100] * (2 * MOST_PARTITIONS + 1)))] == [MOST_PARTITIONS] * 2 + [1]
