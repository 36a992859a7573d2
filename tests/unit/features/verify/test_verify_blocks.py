"""Small batches of the source compared as blocks: whatever the target holds, the result is that of single records."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.whole_batches import holds
from mirror_lib.offsets.runs import OffsetRun
from tests.support.records.logs import at, blocks, check_of, compared, log, numbered, spans, whole_range
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, batch

_SIZES = st.lists(st.integers(1, 30), max_size=8)
_CODECS = st.sampled_from([0, 3, 4])


@given(
    count=st.integers(10, 120),
    theirs=_SIZES,
    codecs=st.tuples(_CODECS, _CODECS),
    at_once=st.integers(1, 3),
    first=st.integers(0, 3),
)
def test_a_copy_in_any_batches_is_equal(
    count: int, theirs: list[int], codecs: tuple[int, int], at_once: int, first: int
) -> None:
    records = numbered(count)
    # The range may begin inside a batch.
    runs = [OffsetRun(first, 50 + first, count - first)]
    source, target = log(records, [1, 2] * 60, codec=codecs[0]), log(at(records, 50), theirs, codec=codecs[1])

    outcome = compared(check_of(whole_range(runs, to_end=50 + count)), source, target, at_once=at_once, gathered=True)

    assert outcome.differences == ()
    assert outcome.records == count - first
    assert outcome.complete


@given(data=st.data(), count=st.integers(20, 120), theirs=_SIZES, codec=_CODECS, at_once=st.integers(1, 3))
def test_what_differs_is_told_as_without_blocks(
    data: st.DataObject, count: int, theirs: list[int], codec: int, at_once: int
) -> None:
    records = numbered(count)
    copy = list(records)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(copy) - 1))
        match data.draw(st.sampled_from(["drop", "double", "value", "time"])):
            case "drop":
                del copy[place]
            case "double":
                copy.insert(place, copy[place])
            case "value":
                copy[place] = replace(copy[place], value=b"another")
            case _:
                copy[place] = replace(copy[place], timestamp=copy[place].timestamp - 1)
    check = check_of(whole_range([OffsetRun(0, 0, count)], to_end=len(copy)))
    source, target = log(records, [1, 1, 3] * 40, codec=codec), log(at(copy, 0), theirs)

    gathered = compared(check, source, target, at_once=at_once, gathered=True)

    one_by_one = compared(check, source, target, at_once=at_once)
    assert replace(gathered, records_undecoded=0) == replace(one_by_one, records_undecoded=0)


def test_holes_of_the_source_are_closed_on_the_target() -> None:
    # Transaction markers, or what compaction removed.
    records = [replace(record, offset=record.offset * 3) for record in numbered(60)]
    check = check_of(whole_range([OffsetRun(3 * number, number, 1) for number in range(60)], to_end=60))

    outcome = compared(check, log(records, [1] * 60), log(at(records, 0), [25, 25]), gathered=True)

    assert outcome.differences == ()
    assert outcome.records == 60


def test_times_that_the_target_gave_are_not_compared() -> None:
    records = numbered(40)
    check = check_of(whole_range([OffsetRun(0, 0, 40)], to_end=40))
    stamped = log(at(records, 0), [20], attributes=LOG_APPEND_TIME)

    outcome = compared(check, log(records, [1] * 40), stamped, gathered=True)

    assert outcome.differences == ()
    assert (outcome.records, outcome.timestamps_compared) == (40, False)


def _body(records: list[SourceRecord]) -> tuple[bytes, int]:
    (span,) = spans(batch(records))
    assert span.header is not None
    return span.body, span.header.first_timestamp


@given(
    contents=st.lists(st.tuples(st.binary(max_size=9000), st.integers(0, 2_000_000_000_000)), min_size=8, max_size=300),
    split=st.integers(1, 7),
)
def test_a_body_holds_the_records_that_it_was_made_of(contents: list[tuple[bytes, int]], split: int) -> None:
    # Times before the batch's first one, and lengths and numbers of one byte and of more.
    records = [SourceRecord(number, time, value=value) for number, (value, time) in enumerate(contents)]
    (block,) = (each for each in blocks(log([replace(each, value=None) for each in records], [1] * 300)))
    assert isinstance(block, RecordBlock)
    small = [replace(each, value=each.value and each.value[:200]) for each in records]
    (block,) = blocks(log(small, [1] * 300))
    assert isinstance(block, RecordBlock)
    parts = [block.part(0, split), block.part(split, len(block))]

    assert holds(*_body(small), parts)
    assert not holds(*_body(small[:-1]), parts)
    altered = [*small[:-1], replace(small[-1], timestamp=small[-1].timestamp + 1)]
    assert not holds(*_body(altered), parts)
