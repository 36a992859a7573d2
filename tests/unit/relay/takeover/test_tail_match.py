"""How far an interrupted copy had come, from the two logs alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import pytest
from crc32c import crc32c
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_lib.cluster.batches.spans import Span, read_spans
from mirror_lib.cluster.topics.positions import OmittedRange
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.relay.takeover.tail_match import MismatchError, TailMatch, TailMatcher
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, batch, marker

SOURCE_START, TARGET_START = 100, 40


def log(*batches: bytes, read_committed: bool = False, aborted: Sequence[tuple[int, int]] = ()) -> list[Span]:
    data = b"".join(batches)
    spans, used = read_spans(memoryview(data), aborted, read_committed=read_committed)
    assert used == len(data)
    return spans


def record(offset: int, text: str, **more: object) -> SourceRecord:
    return SourceRecord(offset, key=text.encode(), value=f"value of {text}".encode(), **more)  # type: ignore[arg-type]


def walk(source: Iterable[Span], target: Iterable[Span], *, end: int, step: int = 1) -> TailMatch:
    """Both logs are read a few batches at a time, as fetches would."""
    matcher = TailMatcher(SOURCE_START, TARGET_START, end)
    mine, theirs = iter(list(source)), iter(list(target))
    while True:
        if matcher.needs_target:
            matcher.feed_target(islice(theirs, step))
        more = list(islice(mine, step))
        matcher.feed_source(more)
        matcher.walk(source_ended=not more)
        if matcher.is_finished:
            return matcher.match()


def test_batches_that_went_as_they_are_match_whole() -> None:
    first, second, third = (
        [record(SOURCE_START + 10 * number + each, f"{number}-{each}") for each in range(10)] for number in range(3)
    )
    there = [
        batch([record(TARGET_START + index, each.key.decode()) for index, each in enumerate(first)], codec=3),
        batch([record(TARGET_START + 10 + index, each.key.decode()) for index, each in enumerate(second)], codec=3),
    ]

    found = walk(log(*(batch(each, codec=3) for each in (first, second, third))), log(*there), end=TARGET_START + 20)

    assert found == TailMatch(SOURCE_START + 20, 20, 0, (OffsetRun(SOURCE_START, TARGET_START, 20),))


def test_nothing_on_the_target_leaves_the_position_where_it_was() -> None:
    found = walk(log(batch([record(SOURCE_START, "a")])), [], end=TARGET_START)

    assert found == TailMatch(SOURCE_START, 0, 0, ())


def test_a_fencing_marker_on_the_target_takes_an_offset_and_no_record() -> None:
    source = log(batch([record(SOURCE_START, "a"), record(SOURCE_START + 1, "b")]))
    target = log(
        batch([record(TARGET_START, "a")]),
        marker(TARGET_START + 1, 7, abort=True),
        batch([record(TARGET_START + 2, "b")]),
        marker(TARGET_START + 3, 7, abort=True),
    )

    found = walk(source, target, end=TARGET_START + 4)

    assert found.source_next == SOURCE_START + 2
    assert found.runs == (
        OffsetRun(SOURCE_START, TARGET_START, 1),
        OffsetRun(SOURCE_START + 1, TARGET_START + 2, 1),
    )


def test_markers_and_aborted_records_of_the_source_are_not_missed_on_the_target() -> None:
    source = log(
        batch([record(SOURCE_START, "aborted")], attributes=0x10, producer_id=9),
        marker(SOURCE_START + 1, 9, abort=True),
        batch([record(SOURCE_START + 2, "a")]),
        read_committed=True,
        aborted=[(9, SOURCE_START)],
    )

    found = walk(source, log(batch([record(TARGET_START, "a")])), end=TARGET_START + 1)

    assert found == TailMatch(SOURCE_START + 3, 1, 0, (OffsetRun(SOURCE_START + 2, TARGET_START, 1),))


def test_records_that_the_policy_leaves_out_may_be_missing_on_the_target() -> None:
    source = log(batch([record(SOURCE_START + index, text) for index, text in enumerate("aXbXc")]))
    target = log(batch([record(TARGET_START, "a"), record(TARGET_START + 1, "b")]))
    end = TARGET_START + 2
    matcher = TailMatcher(SOURCE_START, TARGET_START, end, may_be_skipped=lambda each: b"of X" in each.tail)

    matcher.feed_source(source)
    matcher.feed_target(target)
    matcher.walk()

    assert matcher.match().source_next == SOURCE_START + 3
    assert [each.offset for each in matcher.match().skipped] == [SOURCE_START + 1]
    assert matcher.match().runs == (
        OffsetRun(SOURCE_START, TARGET_START, 1),
        OffsetRun(SOURCE_START + 2, TARGET_START + 1, 1),
    )


def test_what_was_left_out_for_certain_is_not_taken_for_its_like() -> None:
    """The second X is on the target, the first is not: only the position tells."""
    source = log(batch([record(SOURCE_START + index, text) for index, text in enumerate("aXXb")]))
    target = log(batch([record(TARGET_START + index, text) for index, text in enumerate("aXb")]))
    left_out = [OmittedRange(SOURCE_START + 1, SOURCE_START + 2, 1, "record-refused")]
    matcher = TailMatcher(SOURCE_START, TARGET_START, TARGET_START + 3, skipped=left_out)

    matcher.feed_source(source)
    matcher.feed_target(target)
    matcher.walk()

    assert matcher.match().source_next == SOURCE_START + 4
    assert matcher.match().runs == (
        OffsetRun(SOURCE_START, TARGET_START, 1),
        OffsetRun(SOURCE_START + 2, TARGET_START + 1, 2),
    )


def test_a_batch_that_was_left_out_whole_is_never_decoded() -> None:
    damaged = bytearray(batch([record(SOURCE_START + 1, "X"), record(SOURCE_START + 2, "Y")]))
    # The number of records, in a batch whose checksum is right nevertheless.
    damaged[57:61] = (9).to_bytes(4, "big")
    damaged[17:21] = crc32c(bytes(damaged[21:])).to_bytes(4, "big")
    source = log(batch([record(SOURCE_START, "a")]), bytes(damaged), batch([record(SOURCE_START + 3, "b")]))
    target = log(batch([record(TARGET_START, "a")]), batch([record(TARGET_START + 1, "b")]))
    left_out = [OmittedRange(SOURCE_START + 1, SOURCE_START + 3, None, "corrupt-batch")]
    matcher = TailMatcher(SOURCE_START, TARGET_START, TARGET_START + 2, skipped=left_out)

    matcher.feed_source(source)
    matcher.feed_target(target)
    matcher.walk()

    assert matcher.match().source_next == SOURCE_START + 4


def test_what_was_left_out_last_is_tried_again() -> None:
    source = log(batch([record(SOURCE_START + index, text) for index, text in enumerate("aX")]))
    left_out = [OmittedRange(SOURCE_START + 1, SOURCE_START + 2, 1, "record-refused")]
    matcher = TailMatcher(SOURCE_START, TARGET_START, TARGET_START + 1, skipped=left_out)

    matcher.feed_source(source)
    matcher.feed_target(log(batch([record(TARGET_START, "a")])))
    matcher.walk()

    assert matcher.match().source_next == SOURCE_START + 1


def test_a_foreign_record_is_a_mismatch_with_both_places() -> None:
    source = log(batch([record(SOURCE_START, "a"), record(SOURCE_START + 1, "b")]))
    target = log(batch([record(TARGET_START, "a"), record(TARGET_START + 1, "foreign")]))

    with pytest.raises(MismatchError) as caught:
        walk(source, target, end=TARGET_START + 2)

    assert (caught.value.source_offset, caught.value.target_offset) == (SOURCE_START + 1, TARGET_START + 1)


def test_key_value_headers_and_timestamp_all_count(subtests: pytest.Subtests) -> None:
    for altered in (
        SourceRecord(TARGET_START, key=b"a", value=b"other"),
        SourceRecord(TARGET_START, key=b"other", value=b"value of a"),
        SourceRecord(TARGET_START, key=b"a", value=b"value of a", headers=(("h", b"1"),)),
        SourceRecord(TARGET_START, key=b"a", value=b"value of a", timestamp=1),
        SourceRecord(TARGET_START, key=None, value=b"value of a"),
    ):
        with subtests.test(altered=altered), pytest.raises(MismatchError):
            walk(log(batch([record(SOURCE_START, "a")])), log(batch([altered])), end=TARGET_START + 1)


def test_more_on_the_target_than_the_source_has_is_a_mismatch() -> None:
    target = log(batch([record(TARGET_START, "a"), record(TARGET_START + 1, "b")]))

    with pytest.raises(MismatchError) as caught:
        walk(log(batch([record(SOURCE_START, "a")])), target, end=TARGET_START + 2)

    assert caught.value.target_offset == TARGET_START + 1


def test_times_that_the_target_gave_are_not_compared() -> None:
    target = batch([record(TARGET_START, "a", timestamp=5)], attributes=LOG_APPEND_TIME, max_timestamp=99)

    found = walk(log(batch([record(SOURCE_START, "a")])), log(target), end=TARGET_START + 1)

    assert found.source_next == SOURCE_START + 1


def test_the_times_of_a_source_with_log_append_time_are_those_that_its_readers_see() -> None:
    source = batch([record(SOURCE_START, "a", timestamp=5)], attributes=LOG_APPEND_TIME, max_timestamp=99)

    found = walk(log(source), log(batch([record(TARGET_START, "a", timestamp=99)])), end=TARGET_START + 1)

    assert found.source_next == SOURCE_START + 1


def test_records_that_the_source_compacted_away_are_taken_as_copied() -> None:
    source = log(batch([record(SOURCE_START + 2, "c"), record(SOURCE_START + 3, "d")], base_offset=SOURCE_START))
    target = log(batch([record(TARGET_START + index, text) for index, text in enumerate("abc")]))

    found = walk(source, target, end=TARGET_START + 3)

    assert found == TailMatch(SOURCE_START + 3, 1, 2, (OffsetRun(SOURCE_START + 2, TARGET_START + 2, 1),))


def test_more_unknown_records_than_the_hole_had_offsets_are_a_mismatch() -> None:
    source = log(batch([record(SOURCE_START + 1, "c")], base_offset=SOURCE_START))
    target = log(batch([record(TARGET_START + index, text) for index, text in enumerate("abc")]))

    with pytest.raises(MismatchError):
        walk(source, target, end=TARGET_START + 3)


def test_records_that_the_target_deleted_are_counted_by_their_offsets() -> None:
    source = log(batch([record(SOURCE_START + index, text) for index, text in enumerate("aaabaabaa")]))
    target = log(batch([record(TARGET_START + 3 + index, text) for index, text in enumerate("baa")]))

    found = walk(source, target, end=TARGET_START + 6)

    assert found.source_next == SOURCE_START + 6


def test_a_marker_among_deleted_offsets_is_no_record_of_the_source() -> None:
    """The target got marker, a, b; the marker is deleted. By its offset it could have been the first a."""
    source = log(batch([record(SOURCE_START + index, text) for index, text in enumerate("aab")]))
    fence = marker(TARGET_START + 2, 7, abort=True)

    with pytest.raises(MismatchError):
        walk(source, log(batch([record(TARGET_START + 1, "a")]), fence), end=TARGET_START + 3)


def test_where_both_sides_lost_records_an_equal_one_that_follows_leaves_nothing_certain() -> None:
    """The source lost a marker, and the target the first a: its second one is not the source's first."""
    source = log(batch([record(SOURCE_START + index, "a") for index in (1, 2)], base_offset=SOURCE_START))
    target = log(batch([record(TARGET_START + 1, "a")]), marker(TARGET_START + 2, 7, abort=True))

    with pytest.raises(MismatchError):
        walk(source, target, end=TARGET_START + 3)


def test_records_that_both_sides_compacted_away_are_explained_by_one_another() -> None:
    source = log(
        batch([record(SOURCE_START + index, text) for index, text in ((2, "c"), (3, "d"))], base_offset=SOURCE_START)
    )
    target = log(batch([record(TARGET_START + 2, "c")], base_offset=TARGET_START))

    found = walk(source, target, end=TARGET_START + 3)

    assert found.source_next == SOURCE_START + 3


def test_holes_on_both_sides_never_swallow_a_record_that_was_not_copied() -> None:
    # The source holds c, d and f; a, b and e are gone. The target holds c; a and b are gone, nothing else was copied.
    kept = [record(SOURCE_START + index, text) for index, text in ((2, "c"), (3, "d"), (5, "f"))]
    source = log(batch(kept, base_offset=SOURCE_START))
    target = log(
        batch([record(TARGET_START + 2, "c")], base_offset=TARGET_START), marker(TARGET_START + 3, 7, abort=True)
    )

    found = walk(source, target, end=TARGET_START + 4)

    assert found.source_next == SOURCE_START + 3


def test_holes_on_both_sides_that_do_not_fit_leave_nothing_certain() -> None:
    source = log(
        batch([record(SOURCE_START + index, text) for index, text in ((1, "b"), (3, "d"))], base_offset=SOURCE_START)
    )
    target = log(batch([record(TARGET_START + 3, "d")], base_offset=TARGET_START))

    with pytest.raises(MismatchError):
        walk(source, target, end=TARGET_START + 4)


def test_records_that_were_all_deleted_leave_nothing_certain() -> None:
    source = log(batch([record(SOURCE_START + index, "a") for index in range(9)]))

    with pytest.raises(MismatchError):
        walk(source, log(marker(TARGET_START + 3, 7, abort=True)), end=TARGET_START + 4)


class History(NamedTuple):
    """Keys of a source, how many were copied, and what has happened to both logs since."""

    keys: list[str]
    copied: int
    #: Indexes of records that each side has compacted away.
    lost_here: set[int]
    lost_there: set[int]
    #: Sizes of the source's batches.
    sizes: list[int]
    #: Indexes before which the target has a marker; the last fence left one at its end as well.
    markers: set[int]
    lost_markers: bool
    #: Offsets of the target that retention has deleted.
    deleted: int


@st.composite
def histories(draw: st.DrawFn) -> History:
    keys = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=14))
    copied = draw(st.integers(0, len(keys)))
    indexes = st.sets(st.integers(0, len(keys) - 1), max_size=4)
    # Compaction never takes the newest record of a key, and never the log's last.
    lost_there = {each for each in draw(indexes) if keys[each] in keys[each + 1 : copied]}
    lost_here = {each for each in draw(indexes) if keys[each] in keys[each + 1 :]}
    sizes = draw(st.lists(st.integers(1, 5), min_size=len(keys), max_size=len(keys)))
    markers = draw(st.sets(st.integers(0, copied), max_size=3))
    return History(keys, copied, lost_here, lost_there, sizes, markers, draw(st.booleans()), draw(st.integers(0, 5)))


def _batches(records: list[SourceRecord | None], first: int, sizes: list[int]) -> list[bytes]:
    found, position = [], 0
    for size in sizes:
        group = records[position : position + size]
        kept = [each for each in group if each is not None]
        if kept:
            found.append(batch(kept, base_offset=first + position, last_offset=first + position + len(group) - 1))
        position += size
    return found


@example(history=History(["a", "a"], 1, set(), set(), [1, 1], {0}, lost_markers=True, deleted=1), step=1, same=True)
@given(histories(), st.integers(1, 3), st.booleans())
def test_the_match_is_the_truth_or_an_error_whatever_compaction_and_retention_took(
    history: History, step: int, same: bool
) -> None:
    keys, copied, lost_here, lost_there = history.keys, history.copied, history.lost_here, history.lost_there
    # Where the source lost one of two equal records, nobody can tell which of them the target has, nor needs to.
    same = same and not lost_here
    moment = {index: 1_000 if same else 1_000 + index for index in range(len(keys))}
    source = [
        None if index in lost_here else record(SOURCE_START + index, key, timestamp=moment[index])
        for index, key in enumerate(keys)
    ]
    there: list[bytes] = []
    at = TARGET_START
    for index in range(copied + 1):
        if index in history.markers:
            if not history.lost_markers and at >= TARGET_START + history.deleted:
                there.append(marker(at, 7, abort=True))
            at += 1
        if index < copied:
            if index not in lost_there and at >= TARGET_START + history.deleted:
                there.append(batch([record(at, keys[index], timestamp=moment[index])]))
            at += 1
    there.append(marker(at, 7, abort=True))

    try:
        found = walk(log(*_batches(source, SOURCE_START, history.sizes)), log(*there), end=at + 1, step=step)
    except MismatchError:
        lost_markers = history.lost_markers and history.markers
        assert lost_here or lost_there or lost_markers or history.deleted, "a log that lost nothing always matches"
    else:
        left = {index for index in range(copied, len(keys)) if index not in lost_here}
        # Every record that was not copied lies behind, every one that was copied lies before.
        assert all(SOURCE_START + index >= found.source_next for index in left)
        assert all(SOURCE_START + index < found.source_next for index in range(copied) if index not in lost_here)
