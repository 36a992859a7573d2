"""Comparing what transforms make of a source with the target's log: equal, and every way of being different."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import MirrorError
from mirror_lib.features.verify.findings import DifferenceKind, RangeOutcome
from mirror_lib.features.verify.model import CheckRange, KnownGap, PartitionCheck
from mirror_lib.features.verify.transformed.compare_rows import RowNumbers
from mirror_lib.offsets.runs import OffsetRun, encode, merge
from tests.support.records.logs import CODECS, SIZES, SOURCE, TARGET, altered, at, log, places_of
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord
from tests.support.records.transformed_logs import Made, compared_rows, made, rows_of

_SOURCE_FIRST, _TARGET_FIRST = 100, 7
#: How many rows and stretches of the target are fed at a time.
_AT_ONCE = st.tuples(st.integers(1, 9), st.integers(1, 5))


@st.composite
def _shapes(draw: st.DrawFn, *, least: int = 1) -> tuple[list[int], bool]:
    """How many rows each record becomes, and whether several were to be expected."""
    several = draw(st.booleans())
    counts = draw(st.lists(st.integers(0, 4 if several else 1), min_size=1, max_size=60))
    return [*counts, *([1] * max(least - sum(counts), 0))], several


def _made(counts: Sequence[int]) -> Made:
    return made(counts, source_first=_SOURCE_FIRST, target_first=_TARGET_FIRST)


def _check(counts: Sequence[int], whole: Made, standing: int, *, several: bool, **more: object) -> PartitionCheck:
    """All of the source against a target that holds so many records."""
    range_ = CheckRange(
        source_first=_SOURCE_FIRST,
        source_next=_SOURCE_FIRST + len(counts),
        target_first=_TARGET_FIRST,
        target_next=_TARGET_FIRST + standing,
        records=sum(run.count for run in whole.runs),
        encoded_runs=encode(whole.runs),
        to_end=True,
    )
    settings = {"target_end": range_.target_next, "several": several, **more}
    return PartitionCheck(source=SOURCE, target=TARGET, ranges=(range_,), **settings)  # type: ignore[arg-type]


def _compared(
    counts: Sequence[int],
    copy: Sequence[SourceRecord],
    *,
    several: bool,
    sizes: Sequence[int] = (),
    at_once: tuple[int, int] = (1_000, 1_000),
    **more: object,
) -> RangeOutcome:
    whole = _made(counts)
    check = _check(counts, whole, len(copy), several=several, **more)
    raw = log(at(copy, _TARGET_FIRST), sizes)
    return compared_rows(check, whole, raw, rows_at_once=at_once[0], ranges_at_once=at_once[1])


@given(
    shape=_shapes(),
    sizes=SIZES,
    codec=CODECS,
    at_once=_AT_ONCE,
    data=st.data(),
)
def test_what_the_transforms_make_is_equal_in_any_batches(
    shape: tuple[list[int], bool], sizes: list[int], codec: int, at_once: tuple[int, int], data: st.DataObject
) -> None:
    counts, several = shape
    whole = _made(counts)

    outcome = compared_rows(
        _check(counts, whole, len(whole), several=several),
        whole,
        log(whole.rows, sizes, codec=codec),
        rows_at_once=at_once[0],
        ranges_at_once=at_once[1],
    )

    assert outcome.differences == ()
    assert (outcome.records, outcome.complete, outcome.outside_map) == (len(whole), True, 0)
    assert (outcome.source_next, outcome.target_next) == (_SOURCE_FIRST + len(counts), _TARGET_FIRST + len(whole))
    assert outcome.digest is not None


_STRANGER = SourceRecord(0, value=b"nobody sent it")


@given(
    shape=_shapes(),
    part=st.sampled_from(["key", "value", "headers", "timestamp"]),
    sizes=SIZES,
    at_once=_AT_ONCE,
    data=st.data(),
)
def test_one_altered_record_is_found_with_what_differs(
    shape: tuple[list[int], bool], part: str, sizes: list[int], at_once: tuple[int, int], data: st.DataObject
) -> None:
    counts, several = shape
    whole = _made(counts)
    place = data.draw(st.integers(0, len(whole) - 1))
    copy = list(whole.rows)
    copy[place] = altered(copy[place], part)

    outcome = _compared(counts, copy, several=several, sizes=sizes, at_once=at_once)

    assert places_of(outcome) == [(DifferenceKind.ALTERED, whole.sources[place], _TARGET_FIRST + place)]
    assert outcome.differences[0].what == (part,)
    assert outcome.records == len(whole) - 1


@pytest.mark.parametrize("change", ["missing", "repeated", "added", "swapped"])
@given(sizes=SIZES, at_once=_AT_ONCE, data=st.data())
def test_one_record_that_is_elsewhere_is_found_and_the_rest_compared(
    change: str, sizes: list[int], at_once: tuple[int, int], data: st.DataObject
) -> None:
    counts, several = data.draw(_shapes(least=2 if change in ("missing", "swapped") else 1))
    whole = _made(counts)
    last = len(whole) - {"missing": 1, "repeated": 1, "added": 0, "swapped": 2}[change]
    place = data.draw(st.integers(0, last))
    before, behind = whole.rows[:place], whole.rows[place:]
    source = whole.sources[min(place, len(whole) - 1)]
    copy, kind, source_offset, target_offset, compared = {
        "missing": ([*before, *behind[1:]], DifferenceKind.MISSING, source, None, -1),
        "repeated": ([*before, *behind[:1], *behind], DifferenceKind.EXTRA, None, place + 1, 0),
        "added": ([*before, _STRANGER, *behind], DifferenceKind.EXTRA, None, place, 0),
        "swapped": ([*before, *behind[1::-1], *behind[2:]], DifferenceKind.REORDERED, source, place, -2),
    }[change]

    outcome = _compared(counts, copy, several=several, sizes=sizes, at_once=at_once)

    expected = None if target_offset is None else _TARGET_FIRST + target_offset
    assert places_of(outcome) == [(kind, source_offset, expected)]
    assert outcome.records == len(whole) + compared


@given(
    shape=_shapes(least=2),
    sizes=SIZES,
    at_once=_AT_ONCE,
    kinds=st.lists(st.sampled_from(["alter", "drop", "add", "repeat"]), min_size=1, max_size=8),
    data=st.data(),
)
def test_several_changes_at_once_are_never_taken_for_equal(
    shape: tuple[list[int], bool],
    sizes: list[int],
    at_once: tuple[int, int],
    kinds: list[str],
    data: st.DataObject,
) -> None:
    counts, several = shape
    whole = _made(counts)
    copy = list(whole.rows)
    for kind in kinds:
        place = data.draw(st.integers(0, max(len(copy) - 1, 0)))
        if kind == "add":
            copy.insert(place, _STRANGER)
        elif copy and kind == "drop":
            del copy[place]
        elif copy and kind == "repeat":
            copy.insert(place, copy[place])
        elif copy:
            copy[place] = altered(copy[place], "value")
    same = [each.content for each in copy] == [each.content for each in whole.rows]

    outcome = _compared(counts, copy, several=several, sizes=sizes, at_once=at_once) if copy else None

    if outcome is not None:
        assert outcome.complete
        assert (outcome.difference_count == 0) == same


@given(shape=_shapes(), data=st.data())
def test_what_compaction_removed_on_either_side_is_no_difference(
    shape: tuple[list[int], bool], data: st.DataObject
) -> None:
    counts, several = shape
    whole = _made(counts)
    gone = data.draw(st.sets(st.integers(0, len(whole) - 1)))
    left = [record for number, record in enumerate(whole.rows) if number not in gone]
    on_source = whole.without(data.draw(st.sets(st.sampled_from(sorted(set(whole.sources))))))

    on_target = compared_rows(
        _check(counts, whole, len(whole), several=several, target_compacted=True), whole, log(left) if left else b""
    )
    outcome = compared_rows(
        _check(counts, whole, len(whole), several=several, source_compacted=True), on_source, log(whole.rows)
    )

    assert (on_target.differences, outcome.differences) == ((), ())
    assert (on_target.records, on_target.compacted_target) == (len(left), len(gone))
    assert (outcome.records, outcome.compacted_source) == (len(on_source), len(whole) - len(on_source))


@given(shape=_shapes(), data=st.data())
def test_what_the_ledger_names_as_left_out_is_no_difference(shape: tuple[list[int], bool], data: st.DataObject) -> None:
    counts, several = shape
    whole = _made(counts)
    # As with rows that are too large for the target: any of those that are made of one record.
    gone = data.draw(st.sets(st.integers(0, len(whole) - 1), max_size=5))
    sources = {whole.sources[each] for each in gone}
    left = [number for number in range(len(whole)) if number not in gone]
    copy = at([whole.rows[each] for each in left], _TARGET_FIRST)
    first_places = {whole.sources[number]: place for place, number in reversed(list(enumerate(left)))}
    runs = merge(OffsetRun(source, _TARGET_FIRST + place, 1) for source, place in sorted(first_places.items()))
    gaps = tuple(KnownGap(source, source + 1, "record-too-large") for source in sorted(sources))
    mapped = replace(whole, runs=runs)
    check = _check(counts, mapped, len(copy), several=several, known_gaps=gaps)

    outcome = compared_rows(check, mapped, log(copy) if copy else b"")

    assert outcome.differences == ()
    assert outcome.records + outcome.skipped >= len(whole)


def test_times_that_the_broker_has_replaced_are_not_compared() -> None:
    counts = [1, 0, 2, 1]
    whole = _made(counts)
    raw = log([replace(each, timestamp=1) for each in whole.rows], attributes=LOG_APPEND_TIME)

    outcome = compared_rows(_check(counts, whole, len(whole), several=True), whole, raw)

    assert outcome.differences == ()
    assert not outcome.timestamps_compared


def test_a_record_that_the_map_does_not_know_is_compared_in_its_order() -> None:
    counts = [1, 2, 0, 3, 1]
    whole = _made(counts)
    mapped = replace(whole, runs=(whole.runs[0],))

    outcome = compared_rows(_check(counts, mapped, len(whole), several=True), mapped, log(whole.rows))

    assert outcome.differences == ()
    assert outcome.outside_map > 0


@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=20), sizes=st.lists(st.integers(1, 5), max_size=30))
def test_rows_of_one_record_keep_their_numbers_however_they_come(counts: list[int], sizes: list[int]) -> None:
    whole = _made(counts)
    rows, numbers = rows_of(whole.rows, whole.sources), RowNumbers(several=True)
    found: list[int] = []
    start = 0
    for size in (*sizes, len(rows)):
        stop = min(start + size, len(rows))
        if start < stop:
            found += numbers.block(rows.part(start, stop)).offsets.tolist()
        start = stop

    expected = [((_SOURCE_FIRST + number) << 20) + row for number, count in enumerate(counts) for row in range(count)]
    assert found == expected


def test_rows_out_of_order_are_refused() -> None:
    whole = _made([1, 1])

    for sources, several in (((1, 1), False), ((2, 1), True), ((2, 1), False)):
        with pytest.raises(MirrorError, match="source offset 1"):
            RowNumbers(several=several).block(rows_of(whole.rows, sources))
