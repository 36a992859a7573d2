"""The offset map of a partition, against a list of every record's two offsets.

The exact offset map: runs of constant distance.
"""

from __future__ import annotations

import itertools
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import OffsetMapError
from mirror_lib.offsets.offset_map import Landing, Lookup, OffsetMap
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.offsets.runs import OffsetRun, RunBuilder, Segment, decode, encode, merge, translate
from tests.support.records.offset_maps import records, run_lists


@dataclass(frozen=True)
class Stored:
    """A segment as the ledger keeps it."""

    source_first: int
    target_first: int
    records: int
    runs: bytes | None = None


def naive(pairs: list[tuple[int, int]], wanted: int) -> Lookup:
    """The rule, said once more in the plainest way: pairs are (here, there), ascending."""
    if any(here == wanted for here, _ in pairs):
        return Lookup(dict(pairs)[wanted], Landing.EXACT)
    if wanted < pairs[0][0]:
        return Lookup(pairs[0][1], Landing.BEFORE)
    if wanted > pairs[-1][0]:
        return Lookup(pairs[-1][1] + 1, Landing.BEYOND)
    return Lookup(next(there for here, there in pairs if here > wanted), Landing.HOLE)


def test_an_empty_map_answers_nothing() -> None:
    empty = OffsetMap.of_runs(())

    assert empty.empty
    with pytest.raises(ValueError, match="empty"):
        empty.to_target(0)
    with pytest.raises(ValueError, match="empty"):
        _ = empty.source_first


@given(runs=run_lists(min_runs=1), wanted=st.lists(st.integers(-5, 200), max_size=30))
def test_lookups_agree_with_the_rule_in_both_directions(runs: tuple[OffsetRun, ...], wanted: list[int]) -> None:
    pairs = records(runs)
    found = OffsetMap.of_runs(runs)

    there, back = found.to_target_many(wanted), found.to_source_many(np.array(wanted, dtype=np.int64))

    expected = [naive(pairs, each) for each in wanted]
    assert list(zip(there.offsets.tolist(), there.landings(), strict=True)) == expected
    reversed_pairs = [(target, source) for source, target in pairs]
    expected_back = [naive(reversed_pairs, each) for each in wanted]
    assert list(zip(back.offsets.tolist(), back.landings(), strict=True)) == expected_back
    assert [found.to_target(each) for each in wanted] == expected
    assert [found.to_source(each) for each in wanted] == expected_back
    assert sum(there.counts().values()) == len(wanted)


@given(runs=run_lists(), first=st.integers(-5, 200), end=st.integers(-5, 200))
def test_records_are_counted_on_either_side(runs: tuple[OffsetRun, ...], first: int, end: int) -> None:
    found = OffsetMap.of_runs(runs)
    pairs = records(runs)

    assert found.records == len(pairs)
    assert found.source_records_between(first, end) == sum(first <= source < end for source, _ in pairs)
    assert found.target_records_between(first, end) == sum(first <= target < end for _, target in pairs)


@given(runs=run_lists(min_runs=1), committed=st.integers(0, 200), goes_on=st.integers(0, 200))
def test_what_is_read_again_and_what_is_missed(runs: tuple[OffsetRun, ...], committed: int, goes_on: int) -> None:
    found = OffsetMap.of_runs(runs)
    read = {target for source, target in records(runs) if source < committed}
    to_read = {target for _, target in records(runs) if target >= goes_on}
    everything = {target for _, target in records(runs)}

    again = found.count_duplicates(committed, goes_on)

    assert max(again, 0) == len(read & to_read)
    assert max(-again, 0) == len(everything - read - to_read)
    assert found.count_duplicates(committed, found.to_target(committed).offset) == 0


@given(runs=run_lists(), target=st.integers(0, 200))
def test_gaps_on_the_target(runs: tuple[OffsetRun, ...], target: int) -> None:
    mapped = {there for _, there in records(runs)}

    gap = OffsetMap.of_runs(runs).target_gap_before(target)

    assert not mapped & set(range(target - gap, target))
    assert target - gap == 0 or target - gap - 1 in mapped


@given(parts=st.lists(run_lists(min_runs=1, max_runs=3), max_size=4))
def test_a_map_of_stored_segments_is_that_of_their_runs(parts: list[tuple[OffsetRun, ...]]) -> None:
    shifted: list[OffsetRun] = []
    stored = []
    for part in parts:
        source, target = (shifted[-1].source_next, shifted[-1].target_next) if shifted else (0, 0)
        moved = merge(OffsetRun(run.source_first + source, run.target_first + target, run.count) for run in part)
        shifted.extend(moved)
        dense = len(moved) == 1
        count = sum(run.count for run in moved)
        stored.append(Stored(moved[0].source_first, moved[0].target_first, count, None if dense else encode(moved)))

    found = OffsetMap.of_segments(stored)

    assert found.columns.runs() == merge(shifted)
    if shifted:
        ends = (found.source_first, found.source_next, found.target_first, found.target_next)
        first, last = shifted[0], shifted[-1]
        assert ends == (first.source_first, last.source_next, first.target_first, last.target_next)


def test_segments_that_contradict_each_other_are_damage() -> None:
    with pytest.raises(OffsetMapError, match="are not in ascending order"):
        OffsetMap.of_segments([Stored(0, 0, 10), Stored(5, 10, 10)])


class TestColumns:
    @given(runs=run_lists())
    def test_they_are_encoded_as_runs_are(self, runs: tuple[OffsetRun, ...]) -> None:
        merged = merge(runs)

        encoded = RunColumns.of(runs).encode()

        assert encoded == encode(merged)
        assert decode(encoded) == RunColumns.decode(encoded).runs() == merged

    def test_they_ascend(self, subtests: pytest.Subtests) -> None:
        for runs in [[(0, 0, 0)], [(5, 5, 5), (9, 10, 1)], [(5, 5, 5), (10, 9, 1)], [(-1, 0, 1)]]:
            with subtests.test(runs=runs), pytest.raises(ValueError, match="ascend"):
                RunColumns.of([OffsetRun(*run) for run in runs])

    def test_damaged_bytes_are_told_as_such(self, subtests: pytest.Subtests) -> None:
        for data in [b"", b"\x02", b"\x01nonsense", encode([OffsetRun(0, 0, 1)])[:-3]]:
            with subtests.test(data=data), pytest.raises(OffsetMapError):
                RunColumns.decode(data)

    @given(runs=run_lists(), source=st.integers(0, 200), target=st.integers(0, 200))
    def test_what_stands_before_both_offsets(self, runs: tuple[OffsetRun, ...], source: int, target: int) -> None:
        kept = RunColumns.of(runs).before(source=source, target=target)

        expected = [pair for pair in records(runs) if pair[0] < source and pair[1] < target]
        assert records(kept.runs()) == expected

    @given(runs=run_lists(min_runs=1), data=st.data())
    def test_a_map_holds_every_stretch_of_itself(self, runs: tuple[OffsetRun, ...], data: st.DataObject) -> None:
        pairs = records(runs)
        first = data.draw(st.integers(0, len(pairs) - 1))
        end = data.draw(st.integers(first + 1, len(pairs)))
        span = RunColumns.of([OffsetRun(*pair, 1) for pair in pairs[first:end]])

        assert RunColumns.of(runs).holds(span)

    @given(runs=run_lists(min_runs=1), other=run_lists(min_runs=1))
    def test_it_holds_another_only_where_both_say_the_same(
        self, runs: tuple[OffsetRun, ...], other: tuple[OffsetRun, ...]
    ) -> None:
        theirs = records(other)
        within = [pair for pair in records(runs) if theirs[0][0] <= pair[0] <= theirs[-1][0]]

        assert RunColumns.of(runs).holds(RunColumns.of(other)) == (within == theirs)


#: Source 10..14 at target 5..9, 15..16 missing, 17..19 at 10..12, then a marker on the target, 20..21 at 14..15.
HOLES = (OffsetRun(10, 5, 5), OffsetRun(17, 10, 3), OffsetRun(20, 14, 2))


def test_a_builder_goes_on_after_it_was_asked() -> None:
    builder = RunBuilder()
    assert builder.runs() == ()
    for number in range(3):
        builder.add(10 * number, 100 + 10 * number, 10)
        assert builder.runs() == (OffsetRun(0, 100, 10 + 10 * number),)


def test_a_run_that_is_empty_or_goes_back_is_refused(subtests: pytest.Subtests) -> None:
    for run in [(20, 20, 0), (20, 20, -1), (9, 20, 1), (20, 9, 1)]:
        with subtests.test(run=run):
            builder = RunBuilder()
            builder.add(0, 0, 10)

            with pytest.raises(ValueError, match="cannot follow"):
                builder.add(*run)

            assert builder.runs() == (OffsetRun(0, 0, 10),)


@given(run_lists())
def test_merging_keeps_every_record_and_leaves_nothing_to_merge(runs: tuple[OffsetRun, ...]) -> None:
    merged = merge(runs)

    assert records(merged) == records(runs)
    for earlier, later in itertools.pairwise(merged):
        assert (earlier.source_next, earlier.target_next) != (later.source_first, later.target_first)
    assert merge(merged) == merged
    assert merge(HOLES) == HOLES


@given(run_lists(min_runs=1), st.integers(0, 250))
def test_translation_is_where_the_first_record_at_or_after_the_offset_stands(
    runs: tuple[OffsetRun, ...], source_offset: int
) -> None:
    pairs = records(runs)
    expected = next((target for source, target in pairs if source >= source_offset), pairs[-1][1] + 1)

    assert translate(runs, source_offset) == expected
    assert translate(merge(runs), source_offset) == expected


@given(run_lists(min_runs=1, max_count=2**30, max_offset=2**62))
def test_runs_of_any_size_survive_encoding(runs: tuple[OffsetRun, ...]) -> None:
    encoded = encode(runs)

    assert decode(encoded) == runs
    assert encoded[0] == 1, "the format"


def test_a_hundred_thousand_regular_transactions_take_little_room() -> None:
    """A transaction of ten records and its marker: runs that differ by the same distances."""
    runs = [OffsetRun(number * 11, number * 10, 10) for number in range(100_000)]

    assert len(encode(runs)) < 10_000


def test_a_hundred_thousand_compacted_runs_take_a_few_bytes_each() -> None:
    sizes = [1 + number * 7919 % 200 for number in range(100_000)]
    runs = []
    source = target = 0
    for size in sizes:
        runs.append(OffsetRun(source, target, size))
        source += size + 1 + size * 31 % 100
        target += size

    encoded = encode(runs)

    assert decode(encoded) == tuple(runs)
    assert len(encoded) < 4 * len(runs)


def test_runs_that_go_back_cannot_be_encoded(subtests: pytest.Subtests) -> None:
    for runs in [[OffsetRun(5, 5, 1), OffsetRun(5, 6, 1)], [OffsetRun(5, 5, 2), OffsetRun(7, 6, 1)]]:
        with subtests.test(runs=runs), pytest.raises(ValueError, match="are not in ascending order"):
            encode(runs)


def test_damaged_or_foreign_bytes_are_an_error_with_advice(subtests: pytest.Subtests) -> None:
    for data in [
        b"",
        b"\x02" + zlib.compress(b""),
        b"\x01",
        b"\x01not compressed",
        b"\x01" + zlib.compress(bytes(23)),
        b"\x01" + zlib.compress(bytes(8)),
        b"\x01" + zlib.compress(bytes(24)),  # a run of no records
        encode(HOLES)[:-1],
        encode(HOLES)[1:],
    ]:
        with subtests.test(data=data):
            with pytest.raises(OffsetMapError) as caught:
                decode(data)

            assert caught.value.action


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    for candidate in (data, b"\x01" + data, b"\x01" + zlib.compress(data)):
        try:
            runs = decode(candidate)
        except OffsetMapError:
            continue
        assert merge(runs) is not None


def test_a_segment_sums_up_its_runs() -> None:
    segment = Segment.of(HOLES)
    dense = Segment.of([OffsetRun(10, 5, 3), OffsetRun(13, 8, 2)])

    assert segment == Segment(10, 22, 5, 16, 10, HOLES)
    assert not segment.dense
    assert dense.runs == (OffsetRun(10, 5, 5),)
    assert dense.dense
    assert dense.encoded_runs is None


def test_holes_at_the_ends_belong_to_a_segment_and_translate_to_its_end() -> None:
    """The planned range ended with records that were dropped, and a marker follows on the target."""
    segment = Segment.of([OffsetRun(10, 5, 5)], source_first=8, source_next=20, target_first=5, target_next=11)
    without_records = Segment.of([], source_first=8, source_next=20, target_first=5, target_next=6)

    assert not segment.dense
    assert [segment.translate(offset) for offset in (8, 10, 14, 15, 19, 20)] == [5, 5, 9, 11, 11, 11]
    assert (without_records.records, without_records.translate(9)) == (0, 6)


def test_what_cannot_be_a_segment_is_refused(subtests: pytest.Subtests) -> None:
    for ranges in [{"source_first": 11}, {"source_next": 21}, {"target_first": 6}, {"target_next": 15}]:
        with subtests.test(ranges=ranges), pytest.raises(ValueError, match="do not fit"):
            Segment.of(HOLES, **ranges)
    with pytest.raises(ValueError, match="needs explicit ranges"):
        Segment.of([], source_first=0, source_next=1, target_first=0)
    with pytest.raises(ValueError, match="empty"):
        translate((), 0)


@given(run_lists(min_runs=1), st.integers(0, 5), st.integers(0, 5))
def test_a_segment_survives_storing(runs: tuple[OffsetRun, ...], source_more: int, target_more: int) -> None:
    segment = Segment.of(
        runs, source_next=runs[-1].source_next + source_more, target_next=runs[-1].target_next + target_more
    )

    restored = Segment.restore(
        source_first=segment.source_first,
        source_next=segment.source_next,
        target_first=segment.target_first,
        target_next=segment.target_next,
        runs=segment.encoded_runs,
    )

    assert restored == segment
    assert all(segment.translate(source) == target for source, target in records(runs))


def test_stored_bytes_that_do_not_fit_their_ranges_are_damage(subtests: pytest.Subtests) -> None:
    for ranges in [(10, 22, 5, 15), (11, 22, 5, 16)]:
        with subtests.test(ranges=ranges):
            source_first, source_next, target_first, target_next = ranges

            with pytest.raises(OffsetMapError, match="malformed"):
                Segment.restore(
                    source_first=source_first,
                    source_next=source_next,
                    target_first=target_first,
                    target_next=target_next,
                    runs=encode(HOLES),
                )
