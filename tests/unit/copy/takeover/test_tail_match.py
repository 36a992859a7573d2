"""How far an interrupted copy had come, from the two logs alone.

A take-over that has to look far ahead among records that become far larger than their batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_lib.cluster.topics.position_format import OmittedRange
from mirror_lib.copy.takeover.tail_match import MismatchError, TailMatch, TailMatcher
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.records.header import Codec
from mirror_lib.records.spans import Span, read_spans
from tests.support.own_process import MEBIBYTE, measured
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, batch, marker, with_body

SOURCE_START, TARGET_START = 100, 40


def log(*batches: bytes, read_committed: bool = False, aborted: Sequence[tuple[int, int]] = ()) -> list[Span]:
    data = b"".join(batches)
    spans, used = read_spans(memoryview(data), aborted, read_committed=read_committed)
    assert used == len(data)
    return spans


def record(offset: int, text: str, **more: object) -> SourceRecord:
    return SourceRecord(offset, key=text.encode(), value=f"value of {text}".encode(), **more)  # type: ignore[arg-type]


def written(text: str, start: int) -> list[Span]:
    """A log from an offset on, one offset for each character.

    A letter is a record, `|` a marker, `.` a record that compaction has taken out of its batch, and `-` an offset that
    was deleted with its batch.
    """
    batches = []
    for group in re.finditer(r"[a-zA-Z.]+|[|]", text):
        base = start + group.start()
        if group[0] == "|":
            batches.append(marker(base, 7, abort=True))
        else:
            kept = [record(base + at, letter) for at, letter in enumerate(group[0]) if letter != "."]
            batches.append(batch(kept, base_offset=base))
    return log(*batches)


def here(text: str) -> list[Span]:
    return written(text, SOURCE_START)


def there(text: str) -> list[Span]:
    return written(text, TARGET_START)


def run(source: int, target: int, count: int) -> OffsetRun:
    return OffsetRun(SOURCE_START + source, TARGET_START + target, count)


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


def compared(source: str, target: str) -> TailMatch:
    return walk(here(source), there(target), end=TARGET_START + len(target))


def test_batches_that_went_as_they_are_match_whole() -> None:
    first, second, third = (
        [record(SOURCE_START + 10 * number + each, f"{number}-{each}") for each in range(10)] for number in range(3)
    )
    copied = [
        batch([record(TARGET_START + index, each.key.decode()) for index, each in enumerate(first)], codec=3),
        batch([record(TARGET_START + 10 + index, each.key.decode()) for index, each in enumerate(second)], codec=3),
    ]

    found = walk(log(*(batch(each, codec=3) for each in (first, second, third))), log(*copied), end=TARGET_START + 20)

    assert found == TailMatch(SOURCE_START + 20, 20, 0, (run(0, 0, 20),))


def test_markers_and_aborted_records_of_the_source_are_not_missed_on_the_target() -> None:
    source = log(
        batch([record(SOURCE_START, "aborted")], attributes=0x10, producer_id=9),
        marker(SOURCE_START + 1, 9, abort=True),
        batch([record(SOURCE_START + 2, "a")]),
        read_committed=True,
        aborted=[(9, SOURCE_START)],
    )

    found = walk(source, there("a"), end=TARGET_START + 1)

    assert found == TailMatch(SOURCE_START + 3, 1, 0, (run(2, 0, 1),))


def test_records_that_the_source_compacted_away_are_taken_as_copied() -> None:
    assert compared("..cd", "abc") == TailMatch(SOURCE_START + 3, 1, 2, (run(2, 2, 1),))


class TestSkippedRecords:
    def matched(self, source: list[Span], target: str, **rules: Any) -> TailMatch:
        matcher = TailMatcher(SOURCE_START, TARGET_START, TARGET_START + len(target), **rules)
        matcher.feed_source(source)
        matcher.feed_target(there(target))
        matcher.walk()
        return matcher.match()

    def test_records_that_the_policy_leaves_out_may_be_missing_on_the_target(self) -> None:
        found = self.matched(here("aXbXc"), "ab", may_be_skipped=lambda each: b"of X" in each.tail)

        assert found.source_next == SOURCE_START + 3
        assert [each.offset for each in found.skipped] == [SOURCE_START + 1]
        assert found.runs == (run(0, 0, 1), run(2, 1, 1))

    def test_what_was_left_out_for_certain_is_not_taken_for_its_like(self) -> None:
        """The second X is on the target, the first is not: only the position tells."""
        skipped = [OmittedRange(SOURCE_START + 1, SOURCE_START + 2, 1, "record-refused")]

        found = self.matched(here("aXXb"), "aXb", skipped=skipped)

        assert found.source_next == SOURCE_START + 4
        assert found.runs == (run(0, 0, 1), run(2, 1, 2))

    def test_a_batch_that_was_left_out_whole_is_never_decoded(self) -> None:
        # The number of records, in a batch whose checksum is right nevertheless.
        two = batch([record(SOURCE_START + 1, "X"), record(SOURCE_START + 2, "Y")])
        damaged = with_body(two, two[61:], count=9)
        source = log(batch([record(SOURCE_START, "a")]), damaged, batch([record(SOURCE_START + 3, "b")]))
        skipped = [OmittedRange(SOURCE_START + 1, SOURCE_START + 3, None, "corrupt-batch")]

        assert self.matched(source, "ab", skipped=skipped).source_next == SOURCE_START + 4

    def test_what_was_left_out_last_is_tried_again(self) -> None:
        skipped = [OmittedRange(SOURCE_START + 1, SOURCE_START + 2, 1, "record-refused")]

        assert self.matched(here("aX"), "a", skipped=skipped).source_next == SOURCE_START + 1


def test_a_foreign_record_is_a_mismatch_with_both_places() -> None:
    with pytest.raises(MismatchError) as caught:
        compared("ab", "af")

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
            walk(here("a"), log(batch([altered])), end=TARGET_START + 1)


def test_more_on_the_target_than_the_source_has_is_a_mismatch() -> None:
    with pytest.raises(MismatchError) as caught:
        compared("a", "ab")

    assert caught.value.target_offset == TARGET_START + 1


def test_the_times_of_a_source_with_log_append_time_are_those_that_its_readers_see() -> None:
    source = batch([record(SOURCE_START, "a", timestamp=5)], attributes=LOG_APPEND_TIME, max_timestamp=99)

    found = walk(log(source), log(batch([record(TARGET_START, "a", timestamp=99)])), end=TARGET_START + 1)

    assert found.source_next == SOURCE_START + 1


def test_holes_are_passed_as_far_as_it_is_certain_what_was_in_them() -> None:
    for case, source, target, copied in (
        ("records that the target deleted are counted by their offsets", "aaabaabaa", "---baa", 6),
        ("records that both sides compacted away are explained by one another", "..cd", "..c", 3),
        # The source has lost a, b and e. The target has lost a and b, and nothing else was copied.
        ("holes on both sides never swallow a record that was not copied", "..cd.f", "..c|", 3),
    ):
        assert compared(source, target).source_next == SOURCE_START + copied, case


def test_where_nothing_is_certain_the_logs_do_not_match(subtests: pytest.Subtests) -> None:
    for case, source, target in (
        ("more unknown records than the hole had offsets", ".c", "abc"),
        # The target got marker, a, b; the marker is deleted. By its offset it could have been the first a.
        ("a marker among deleted offsets is no record of the source", "aab", "-a|"),
        # The source lost a marker, and the target the first a: its second one is not the source's first.
        ("both sides lost records, and an equal one follows", ".aa", "-a|"),
        ("holes on both sides that do not fit", ".b.d", "...d"),
        ("all records were deleted", "aaaaaaaaa", "---|"),
    ):
        with subtests.test(case=case), pytest.raises(MismatchError):
            compared(source, target)


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


_HOLE = 100
_SIZE = 2 * MEBIBYTE


def all_ahead() -> int:
    """Both sides have lost the records before the first; each later one is compared with it."""
    first = read_spans(memoryview(batch([SourceRecord(_HOLE, value=b"first")], base_offset=0)), (), read_committed=True)
    later = [batch([SourceRecord(_HOLE + 1 + at, value=bytes(_SIZE))], codec=Codec.ZSTD) for at in range(_HOLE)]
    matcher = TailMatcher(0, 0, _HOLE + 1)
    matcher.feed_source([*first[0], *read_spans(memoryview(b"".join(later)), (), read_committed=True)[0]])
    matcher.feed_target(first[0])
    matcher.walk()
    return matcher.match().records


def test_records_ahead_are_compared_and_not_held() -> None:
    found = measured(all_ahead)

    assert found.result == 1
    assert found.grown < 20 * _SIZE
