"""The exact offset map: runs of constant distance."""

from __future__ import annotations

import itertools
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import OffsetMapError
from mirror_lib.offsets.runs import OffsetRun, RunBuilder, Segment, decode, encode, merge, translate
from tests.support.records.offset_maps import records, run_lists

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
