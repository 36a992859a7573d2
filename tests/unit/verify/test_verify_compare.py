"""Comparing two logs through their map: what is equal, and every way of being different."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.verify.compare.compare import RangeComparer
from mirror_lib.verify.findings import Difference, DifferenceKind, RangeOutcome
from mirror_lib.verify.model import KnownGap
from tests.support.records.logs import at, check_of, compared, log, numbered, spans, whole_range
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, marker

_SIZES = st.lists(st.integers(1, 9), max_size=12)
_CODECS = st.sampled_from([0, 1, 3, 4])


def _found(outcome: RangeOutcome) -> list[tuple[DifferenceKind, int | None, int | None]]:
    assert outcome.difference_count == len(outcome.differences)
    return [(each.kind, each.source_offset, each.target_offset) for each in outcome.differences]


def _one(outcome: RangeOutcome) -> Difference:
    (difference,) = outcome.differences
    assert outcome.difference_count == 1
    return difference


@given(
    count=st.integers(1, 60), ours=_SIZES, theirs=_SIZES, codecs=st.tuples(_CODECS, _CODECS), at_once=st.integers(1, 5)
)
def test_the_same_records_in_any_batches_are_equal(
    count: int, ours: list[int], theirs: list[int], codecs: tuple[int, int], at_once: int
) -> None:
    records = numbered(count, first=100)
    check = check_of(whole_range([OffsetRun(100, 7, count)], to_end=7 + count))

    outcome = compared(
        check, log(records, ours, codec=codecs[0]), log(at(records, 7), theirs, codec=codecs[1]), at_once=at_once
    )

    assert outcome.differences == ()
    assert outcome.records == count
    assert outcome.complete
    assert outcome.gone_on_both == 0


@given(count=st.integers(1, 60), sizes=_SIZES, codec=_CODECS, at_once=st.integers(1, 5))
def test_batches_that_were_passed_on_are_not_decoded(count: int, sizes: list[int], codec: int, at_once: int) -> None:
    records = numbered(count)
    check = check_of(whole_range([OffsetRun(0, 50, count)]))

    outcome = compared(
        check, log(records, sizes, codec=codec), log(at(records, 50), sizes, codec=codec), at_once=at_once
    )

    assert outcome.records == outcome.records_undecoded == count


def _changed(record: SourceRecord, part: str) -> SourceRecord:
    changes: dict[str, object] = {
        "key": b"other",
        "value": (record.value or b"")[:-1] + b"!",
        "headers": (("number", b"other"),),
        "timestamp": record.timestamp + 1,
    }
    return replace(record, **{part: changes[part]})  # type: ignore[arg-type]


@given(
    data=st.data(),
    count=st.integers(1, 150),
    part=st.sampled_from(["key", "value", "headers", "timestamp"]),
    sizes=st.tuples(_SIZES, _SIZES),
    same_sizes=st.booleans(),
    at_once=st.integers(1, 5),
)
def test_one_altered_record_is_found_with_what_differs(
    data: st.DataObject, count: int, part: str, sizes: tuple[list[int], list[int]], same_sizes: bool, at_once: int
) -> None:
    records, place = numbered(count), data.draw(st.integers(0, count - 1))
    copy = at(records, 10)
    copy[place] = _changed(copy[place], part)
    check = check_of(whole_range([OffsetRun(0, 10, count)], to_end=10 + count))

    outcome = compared(check, log(records, sizes[0]), log(copy, sizes[not same_sizes]), at_once=at_once)

    difference = _one(outcome)
    assert (difference.kind, difference.source_offset, difference.target_offset) == (
        DifferenceKind.ALTERED,
        place,
        10 + place,
    )
    assert difference.what == (part,)
    assert (difference.source_digest == difference.target_digest) == (part == "timestamp")
    assert outcome.records == count - 1


@given(data=st.data(), count=st.integers(2, 150), sizes=st.tuples(_SIZES, _SIZES), at_once=st.integers(1, 5))
def test_one_missing_record_is_found_and_the_rest_compared(
    data: st.DataObject, count: int, sizes: tuple[list[int], list[int]], at_once: int
) -> None:
    records, place = numbered(count), data.draw(st.integers(0, count - 1))
    copy = at(records[:place] + records[place + 1 :], 10)
    check = check_of(whole_range([OffsetRun(0, 10, count)], to_end=10 + count - 1))

    outcome = compared(check, log(records, sizes[0]), log(copy, sizes[1]), at_once=at_once)

    assert _found(outcome) == [(DifferenceKind.MISSING, place, None)]
    assert outcome.records == count - 1


@given(data=st.data(), count=st.integers(1, 150), sizes=st.tuples(_SIZES, _SIZES), at_once=st.integers(1, 5))
def test_one_duplicated_record_is_found_and_the_rest_compared(
    data: st.DataObject, count: int, sizes: tuple[list[int], list[int]], at_once: int
) -> None:
    records, place = numbered(count), data.draw(st.integers(0, count - 1))
    copy = at(records[: place + 1] + records[place:], 10)
    check = check_of(whole_range([OffsetRun(0, 10, count)], to_end=10 + count + 1))

    outcome = compared(check, log(records, sizes[0]), log(copy, sizes[1]), at_once=at_once)

    # The second of the two stands where the next record should.
    assert _found(outcome) == [(DifferenceKind.EXTRA, None, 10 + place + 1)]
    assert outcome.records == count


@given(data=st.data(), count=st.integers(2, 150), sizes=st.tuples(_SIZES, _SIZES), at_once=st.integers(1, 5))
def test_two_swapped_records_are_found_as_such(
    data: st.DataObject, count: int, sizes: tuple[list[int], list[int]], at_once: int
) -> None:
    records, place = numbered(count), data.draw(st.integers(0, count - 2))
    copy = list(records)
    copy[place], copy[place + 1] = copy[place + 1], copy[place]
    check = check_of(whole_range([OffsetRun(0, 10, count)], to_end=10 + count))

    outcome = compared(check, log(records, sizes[0]), log(at(copy, 10), sizes[1]), at_once=at_once)

    difference = _one(outcome)
    assert _found(outcome) == [(DifferenceKind.REORDERED, place, 10 + place)]
    assert difference.records == 2
    assert outcome.records == count - 2


@given(
    count=st.integers(1, 40),
    holes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8),
    at_once=st.integers(1, 5),
)
def test_holes_that_the_map_knows_are_no_differences(count: int, holes: list[tuple[int, int]], at_once: int) -> None:
    """Markers, aborted records and those that compaction had removed before they could be copied."""
    source, target = b"", b""
    runs, mine, theirs = [], 0, 0
    for before_source, before_target in holes:
        source += b"".join(marker(mine + each, 7, abort=False) for each in range(before_source))
        target += b"".join(marker(theirs + each, 8, abort=True) for each in range(before_target))
        mine, theirs = mine + before_source, theirs + before_target
        records = numbered(count, first=mine)
        runs.append(OffsetRun(mine, theirs, count))
        source += log(records)
        target += log(at(records, theirs), [3, 5])
        mine, theirs = mine + count, theirs + count
    check = check_of(whole_range(runs, to_end=theirs))

    outcome = compared(check, source, target, at_once=at_once)

    assert outcome.differences == ()
    assert outcome.records == count * len(holes)


def test_records_at_the_end_of_the_source_are_missing_when_the_target_ends_before() -> None:
    records = numbered(10)
    check = check_of(whole_range([OffsetRun(0, 0, 10)], to_end=8))

    outcome = compared(check, log(records), log(records[:8]))

    assert _found(outcome) == [(DifferenceKind.MISSING, 8, None), (DifferenceKind.MISSING, 9, None)]


def test_a_loss_inside_a_target_that_ends_before_the_map_is_the_only_difference() -> None:
    records = numbered(100)
    copy = at(records[:40] + records[41:], 0)
    check = check_of(whole_range([OffsetRun(0, 0, 100)]), target_end=99)

    outcome = compared(check, log(records, [9]), log(copy, [7]))

    assert _found(outcome) == [(DifferenceKind.MISSING, 40, None)]
    assert outcome.records == 99


def test_records_behind_the_map_are_extra_when_no_run_is_writing() -> None:
    records = numbered(10)
    check = check_of(whole_range([OffsetRun(0, 0, 8)], to_end=10))

    outcome = compared(check, log(records[:8]), log(records))

    assert _found(outcome) == [(DifferenceKind.EXTRA, None, 8), (DifferenceKind.EXTRA, None, 9)]


def test_a_record_of_the_source_that_the_map_skips_is_told() -> None:
    records = numbered(10)
    copy = at(records[:4] + records[5:], 0)
    check = check_of(whole_range([OffsetRun(0, 0, 4), OffsetRun(5, 4, 5)], to_end=9))

    outcome = compared(check, log(records), log(copy))

    assert _found(outcome) == [(DifferenceKind.UNMAPPED, 4, None)]
    assert outcome.records == 9


def test_what_the_ledger_names_as_left_out_is_counted_and_no_difference() -> None:
    records = numbered(10)
    copy = at(records[:4] + records[5:], 0)
    check = check_of(
        whole_range([OffsetRun(0, 0, 4), OffsetRun(5, 4, 5)], to_end=9), known_gaps=(KnownGap(4, 5, "poison"),)
    )

    outcome = compared(check, log(records), log(copy))

    assert outcome.differences == ()
    assert outcome.left_out == 1


def test_records_that_a_lost_piece_of_the_map_leaves_out_are_compared_in_their_order() -> None:
    records = numbered(30)
    check = check_of(whole_range([OffsetRun(0, 0, 10), OffsetRun(20, 20, 10)], to_end=30))

    outcome = compared(check, log(records, [7, 6]), log(records, [12]))

    assert outcome.differences == ()
    assert outcome.records == 30
    assert outcome.outside_map == 10


@pytest.mark.parametrize("compacted", [True, False])
def test_a_record_that_is_gone_on_the_target_is_compacted_only_where_that_can_be(compacted: bool) -> None:
    records = numbered(10)
    left = [record for record in records if record.offset != 4]
    check = check_of(whole_range([OffsetRun(0, 0, 10)], to_end=10), target_compacted=compacted)

    outcome = compared(check, log(records), log(left))

    assert _found(outcome) == ([] if compacted else [(DifferenceKind.MISSING, 4, None)])
    assert outcome.compacted_target == int(compacted)
    assert outcome.records == 9


@pytest.mark.parametrize(("compacted", "free"), [(True, 2), (True, 1), (True, 0), (False, 2)])
def test_records_that_no_map_knows_are_compacted_at_most_where_the_target_has_unused_offsets_for_them(
    compacted: bool, free: int
) -> None:
    """A killed run wrote them, and the target's cleaner removed them before the next run could find them there."""
    records = numbered(10)
    target = [*records[:4], *at(records[6:], 4 + free)]
    runs = [OffsetRun(0, 0, 4), OffsetRun(6, 4 + free, 4)]
    check = check_of(whole_range(runs, to_end=8 + free), target_compacted=compacted)

    outcome = compared(check, log(records), log(target))

    explained = free if compacted else 0
    assert outcome.compacted_target == explained
    assert _found(outcome) == [(DifferenceKind.UNMAPPED, offset, None) for offset in range(4 + explained, 6)]


@pytest.mark.parametrize("standing", [0, 1])
@pytest.mark.parametrize("at_the_end", [True, False])
@pytest.mark.parametrize(("compacted", "free"), [(True, 3), (True, 2), (True, 1), (True, 0), (False, 2)])
def test_target_records_that_no_map_knows_are_compacted_at_most_where_the_source_has_unused_offsets_for_them(
    compacted: bool, free: int, at_the_end: bool, standing: int
) -> None:
    """A killed run wrote them, and the source's cleaner removed them before the next run could find them there."""
    records = numbered(10)
    # Of the source's offsets in the hole, one may hold a record that the target has too, before the others.
    free += standing
    source = [*records[: 4 + standing], *([] if at_the_end else at(records[6 + standing :], 4 + free))]
    runs = [OffsetRun(0, 0, 4), *([] if at_the_end else [OffsetRun(4 + free, 6 + standing, 4 - standing)])]
    target = records[: 6 + standing] if at_the_end else records
    ends = (4 + free, len(target)) if at_the_end else (8 + free - standing, len(records))
    range_ = replace(whole_range(runs, to_end=ends[1]), source_next=ends[0])

    outcome = compared(check_of(range_, source_compacted=compacted), log(source), log(target))

    explained = min(free - standing, 2) if compacted else 0
    assert outcome.compacted_source == explained
    found = range(4 + standing + explained, 6 + standing)
    assert _found(outcome) == [(DifferenceKind.EXTRA, None, offset) for offset in found]
    assert outcome.outside_map == standing


@pytest.mark.parametrize("compacted", [True, False])
def test_a_record_that_is_gone_on_the_source_is_compacted_only_where_that_can_be(compacted: bool) -> None:
    records = numbered(10)
    left = [record for record in records if record.offset != 4]
    check = check_of(whole_range([OffsetRun(0, 0, 10)], to_end=10), source_compacted=compacted)

    outcome = compared(check, log(left), log(records))

    assert _found(outcome) == ([] if compacted else [(DifferenceKind.EXTRA, None, 4)])
    assert outcome.compacted_source == int(compacted)


@given(data=st.data(), count=st.integers(1, 60), sizes=st.tuples(_SIZES, _SIZES), at_once=st.integers(1, 5))
def test_compaction_on_both_sides_at_different_times_is_no_difference(
    data: st.DataObject, count: int, sizes: tuple[list[int], list[int]], at_once: int
) -> None:
    records = numbered(count)
    kept = st.sets(st.integers(0, count - 1))
    ours, theirs = data.draw(kept) | {count - 1}, data.draw(kept) | {count - 1}
    check = check_of(whole_range([OffsetRun(0, 0, count)], to_end=count), source_compacted=True, target_compacted=True)

    outcome = compared(
        check,
        log([each for each in records if each.offset in ours], sizes[0]),
        log([each for each in records if each.offset in theirs], sizes[1]),
        at_once=at_once,
    )

    assert outcome.differences == ()
    assert outcome.records == len(ours & theirs)
    assert outcome.compacted_target == len(ours - theirs)
    assert outcome.compacted_source == len(theirs - ours)
    assert outcome.gone_on_both == count - len(ours | theirs)


def test_what_retention_removes_while_the_comparison_runs_is_expired_on_either_side() -> None:
    records = numbered(10)
    check = check_of(whole_range([OffsetRun(0, 0, 10)], to_end=10))
    for side in ("source", "target"):
        comparer = RangeComparer(check, check.ranges[0])
        left = records[4:]
        comparer.walk()
        if side == "source":
            comparer.source_expired(4)
        else:
            comparer.target_expired(4)
        comparer.feed_source(spans(log(left if side == "source" else records)), 10)
        comparer.feed_target(spans(log(left if side == "target" else records)), 10)
        comparer.walk()

        outcome = comparer.outcome()
        assert (outcome.complete, outcome.records, outcome.expired, outcome.differences) == (True, 6, 4, ())


def test_a_comparison_that_is_cut_short_says_how_far_it_came() -> None:
    records = numbered(30)
    check = check_of(whole_range([OffsetRun(0, 100, 30)]))
    comparer = RangeComparer(check, check.ranges[0])
    comparer.walk()
    comparer.feed_source(spans(log(records[:12])), 12)
    comparer.feed_target(spans(log(at(records[:20], 100), [5])), 120)
    comparer.walk()

    outcome = comparer.outcome()

    assert (outcome.complete, outcome.records, outcome.digest) == (False, 12, None)
    assert (outcome.source_next, outcome.target_next) == (12, 112)


def test_times_of_a_target_that_gives_its_own_are_not_compared_and_that_is_said() -> None:
    records = numbered(20)
    stamped = [replace(record, timestamp=record.timestamp + 1_000) for record in records]
    check = check_of(whole_range([OffsetRun(0, 0, 20)], to_end=20))

    outcome = compared(check, log(records, [4]), log(stamped, [9], attributes=LOG_APPEND_TIME))

    assert outcome.differences == ()
    assert not outcome.timestamps_compared
    assert outcome.records == 20


def test_times_that_the_source_gave_itself_are_compared_as_a_reader_sees_them() -> None:
    records = numbered(5)
    seen = [replace(record, timestamp=records[-1].timestamp) for record in records]
    check = check_of(whole_range([OffsetRun(0, 0, 5)], to_end=5))

    outcome = compared(check, log(records, attributes=LOG_APPEND_TIME), log(seen))

    assert outcome.differences == ()
    assert outcome.records == 5
    assert outcome.timestamps_compared


def test_records_of_other_sources_of_a_merge_are_passed_over() -> None:
    mine, other = numbered(10), at(numbered(3, first=500), 5)
    copy = [*mine[:5], *other, *at(mine[5:], 8)]
    check = check_of(whole_range([OffsetRun(0, 0, 5), OffsetRun(5, 8, 5)]), shared_target=True)

    outcome = compared(check, log(mine), log(copy))

    assert outcome.differences == ()
    assert (outcome.records, outcome.foreign) == (10, 3)


@pytest.mark.parametrize(("first", "following", "extra"), [(5, 8, 0), (5, 7, 1), (0, 5, 3)])
def test_what_the_ledger_knows_to_be_written_by_others_is_no_difference(first: int, following: int, extra: int) -> None:
    mine, other = numbered(10), at(numbered(3, first=500), 5)
    copy = [*mine[:5], *other, *at(mine[5:], 8)]
    check = check_of(whole_range([OffsetRun(0, 0, 5), OffsetRun(5, 8, 5)]), known_foreign=((first, following),))

    outcome = compared(check, log(mine), log(copy))

    assert [each.kind for each in outcome.differences] == [DifferenceKind.EXTRA] * extra
    assert (outcome.records, outcome.foreign) == (10, 3 - extra)


def test_a_foreign_record_that_equals_the_next_one_is_not_taken_for_it() -> None:
    # Given the very record that comes next, written by others before
    mine = numbered(10)
    copy = [*mine[:5], *at(mine[5:6], 5), *at(mine[5:], 6)]
    check = check_of(whole_range([OffsetRun(0, 0, 5), OffsetRun(5, 6, 5)]), known_foreign=((5, 6),))

    outcome = compared(check, log(mine), log(copy))

    assert outcome.differences == ()
    assert (outcome.records, outcome.foreign) == (10, 1)


def test_the_digest_of_the_same_range_is_the_same_again_and_tells_an_altered_byte() -> None:
    records = numbered(50)
    copy = list(records)
    copy[30] = _changed(copy[30], "value")
    check = check_of(whole_range([OffsetRun(0, 0, 50)], to_end=50))

    once, again, other = (
        compared(check, log(records, sizes), log(target, [20]), at_once=at_once).digest
        for sizes, target, at_once in (([20], records, 1), ([7, 9], records, 100), ([20], copy, 3))
    )

    assert once == again
    assert once != other


def test_only_the_first_differences_are_kept_and_all_are_counted() -> None:
    records = numbered(500)
    copy = [_changed(record, "value") for record in records]
    check = check_of(whole_range([OffsetRun(0, 0, 500)], to_end=500))

    outcome = compared(check, log(records, [30]), log(copy, [40]))

    assert outcome.difference_count == 500
    assert len(outcome.differences) == 20


def test_no_difference_shows_what_the_records_hold() -> None:
    records = [SourceRecord(0, key=b"secret-key", value=b"secret-value")]
    check = check_of(whole_range([OffsetRun(0, 0, 1)], to_end=1))

    outcome = compared(check, log(records), log([replace(records[0], value=b"secret-other")]))

    assert _one(outcome).what == ("value",)
    assert "secret" not in repr(outcome)
