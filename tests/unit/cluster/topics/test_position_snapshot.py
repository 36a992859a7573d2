"""What the records of a position topic come to: which of a partition's counts, and what its last claim was.

Offset maps of open positions that are too long for one record: parts in records of their own, joined when read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.cluster.topics.position_format import (
    MAP_PART_RUNS,
    ClusterPair,
    MapPart,
    OmittedRange,
    Position,
    PositionKeys,
    PositionState,
    claim_of,
    decode_value,
    encode_part,
    encode_value,
    split_map,
)
from mirror_lib.cluster.topics.position_store import PositionSnapshot, snapshot_of
from mirror_lib.cluster.topics.records import TopicRecord
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition

KEYS = PositionKeys("A")
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 3)
#: Of one partition; `None` forgets it.
Written = Position | bytes | None


def position(claim: int | None, state: PositionState | None, *, offset: int = 41) -> Position:
    return Position("orders", 0, offset, target_offset=offset + 1, state=state, run_id="run-1", claim=claim)


OPEN, CLOSED = PositionState.OPEN, PositionState.CLOSED


def value(written: Written) -> bytes | None:
    return encode_value(written) if isinstance(written, Position) else written


def snapshot(*values: bytes | None, source: TopicPartition = ORDERS) -> PositionSnapshot:
    key = KEYS.encode(source)
    return snapshot_of(
        KEYS, [TopicRecord(0, offset, key, each) for offset, each in enumerate(values)], {0: len(values)}
    )


def written_otherwise(encoded: bytes | None) -> bytes | None:
    """The same JSON as another program may write it, which says nothing before it is read as a whole."""
    try:
        return encoded if encoded is None else json.dumps(json.loads(encoded), indent=1).encode()
    except ValueError:
        return encoded


positions = st.builds(
    position,
    st.none() | st.integers(0, 3),
    st.sampled_from([None, OPEN, CLOSED]),
    offset=st.sampled_from([-1, 0, 41]),
)
histories: st.SearchStrategy[list[Written]] = st.lists(positions | st.none() | st.just(b"no position"), max_size=7)


class TestRecordsInTurn:
    """Records that each take the place of the one before, as runs write them."""

    def test_the_newest_one_counts_and_the_claim_is_its_own(self) -> None:
        history = [position(1, OPEN), position(1, CLOSED), position(2, OPEN), position(2, OPEN), position(2, CLOSED)]

        found = snapshot(*map(encode_value, history))

        assert found.positions[ORDERS].position == history[-1]
        assert found.positions[ORDERS].record.offset == 4
        assert found.claims == {ORDERS: 2}
        assert not found.buried
        assert not found.unreadable

    def test_one_that_comes_late_does_not_count_and_buries_the_one_that_does(self) -> None:
        closed = position(2, CLOSED)

        found = snapshot(*map(encode_value, [position(2, OPEN), closed, position(1, CLOSED, offset=7)]))

        assert found.positions[ORDERS].position == closed
        assert found.claims == {ORDERS: 2}
        assert found.buried == {ORDERS}

    def test_within_a_claim_nothing_counts_behind_what_closed_it(self) -> None:
        closed = position(1, CLOSED)

        found = snapshot(*map(encode_value, [position(1, OPEN), closed, position(1, OPEN, offset=7)]))

        assert found.positions[ORDERS].position == closed
        assert found.buried == {ORDERS}

    def test_one_that_was_forgotten_does_not_come_back_with_a_late_record(self) -> None:
        found = snapshot(encode_value(position(3, OPEN)), None, encode_value(position(3, OPEN, offset=50)))

        assert (found.positions, found.claims) == ({}, {ORDERS: 3})

    def test_one_that_cannot_be_read_takes_the_place_of_the_one_before_and_is_told(self) -> None:
        found = snapshot(encode_value(position(3, CLOSED)), b"garbage")

        assert found.positions == {}
        assert found.unreadable[ORDERS].error.what == "the value is not JSON"

    def test_partitions_do_not_mix(self) -> None:
        key, other = KEYS.encode(ORDERS), KEYS.encode(PAYMENTS)
        mine = [encode_value(position(claim, CLOSED)) for claim in (1, 2)]
        foreign = [encode_value(replace(position(5, state), topic="payments", partition=3)) for state in (OPEN, CLOSED)]
        records = [
            TopicRecord(0, 2 * turn + place, name, each)
            for turn, pair in enumerate(zip(mine, foreign, strict=True))
            for place, (name, each) in enumerate(zip((key, other), pair, strict=True))
        ]

        found = snapshot_of(KEYS, [*records, TopicRecord(0, 4, b"another connector's", b"{}")], {0: 5})

        assert found.claims == {ORDERS: 2, PAYMENTS: 5}
        assert {source: each.record.offset for source, each in found.positions.items()} == {ORDERS: 2, PAYMENTS: 3}


@settings(max_examples=500)
@given(history=histories)
def test_how_the_records_are_written_does_not_matter(history: Sequence[Written]) -> None:
    usual = [value(written) for written in history]

    found, other = snapshot(*usual), snapshot(*map(written_otherwise, usual))

    # Errors are equal to themselves only.
    assert {source: each.record for source, each in found.unreadable.items()} == {
        source: each.record for source, each in other.unreadable.items()
    }
    assert replace(found, unreadable={}) == replace(other, unreadable={})


@settings(max_examples=300)
@given(
    written=st.builds(
        Position,
        st.just("orders"),
        st.just(0),
        st.integers(-1, 2**63 - 1),
        target_offset=st.none() | st.integers(0, 2**63 - 1),
        state=st.sampled_from([None, OPEN, CLOSED]),
        producer_id=st.none() | st.integers(0, 2**63 - 1),
        epoch=st.none() | st.integers(0, 2**15 - 1),
        run_id=st.none() | st.uuids().map(str) | st.text(max_size=5),
        topic_id=st.none() | st.text(max_size=5),
        target_topic=st.none() | st.text(max_size=5),
        target_topic_id=st.none() | st.text(max_size=5),
        clusters=st.none() | st.builds(ClusterPair, st.text(max_size=5), st.text(max_size=5)),
        leader_epoch=st.none() | st.integers(0, 9),
        last_record=st.none() | st.builds(LastRecord, *[st.integers(0, 10**18 - 1)] * 3),
        claim=st.none() | st.integers(0, 2**63 - 1),
        skipped=st.just(()) | st.just((OmittedRange(1, 2, 1, "corrupt-batch"),)),
    )
)
def test_what_is_told_of_a_claim_is_what_reading_the_whole_record_tells(written: Position) -> None:
    encoded = encode_value(written)

    told, read = claim_of(encoded), decode_value(ORDERS, encoded)

    assert read == written
    assert told is None or (told.number, told.open) == (read.claim, read.state is OPEN)


@given(st.binary(max_size=200) | st.integers(0, 100).map(lambda cut: encode_value(position(1, OPEN))[:cut]))
def test_nothing_is_told_of_what_cannot_be_read(encoded: bytes) -> None:
    told = claim_of(encoded)

    if told is not None:
        read = decode_value(ORDERS, encoded)
        assert (told.number, told.open) == (read.claim, read.state is OPEN)


def test_nothing_is_told_of_a_number_that_no_position_has() -> None:
    for name, number in (("offset", -2), ("claim", -1), ("claim", 2**63), ("epoch", 1.5), ("claim", True)):
        data = {**json.loads(encode_value(replace(position(1, OPEN), epoch=1))), name: number}

        assert claim_of(json.dumps(data, separators=(",", ":")).encode()) is None, (name, number)


def holes(count: int) -> tuple[OffsetRun, ...]:
    """A map in which every second offset of the source is a hole."""
    return tuple(OffsetRun(2 * number, number, 1) for number in range(count))


def open_position(runs: Sequence[OffsetRun], claim: int = 7) -> Position:
    return Position(
        *PAYMENTS, 2 * len(runs) - 1, target_offset=len(runs), state=PositionState.OPEN, claim=claim, runs=tuple(runs)
    )


def written(position: Position) -> list[TopicRecord]:
    parts, rest = split_map(position)
    found = [(KEYS.encode_part(part), encode_part(runs)) for part, runs in parts]
    return [record(key, value) for key, value in [*found, (KEYS.encode(PAYMENTS), encode_value(rest))]]


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

    assert found.positions[PAYMENTS].position == position
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

    found = read(records[1:]).positions[PAYMENTS].position

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
            part = MapPart(PAYMENTS, 7, 0)
            position = record(KEYS.encode(PAYMENTS), encode_value(newest))

            found = read([record(KEYS.encode_part(part), encode_part(holes(5))), position])

            assert found.unneeded_parts == (frozenset({part}) if unneeded else frozenset())


def test_given_parts_of_another_connector_or_cluster_then_they_are_not_seen() -> None:
    part = MapPart(PAYMENTS, 7, 0)
    for other in (PositionKeys("A", "backfill"), PositionKeys("C")):
        key = other.encode_part(part)
        assert KEYS.decode_part(key) is None
        assert KEYS.decode(key) is None
        assert other.decode_part(key) == part
