"""Two logs are aligned by their records: what is equal, and every way of being wrong, at the exact offsets.

Where a consumer of the source continues on the target, by the records themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_lib.features.audit.findings import Answer, Facts, Finding, Kind, Unpaired
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from tests.support.auditing import aligned, audited, renumbered, walked
from tests.support.records.logs import CODECS, SIZES, blocks, log, numbered
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord

_Records = list[SourceRecord]


def found(findings: list[Finding]) -> list[tuple[Kind, int, int | None, int | None]]:
    """Kind, number, and first offsets of both sides."""
    return [
        (
            each.kind,
            each.records,
            None if each.source is None else each.source.first,
            None if each.target is None else each.target.first,
        )
        for each in findings
    ]


@given(count=st.integers(1, 60), ours=SIZES, theirs=SIZES, codec=CODECS, at_once=st.integers(1, 5))
def test_the_same_records_in_any_batches_are_equal(
    count: int, ours: list[int], theirs: list[int], codec: int, at_once: int
) -> None:
    records = numbered(count, first=100)

    account = aligned(log(records, ours), log(renumbered(records, 7), theirs, codec=codec), at_once=at_once)

    assert (account.equal, len(account.only_source), len(account.only_target)) == (count, 0, 0)
    assert (account.source.first, account.source.last) == (100, 99 + count)
    assert (account.target.first, account.target.last) == (7, 6 + count)


def test_given_holes_of_markers_and_compaction_on_either_side_then_the_records_are_equal() -> None:
    records = numbered(40)
    holes = [replace(each, offset=3 * each.offset + each.offset // 7) for each in records]

    assert audited(holes, renumbered(records, 5)) == []
    assert audited(renumbered(records, 5), holes) == []


@given(
    gaps=st.lists(st.sampled_from([0, 0, 0, 1, -1, 5]), min_size=1, max_size=60),
    ours=SIZES,
    theirs=SIZES,
    at_once=st.integers(1, 5),
)
def test_given_offsets_that_are_to_be_the_same_then_the_others_are_found(
    gaps: list[int], ours: list[int], theirs: list[int], at_once: int
) -> None:
    """Both sides have holes of their own."""
    mine, theirs_too, here, there = [], [], 0, 0
    for record, gap in zip(numbered(len(gaps)), gaps, strict=True):
        here, there = here + max(gap, 0), there + max(-gap, 0)
        mine.append(replace(record, offset=here))
        theirs_too.append(replace(record, offset=there))
        here, there = here + 1, there + 1

    account = walked(log(mine, ours), log(theirs_too, theirs), at_once=at_once, same_offsets=True).account

    apart = [(a.offset, b.offset) for a, b in zip(mine, theirs_too, strict=True) if a.offset != b.offset]
    assert account.equal == len(gaps)
    assert sum(each.records for each in account.moved) == len(apart)
    known = dict(apart)
    for each in account.moved:
        assert (known[each.source_first], known[each.source_last]) == (each.target_first, each.target_last)


def test_given_offsets_that_are_to_be_the_same_then_records_that_moved_are_one_finding() -> None:
    source = numbered(40)
    target = [*source[:10], *(replace(each, offset=each.offset + 3) for each in source[10:])]

    walk = walked(log(source, [7] * 6), log(target, [5] * 8), same_offsets=True)

    assert walk.reached() is None
    (moved,) = Unpaired((), (), Facts(judged_end=40), walk.account).findings(Answer())
    assert found([moved]) == [(Kind.MOVED, 30, 10, 13)]
    assert moved.why == "by +3 at the first of them"


@pytest.mark.parametrize("gathered", [False, True])
def test_given_timestamps_that_the_target_has_replaced_then_they_are_not_compared(gathered: bool) -> None:
    records = numbered(30)
    target = log(renumbered(records), [2] * 15, attributes=LOG_APPEND_TIME)
    assert [type(each) for each in blocks(target)] == [RecordBlock]

    account = aligned(log(records, [4] * 8), target, gathered=gathered)

    assert (account.equal, account.replaced_times) == (30, True)
    assert account.altered == []


_AT = 500


def _others(count: int) -> _Records:
    return [replace(each, key=b"other", value=b"other-%d" % each.offset) for each in numbered(count)]


def _another(**parts: bytes | int | None) -> Callable[[_Records], _Records]:
    """One record has another key or timestamp."""
    return lambda r: [*r[:_AT], replace(r[_AT], **parts), *r[_AT + 1 :]]  # type: ignore[arg-type]


#: Besides the faults of a few records, which are found wherever they are (below).
_FAULTS: list[tuple[str, Callable[[_Records], _Records], tuple[Kind, int, int | None, int | None]]] = [
    ("the first are missing", lambda r: r[3:], (Kind.MISSING, 3, 0, None)),
    ("the last are missing", lambda r: r[:-3], (Kind.MISSING, 3, 997, None)),
    ("many are missing", lambda r: r[:_AT] + r[_AT + 300 :], (Kind.MISSING, 300, _AT, None)),
    ("many are repeated", lambda r: r[:_AT] + r[_AT - 300 :], (Kind.REPEATED, 300, _AT - 300, _AT)),
    ("the last are repeated", lambda r: r + r[-20:], (Kind.REPEATED, 20, 980, 1000)),
    (
        "a batch came later",
        lambda r: r[:_AT] + r[_AT + 40 : _AT + 90] + r[_AT : _AT + 40] + r[_AT + 90 :],
        (Kind.REORDERED, 40, _AT, _AT + 50),
    ),
    ("a key is another", _another(key=None), (Kind.CHANGED, 1, _AT, _AT)),
    ("a timestamp is another", _another(timestamp=5), (Kind.CHANGED, 1, _AT, _AT)),
    ("the last is not of the source", lambda r: [*r, SourceRecord(0, value=b"y")], (Kind.EXTRA, 1, None, 1000)),
    ("many are not of the source", lambda r: [*r[:_AT], *_others(300), *r[_AT:]], (Kind.EXTRA, 300, None, _AT)),
]


@pytest.mark.parametrize(("fault", "expected"), [each[1:] for each in _FAULTS], ids=[each[0] for each in _FAULTS])
def test_given_one_fault_then_it_is_found_at_its_offsets_and_nothing_else(
    fault: Callable[[_Records], _Records], expected: tuple[Kind, int, int | None, int | None]
) -> None:
    records = numbered(1_000)

    assert found(audited(records, renumbered(fault(records)))) == [expected]


def test_given_a_long_loss_and_a_long_repeat_then_both_are_found_by_searching_far() -> None:
    records = numbered(40_000)

    lost = audited(records, renumbered(records[:10] + records[20_000:]), size=500, at_once=1)
    repeated = audited(records, renumbered(records[:30_000] + records[10:]), size=500, at_once=1)

    assert found(lost) == [(Kind.MISSING, 19_990, 10, None)]
    assert found(repeated) == [(Kind.REPEATED, 29_990, 10, 30_000)]


def test_given_equal_records_in_a_row_then_as_many_as_lack_are_missing() -> None:
    records = [SourceRecord(offset, timestamp=7, value=b"same") for offset in range(50)]

    assert found(audited(records, renumbered(records[:-4]))) == [(Kind.MISSING, 4, 46, None)]
    assert [(each.kind, each.records) for each in audited(records, renumbered(records + records[:4]))] == [
        (Kind.REPEATED, 4)
    ]


def test_given_other_timestamps_everywhere_then_that_is_one_finding() -> None:
    records = numbered(300)
    later = [replace(each, timestamp=each.timestamp + 60_000) for each in records]

    (finding,) = audited(records, renumbered(later))

    assert (finding.kind, finding.records, finding.parts) == (Kind.CHANGED, 300, ("timestamp",))


@given(st.data())
def test_given_faults_of_all_kinds_apart_from_each_other_then_each_is_found_exactly(data: st.DataObject) -> None:
    records = numbered(data.draw(st.integers(40, 400)))
    target: _Records = []
    expected = []
    at = 0
    while at < len(records):
        apart = data.draw(st.integers(4, 30))
        target += records[at : at + apart]
        at += apart
        count = data.draw(st.integers(1, 12))
        if at + count + 4 >= len(records):
            break
        match data.draw(st.sampled_from(list(Kind)[:5])):
            case Kind.MISSING:
                expected.append((Kind.MISSING, count, at, None))
                at += count
            case Kind.REPEATED:
                count = min(count, apart)
                expected.append((Kind.REPEATED, count, at - count, len(target)))
                target += records[at - count : at]
            case Kind.REORDERED:
                expected.append((Kind.REORDERED, 1, at, len(target) + 1))
                target += [records[at + 1], records[at]]
                at += 2
            case Kind.CHANGED:
                expected.append((Kind.CHANGED, count, at, len(target)))
                target += [replace(each, value=b"other") for each in records[at : at + count]]
                at += count
            case _:
                expected.append((Kind.EXTRA, count, None, len(target)))
                target += [SourceRecord(0, key=b"x%d" % len(target), value=b"%d" % each) for each in range(count)]
    target += records[at:]

    assert sorted(found(audited(records, renumbered(target))), key=str) == sorted(expected, key=str)


def _compacted(records: _Records, data: st.DataObject) -> _Records:
    """What the cleaner leaves: of its part of the log the newest record of each key, and perhaps no deletions."""
    cleaned = data.draw(st.integers(0, len(records)))
    newest = {each.key: each.offset for each in records[:cleaned]}
    keeps_deletions = data.draw(st.booleans())
    left = [
        each
        for each in records[:cleaned]
        if newest[each.key] == each.offset and (keeps_deletions or each.value is not None)
    ]
    return [*left, *records[cleaned:]]


@given(st.data())
def test_given_compaction_on_either_side_then_nothing_is_wrong(data: st.DataObject) -> None:
    keys = data.draw(st.integers(1, 30))
    records = [
        replace(each, key=b"%d" % (each.offset % keys), value=None if each.offset % 7 == 0 else each.value)
        for each in numbered(data.draw(st.integers(2, 150)))
    ]
    on_source, on_target = data.draw(st.booleans()), data.draw(st.booleans())
    copy = renumbered(records)
    source = _compacted(records, data) if on_source else records
    target = _compacted(copy, data) if on_target else copy
    if not source or not target:
        return

    findings = audited(source, target, source_compacted=on_source, target_compacted=on_target)

    assert found(findings) == []


@given(st.data())
def test_given_retention_on_either_side_then_nothing_is_wrong(data: st.DataObject) -> None:
    records = numbered(200)
    # Up to nothing: idle topics are empty after a while.
    cuts = data.draw(st.integers(0, 190) | st.just(200)), data.draw(st.integers(0, 190) | st.just(200))
    source, target = records[cuts[0] :], renumbered(records)[cuts[1] :]

    findings = audited(source, target, source_log_start=cuts[0], target_log_start=cuts[1])

    lost = abs(cuts[0] - cuts[1])
    assert [(each.kind, each.records) for each in findings] == ([(Kind.UNVERIFIABLE, lost)] if lost else [])


def test_given_a_copy_that_ended_before_what_the_source_has_left_then_the_rest_is_missing() -> None:
    records = [replace(each, key=b"%d" % (each.offset % 7)) for each in numbered(90)]

    findings = audited(records[60:], renumbered(records[:50]), source_log_start=60)

    assert [(each.kind, each.records) for each in findings] == [(Kind.UNVERIFIABLE, 50), (Kind.MISSING, 30)]


@given(st.data())
def test_given_compaction_then_a_key_whose_newest_state_lacks_is_found(data: st.DataObject) -> None:
    keys = data.draw(st.integers(2, 20))
    records = [
        replace(each, key=b"%d" % (each.offset % keys), value=None if each.offset % 3 == 0 else each.value)
        for each in numbered(data.draw(st.integers(4 * keys, 150)))
    ]
    lost = records[-1 - data.draw(st.integers(0, keys - 1))]
    target = [each for each in renumbered(records) if each.offset != lost.offset]

    findings = audited(records, _compacted(target, data), source_compacted=False, target_compacted=True)

    # Of a deletion only while the target holds what it would delete.
    if lost.value is not None:
        assert found(findings) == [(Kind.MISSING, 1, lost.offset, None)]
    else:
        assert found(findings) in ([(Kind.MISSING, 1, lost.offset, None)], [])


def test_given_a_deletion_that_never_came_then_it_is_missing_as_long_as_its_key_lives_on() -> None:
    records = [SourceRecord(offset, key=b"k%d" % (offset % 5), value=b"%d" % offset) for offset in range(20)]
    deleted = [*records, SourceRecord(20, key=b"k3", value=None), SourceRecord(21, key=b"k4", value=b"last")]

    findings = audited(deleted, renumbered([*records, deleted[-1]]), target_compacted=True)

    assert found(findings) == [(Kind.MISSING, 1, 20, None)]


def test_given_more_faults_than_are_kept_then_the_walk_ends_where_it_is() -> None:
    records = numbered(2_000)
    target = [each for each in records if each.offset % 2]

    walk = walked(log(records, [50] * 40), log(renumbered(target), [50] * 20), most_unmatched=100)

    assert walk.account.gave_up
    assert 100 <= len(walk.account.only_source) < 300
    assert walk.source.position < 1_000


@given(
    source=st.lists(st.integers(0, 6), max_size=80),
    target=st.lists(st.integers(0, 7), max_size=80),
    at_once=st.integers(1, 4),
)
def test_given_any_two_logs_with_many_equal_records_then_the_numbers_are_those_of_their_multisets(
    source: list[int], target: list[int], at_once: int
) -> None:
    """Whatever is aligned with whatever: what one side has more often is missing, or repeated, extra or changed."""

    def made(numbers: list[int]) -> _Records:
        return [SourceRecord(place, timestamp=7, value=b"%d" % each) for place, each in enumerate(numbers)]

    findings = audited(made(source), made(target), at_once=at_once)

    counts: Counter[Kind] = Counter()
    for each in findings:
        counts[each.kind] += each.records
    only_source, only_target = Counter(source) - Counter(target), Counter(target) - Counter(source)
    assert counts[Kind.MISSING] + counts[Kind.CHANGED] == only_source.total()
    assert counts[Kind.REPEATED] + counts[Kind.EXTRA] + counts[Kind.CHANGED] == only_target.total()
    assert (source == target) == (not findings)
    assert not counts[Kind.UNVERIFIABLE]


@given(st.data())
def test_given_a_copy_with_records_of_other_sources_then_only_the_own_ones_are_judged(data: st.DataObject) -> None:
    records = numbered(data.draw(st.integers(1, 80)))
    lost = data.draw(st.sets(st.integers(0, len(records) - 1), max_size=3))
    copy = [each for place, each in enumerate(records) if place not in lost]
    for other in _others(data.draw(st.integers(0, 80))):
        copy.insert(data.draw(st.integers(0, len(copy))), other)

    findings = audited(records, renumbered(copy), merged=True, size=data.draw(st.integers(1, 9)))

    assert {each.kind for each in findings} <= {Kind.MISSING}
    missing = Counter(each.source.first for each in findings if each.source is not None and each.records == 1)
    assert sum(each.records for each in findings) == len(lost)
    assert set(missing) <= lost


def test_given_a_long_stretch_of_another_source_then_it_takes_no_memory() -> None:
    records = numbered(1_000)
    copy = [*records[:500], *_others(12_000), *records[500:]]

    walk = walked(log(records), log(renumbered(copy)), most_unmatched=2_000, merged=True)

    account = walk.account
    assert (account.equal, account.others, account.gave_up) == (1_000, 12_000, False)
    assert not len(account.only_source) + len(account.only_target)


def test_given_headers_that_a_replicator_drops_everywhere_then_that_is_found_and_other_faults_beside_it() -> None:
    records = [replace(each, headers=(("trace", b"1"),)) for each in numbered(12_000)]
    dropped = [replace(each, headers=()) for each in records]
    foreign = SourceRecord(0, key=b"x", value=b"y", timestamp=1)
    copy = [*dropped[:9_000], *dropped[9_001:10_500], foreign, *dropped[10_500:]]

    findings = audited(records, renumbered(copy), size=400, at_once=20)

    assert [(*each, finding.parts) for each, finding in zip(found(findings), findings, strict=True)] == [
        (Kind.EXTRA, 1, None, 10_499, ()),
        (Kind.CHANGED, 9_000, 0, 0, ("headers",)),
        (Kind.MISSING, 1, 9_000, None, ()),
        (Kind.CHANGED, 1_499, 9_001, 9_000, ("headers",)),
        (Kind.CHANGED, 1_500, 10_500, 10_500, ("headers",)),
    ]


def test_given_keys_in_turn_at_one_time_then_records_that_lack_are_not_taken_for_changed_ones() -> None:
    records = [replace(each, key=b"%d" % (each.offset % 100), timestamp=7) for each in numbered(21_000)]
    copy = [*records[:500], *records[10_500:]]

    findings = audited(records, renumbered(copy), size=400, at_once=20)

    assert found(findings) == [(Kind.MISSING, 10_000, 500, None)]


@settings(max_examples=300)
@given(st.data())
def test_given_holes_losses_and_repeats_then_every_offset_continues_at_the_next_record_that_was_copied(
    data: st.DataObject,
) -> None:
    numbers = data.draw(st.integers(8, 120))
    source = [replace(each, offset=2 * each.offset + each.offset // 5) for each in numbered(numbers)]
    lost = data.draw(st.sets(st.integers(0, numbers - 1), max_size=5))
    again = data.draw(st.integers(0, numbers - 1))
    kept = [each for number, each in enumerate(source) if number not in lost]
    repeats = [each for each in source[max(again - 3, 0) : again] if each in kept]
    at = kept.index(source[again]) if again not in lost else len(kept)
    target = renumbered([*kept[:at], *repeats, *kept[at:]], 50)
    marks = range(source[-1].offset + 3)

    walk = walked(
        log(source, [5] * numbers), log(target, [3] * numbers), marks=(marks, range(50, target[-1].offset + 2))
    )

    copies: dict[bytes | None, set[int]] = defaultdict(set)
    for each in target:
        copies[each.value].add(each.offset)
    end = target[-1].offset + 1
    found = walk.translation.end(*walk.account.passed, end)
    for mark in marks:
        following = next((each for each in source if each.offset >= mark and each.value in copies), None)
        place = found.exact[mark]
        # Of a record that is there twice, either copy is a place to continue at.
        assert place.offset in ({end} if following is None else copies[following.value])
        assert place.records == place.offset - 50
        assert found.source[mark] == sum(each.offset < mark for each in source)
    assert all(records == mark - 50 for mark, records in found.target.items())
