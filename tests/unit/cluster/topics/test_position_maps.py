"""Offset maps of open positions that are too long for one record: parts in records of their own, joined when read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.cluster.topics.internal import PositionSnapshot, snapshot_of
from mirror_lib.cluster.topics.positions import (
    MAP_PART_RUNS,
    MapPart,
    Position,
    PositionKeys,
    PositionState,
    encode_part,
    encode_value,
    split_map,
)
from mirror_lib.cluster.topics.records import TopicRecord
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.topology.names import TopicPartition

ORDERS = TopicPartition("orders", 3)
KEYS = PositionKeys("A")


def holes(count: int) -> tuple[OffsetRun, ...]:
    """A map in which every second offset of the source is a hole."""
    return tuple(OffsetRun(2 * number, number, 1) for number in range(count))


def open_position(runs: Sequence[OffsetRun], claim: int = 7) -> Position:
    return Position(
        *ORDERS, 2 * len(runs) - 1, target_offset=len(runs), state=PositionState.OPEN, claim=claim, runs=tuple(runs)
    )


def written(position: Position) -> list[TopicRecord]:
    parts, rest = split_map(position)
    found = [(KEYS.encode_part(part), encode_part(runs)) for part, runs in parts]
    return [record(key, value) for key, value in [*found, (KEYS.encode(ORDERS), encode_value(rest))]]


def record(key: bytes, value: bytes | None) -> TopicRecord:
    return TopicRecord(partition=0, offset=0, key=key, value=value)


def read(records: Iterable[TopicRecord]) -> PositionSnapshot:
    return snapshot_of(KEYS, records, {})


@settings(max_examples=15)
@given(st.integers(0, 3 * MAP_PART_RUNS + 1))
@example(0)
@example(MAP_PART_RUNS - 1)
@example(MAP_PART_RUNS)
@example(MAP_PART_RUNS + 1)
@example(2 * MAP_PART_RUNS)
@example(3 * MAP_PART_RUNS + 1)
def test_given_a_map_of_any_length_when_split_and_read_then_it_is_whole(count: int) -> None:
    position = open_position(holes(count))

    found = read(written(position))

    assert found.positions[ORDERS].position == position
    assert found.unneeded_parts == frozenset()


def test_given_a_long_map_when_split_then_each_record_is_bounded_and_connect_reads_it() -> None:
    records = written(open_position(holes(4 * MAP_PART_RUNS)))

    assert len(records) == 4
    for each in records:
        assert each.value is not None
        assert len(each.value) < 500_000
        assert all(isinstance(value, str | int | bool) for value in json.loads(each.value).values())


def test_given_a_map_that_grows_then_the_parts_before_stay_what_they_are() -> None:
    before, _ = split_map(open_position(holes(2 * MAP_PART_RUNS + 10)))
    after, _ = split_map(open_position(holes(3 * MAP_PART_RUNS + 10)))

    assert after[: len(before)] == before
    assert len(after) == len(before) + 1


def test_given_a_part_that_is_missing_when_read_then_the_position_counts_without_it() -> None:
    position = open_position(holes(2 * MAP_PART_RUNS + 10))
    records = written(position)

    found = read(records[1:]).positions[ORDERS].position

    assert replace(found, runs=()) == replace(position, runs=())
    assert found.runs == position.runs[MAP_PART_RUNS:]


def test_given_parts_when_read_then_those_of_ended_claims_are_unneeded(subtests: pytest.Subtests) -> None:
    for case, newest, unneeded in (
        ("open", open_position((), claim=7), False),
        ("closed", replace(open_position((), claim=7), state=PositionState.CLOSED), True),
        ("claimed by another run", open_position((), claim=8), True),
        # Of a run that has begun since the positions were read.
        ("of a later claim", open_position((), claim=6), False),
    ):
        with subtests.test(case=case):
            part = MapPart(ORDERS, 7, 0)
            position = record(KEYS.encode(ORDERS), encode_value(newest))

            found = read([record(KEYS.encode_part(part), encode_part(holes(5))), position])

            assert found.unneeded_parts == (frozenset({part}) if unneeded else frozenset())


def test_given_parts_of_another_connector_or_cluster_then_they_are_not_seen() -> None:
    part = MapPart(ORDERS, 7, 0)
    for other in (PositionKeys("A", "backfill"), PositionKeys("C")):
        key = other.encode_part(part)
        assert KEYS.decode_part(key) is None
        assert KEYS.decode(key) is None
        assert other.decode_part(key) == part
