"""Comparing two logs through their map: what is equal, and every way of being different."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.findings import DifferenceKind
from mirror_lib.features.verify.model import CheckRange, KnownGap
from mirror_lib.offsets.runs import OffsetRun, encode
from tests.support.records.logs import (
    CODECS,
    SIZES,
    altered,
    at,
    check_of,
    compared,
    log,
    numbered,
    places_of,
    spans,
    whole_range,
)
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, marker


@given(count=st.integers(1, 60), ours=SIZES, theirs=SIZES, codecs=st.tuples(CODECS, CODECS), at_once=st.integers(1, 5))
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


@given(count=st.integers(1, 60), sizes=SIZES, codec=CODECS, at_once=st.integers(1, 5))
def test_batches_that_were_passed_on_are_not_decoded(count: int, sizes: list[int], codec: int, at_once: int) -> None:
    records = numbered(count)
    check = check_of(whole_range([OffsetRun(0, 50, count)]))

    outcome = compared(
        check, log(records, sizes, codec=codec), log(at(records, 50), sizes, codec=codec), at_once=at_once
    )

    assert outcome.records == outcome.records_undecoded == count


@given(
    data=st.data(),
    count=st.integers(1, 150),
    part=st.sampled_from(["key", "value", "headers", "timestamp"]),
    sizes=st.tuples(SIZES, SIZES),
    same_sizes=st.booleans(),
    at_once=st.integers(1, 5),
)
def test_one_altered_record_is_found_with_what_differs(
    data: st.DataObject, count: int, part: str, sizes: tuple[list[int], list[int]], same_sizes: bool, at_once: int
) -> None:
    records, place = numbered(count), data.draw(st.integers(0, count - 1))
    copy = at(records, 10)
    copy[place] = altered(copy[place], part)
    check = check_of(whole_range([OffsetRun(0, 10, count)], to_end=10 + count))

    outcome = compared(check, log(records, sizes[0]), log(copy, sizes[not same_sizes]), at_once=at_once)

    assert places_of(outcome) == [(DifferenceKind.ALTERED, place, 10 + place)]
    (difference,) = outcome.differences
    assert difference.what == (part,)
    assert (difference.source_digest == difference.target_digest) == (part == "timestamp")
    assert outcome.records == count - 1


@pytest.mark.parametrize("change", ["missing", "duplicated", "swapped"])
@given(data=st.data(), sizes=st.tuples(SIZES, SIZES), at_once=st.integers(1, 5))
def test_one_record_that_is_elsewhere_is_found_and_the_rest_compared(
    change: str, data: st.DataObject, sizes: tuple[list[int], list[int]], at_once: int
) -> None:
    count = data.draw(st.integers(1 if change == "duplicated" else 2, 150))
    records = numbered(count)
    place = data.draw(st.integers(0, count - (2 if change == "swapped" else 1)))
    before, behind = records[:place], records[place:]
    copy, kind, source_offset, target_offset, compared_records = {
        "missing": ([*before, *behind[1:]], DifferenceKind.MISSING, place, None, count - 1),
        # The second of the two stands where the next record should.
        "duplicated": ([*before, *behind[:1], *behind], DifferenceKind.EXTRA, None, 10 + place + 1, count),
        "swapped": ([*before, *behind[1::-1], *behind[2:]], DifferenceKind.REORDERED, place, 10 + place, count - 2),
    }[change]
    check = check_of(whole_range([OffsetRun(0, 10, count)], to_end=10 + len(copy)))

    outcome = compared(check, log(records, sizes[0]), log(at(copy, 10), sizes[1]), at_once=at_once)

    assert places_of(outcome) == [(kind, source_offset, target_offset)]
    assert outcome.differences[0].records == (2 if change == "swapped" else 1)
    assert outcome.records == compared_records


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


def test_what_one_side_has_alone_is_told_by_its_kind() -> None:
    ten, hundred = numbered(10), numbered(100)
    lossy = hundred[:40] + hundred[41:]
    with_hole = [OffsetRun(0, 0, 4), OffsetRun(5, 4, 5)]

    for name, runs, ends, source, target, kind, places, count in (
        ("the target ends before", [OffsetRun(0, 0, 10)], 8, ten, ten[:8], DifferenceKind.MISSING, [8, 9], 8),
        ("behind the map", [OffsetRun(0, 0, 8)], 10, ten[:8], ten, DifferenceKind.EXTRA, [8, 9], 8),
        ("the map skips it", with_hole, 9, ten, [*ten[:4], *ten[5:]], DifferenceKind.UNMAPPED, [4], 9),
        # The only difference, though the map knows records behind the target's end.
        ("inside", [OffsetRun(0, 0, 100)], None, hundred, lossy, DifferenceKind.MISSING, [40], 99),
    ):
        more = {"target_end": 99} if ends is None else {}
        check = check_of(whole_range(runs, to_end=ends), **more)
        outcome = compared(check, log(source, [9]), log(at(target, 0), [7]))
        is_extra = kind is DifferenceKind.EXTRA
        expected = [(kind, None, place) if is_extra else (kind, place, None) for place in places]
        assert places_of(outcome) == expected, name
        assert outcome.records == count, name


def test_what_the_ledger_names_as_left_out_is_counted_and_no_difference() -> None:
    records = numbered(10)
    copy = at(records[:4] + records[5:], 0)
    check = check_of(
        whole_range([OffsetRun(0, 0, 4), OffsetRun(5, 4, 5)], to_end=9), known_gaps=(KnownGap(4, 5, "poison"),)
    )

    outcome = compared(check, log(records), log(copy))

    assert outcome.differences == ()
    assert outcome.skipped == 1


def test_records_that_a_lost_piece_of_the_map_leaves_out_are_compared_in_their_order() -> None:
    records = numbered(30)
    check = check_of(whole_range([OffsetRun(0, 0, 10), OffsetRun(20, 20, 10)], to_end=30))

    outcome = compared(check, log(records, [7, 6]), log(records, [12]))

    assert outcome.differences == ()
    assert outcome.records == 30
    assert outcome.outside_map == 10


def test_a_record_that_is_gone_on_one_side_is_compacted_only_where_that_can_be() -> None:
    records = numbered(10)
    left = [record for record in records if record.offset != 4]

    for compacted in (True, False):
        on_target = check_of(whole_range([OffsetRun(0, 0, 10)], to_end=10), target_compacted=compacted)
        outcome = compared(on_target, log(records), log(left))
        assert places_of(outcome) == ([] if compacted else [(DifferenceKind.MISSING, 4, None)])
        assert (outcome.compacted_target, outcome.records) == (int(compacted), 9)

        on_source = check_of(whole_range([OffsetRun(0, 0, 10)], to_end=10), source_compacted=compacted)
        outcome = compared(on_source, log(left), log(records))
        assert places_of(outcome) == ([] if compacted else [(DifferenceKind.EXTRA, None, 4)])
        assert outcome.compacted_source == int(compacted)


def test_records_that_no_map_knows_are_compacted_at_most_where_the_target_has_unused_offsets_for_them() -> None:
    """A killed run wrote them, and the target's cleaner removed them before the next run could find them there."""
    records = numbered(10)
    for compacted, free in ((True, 2), (True, 1), (True, 0), (False, 2)):
        target = [*records[:4], *at(records[6:], 4 + free)]
        runs = [OffsetRun(0, 0, 4), OffsetRun(6, 4 + free, 4)]
        check = check_of(whole_range(runs, to_end=8 + free), target_compacted=compacted)

        outcome = compared(check, log(records), log(target))

        explained = free if compacted else 0
        assert outcome.compacted_target == explained, (compacted, free)
        assert places_of(outcome) == [(DifferenceKind.UNMAPPED, offset, None) for offset in range(4 + explained, 6)]


def test_records_that_no_map_knows_have_expired_at_most_where_the_target_has_deleted_as_many() -> None:
    """The ledger was restored: its map ends at 10. The copy had gone on, and retention has deleted a part of that."""
    records = numbered(5, first=10)
    for deleted, lost in ((2, 0), (2, 1), (5, 0), (4, 1), (0, 1)):
        target = at(records[lost:], 10)[deleted:]
        range_ = CheckRange(10, 15, 10 + deleted, 15 - lost, 0, encode(()), to_end=True, unknown_deleted=deleted)

        outcome = compared(check_of(range_), log(records), log(target))

        assert (outcome.expired, outcome.outside_map) == (deleted, 5 - lost - deleted), (deleted, lost)
        assert len(places_of(outcome)) == lost, (deleted, lost)


def test_target_records_that_no_map_knows_are_compacted_at_most_where_the_source_has_unused_offsets_for_them() -> None:
    """A killed run wrote them, and the source's cleaner removed them before the next run could find them there."""
    records = numbered(10)
    holes = [(True, 3), (True, 2), (True, 1), (True, 0), (False, 2)]
    for (compacted, unused), at_the_end, standing in product(holes, (True, False), (0, 1)):
        # Of the source's offsets in the hole, one may hold a record that the target has too, before the others.
        free = unused + standing
        source = [*records[: 4 + standing], *([] if at_the_end else at(records[6 + standing :], 4 + free))]
        runs = [OffsetRun(0, 0, 4), *([] if at_the_end else [OffsetRun(4 + free, 6 + standing, 4 - standing)])]
        target = records[: 6 + standing] if at_the_end else records
        ends = (4 + free, len(target)) if at_the_end else (8 + free - standing, len(records))
        range_ = replace(whole_range(runs, to_end=ends[1]), source_next=ends[0])

        outcome = compared(check_of(range_, source_compacted=compacted), log(source), log(target))

        explained = min(unused, 2) if compacted else 0
        row = (compacted, unused, at_the_end, standing)
        assert outcome.compacted_source == explained, row
        found = range(4 + standing + explained, 6 + standing)
        assert places_of(outcome) == [(DifferenceKind.EXTRA, None, offset) for offset in found], row
        assert outcome.outside_map == standing, row


@given(data=st.data(), count=st.integers(1, 60), sizes=st.tuples(SIZES, SIZES), at_once=st.integers(1, 5))
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


def test_times_that_a_broker_gives_are_compared_only_where_it_is_the_sources() -> None:
    records = numbered(20)
    stamped = [replace(record, timestamp=record.timestamp + 1_000) for record in records]
    seen = [replace(record, timestamp=records[-1].timestamp) for record in records]
    check = check_of(whole_range([OffsetRun(0, 0, 20)], to_end=20))

    by_target = compared(check, log(records, [4]), log(stamped, [9], attributes=LOG_APPEND_TIME))
    # As a reader sees them.
    by_source = compared(check, log(records, attributes=LOG_APPEND_TIME), log(seen))

    assert (by_target.differences, by_target.records, by_target.timestamps_compared) == ((), 20, False)
    assert (by_source.differences, by_source.records, by_source.timestamps_compared) == ((), 20, True)


def test_records_of_others_are_passed_over_in_a_merge_or_where_the_ledger_knows_them() -> None:
    mine, other = numbered(10), at(numbered(3, first=500), 5)
    copy = [*mine[:5], *other, *at(mine[5:], 8)]
    settings: list[tuple[dict[str, object], int]] = [
        ({"shared_target": True}, 0),
        ({"known_foreign": ((5, 8),)}, 0),
        ({"known_foreign": ((5, 7),)}, 1),
        ({"known_foreign": ((0, 5),)}, 3),
    ]
    for known, extra in settings:
        check = check_of(whole_range([OffsetRun(0, 0, 5), OffsetRun(5, 8, 5)]), **known)
        outcome = compared(check, log(mine), log(copy))
        assert [each.kind for each in outcome.differences] == [DifferenceKind.EXTRA] * extra, known
        assert (outcome.records, outcome.foreign) == (10, 3 - extra), known


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
    copy[30] = altered(copy[30], "value")
    check = check_of(whole_range([OffsetRun(0, 0, 50)], to_end=50))

    once, again, other = (
        compared(check, log(records, sizes), log(target, [20]), at_once=at_once).digest
        for sizes, target, at_once in (([20], records, 1), ([7, 9], records, 100), ([20], copy, 3))
    )

    assert once == again
    assert once != other


def test_only_the_first_differences_are_kept_and_all_are_counted() -> None:
    records = numbered(500)
    copy = [altered(record, "value") for record in records]
    check = check_of(whole_range([OffsetRun(0, 0, 500)], to_end=500))

    outcome = compared(check, log(records, [30]), log(copy, [40]))

    assert outcome.difference_count == 500
    assert len(outcome.differences) == 20


def test_no_difference_shows_what_the_records_hold() -> None:
    records = [SourceRecord(0, key=b"secret-key", value=b"secret-value")]
    check = check_of(whole_range([OffsetRun(0, 0, 1)], to_end=1))

    outcome = compared(check, log(records), log([replace(records[0], value=b"secret-other")]))

    assert [each.what for each in outcome.differences] == [("value",)]
    assert "secret" not in repr(outcome)
