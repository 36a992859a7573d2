"""Which record is which, from two logs alone: after transactions, compaction and retention on either side.

What the ledger and the logs say about the same partition, and what is written of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mirror_lib.copy.takeover.tail_match import MismatchError
from mirror_lib.errors import TransientError
from mirror_lib.features.repair import log_alignment as log_match
from mirror_lib.features.repair.log_alignment import LogMatch, LogMatcher, LogShape
from mirror_lib.features.repair.map_rebuild import Difference, Rebuilt, match_logs
from mirror_lib.features.repair.map_rebuild_plan import RebuildPlan
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.topology.names import TopicPartition
from tests.support.records.offset_maps import records, run_lists
from tests.support.records.record_batches import LOG_APPEND_TIME, SourceRecord, batch, marker

ORDERS = TopicPartition("orders", 0)


@dataclass
class Log:
    """A partition: what stands at its offsets, None for a marker; what is missing was compacted or deleted."""

    start: int = 0
    end: int = 0
    content: dict[int, str | None] = field(default_factory=dict)

    def append(self, text: str | None) -> int:
        self.content[self.end] = text
        self.end += 1
        return self.end - 1

    def compact(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self.content.pop(offset, None)

    def delete_before(self, offset: int) -> None:
        self.start = max(self.start, min(offset, self.end))
        self.compact([each for each in self.content if each < self.start])

    def spans(self, *, per_batch: int = 3, attributes: int = 0, read_committed: bool = False) -> list[Span]:
        """As a fetch gives them; batches hold a few records, with the holes among them."""
        raw: list[bytes] = []
        waiting: list[SourceRecord] = []
        for offset, text in sorted(self.content.items()):
            if text is not None:
                waiting.append(SourceRecord(offset, key=text.encode(), value=b"value", timestamp=7))
            if waiting and (text is None or len(waiting) == per_batch):
                raw.append(batch(waiting, attributes=attributes))
                waiting = []
            if text is None:
                raw.append(marker(offset, 5, abort=True))
        if waiting:
            raw.append(batch(waiting, attributes=attributes))
        found, _ = read_spans(memoryview(b"".join(raw)), (), read_committed=read_committed)
        return found


def shape_of(log: Log, spans: Sequence[Span]) -> LogShape:
    shape = LogShape(log.start, log.end).with_spans(spans, log.start)
    read_to = max((each.next_offset for each in spans), default=log.start)
    return shape if read_to >= log.end else shape.at_end(read_to)


def match(
    source: Log,
    target: Log,
    *,
    certain_end: bool = True,
    skipped: Sequence[tuple[int, int]] | None = (),
    step: int = 2,
    attributes: int = 0,
) -> LogMatch:
    """Both logs are read a few batches at a time, as fetches would."""
    mine, theirs = source.spans(), target.spans(per_batch=4, attributes=attributes)
    shapes = shape_of(source, mine), shape_of(target, theirs)
    matcher = LogMatcher(*shapes, certain_end=certain_end, skipped=skipped)
    sources, targets = iter(mine), iter(theirs)
    for _ in range(100_000):
        if matcher.is_finished:
            return matcher.match()
        if matcher.needs_target:
            matcher.feed_target(list(islice(targets, step)))
        if matcher.needs_source:
            matcher.feed_source(list(islice(sources, step)))
        matcher.walk()
    raise AssertionError("the walk does not end")


def pairs(found: LogMatch) -> list[tuple[int, int]]:
    return records(found.columns.runs())


def copied(
    texts: Iterable[str | None], *, fences: Sequence[int] = (), ahead: int = 0
) -> tuple[Log, Log, dict[int, int]]:
    """A source with these records (None for a marker), its copy, and where each record stands.

    Args:
        fences: before these source offsets a take-over leaves a marker on the target.
        ahead: records that the target had before, of an earlier copy.
    """
    source, target = Log(), Log()
    for number in range(ahead):
        target.append(f"earlier {number}")
    truth = {}
    for text in texts:
        offset = source.append(text)
        if offset in fences:
            target.append(None)
        if text is not None:
            truth[offset] = target.append(text)
    return source, target, truth


def still_there(truth: dict[int, int], source: Log, target: Log) -> list[tuple[int, int]]:
    return [(here, there) for here, there in truth.items() if here in source.content and there in target.content]


def test_far_more_records_are_gone_than_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_match, "LOOKAHEAD", 8)
    monkeypatch.setattr(log_match, "_FIRST_LOOK", 4)
    source, target, truth = copied(f"r{number}" for number in range(300))
    target.delete_before(250)

    assert pairs(match(source, target)) == still_there(truth, source, target)


def test_both_sides_have_compacted_differently() -> None:
    source, target, truth = copied(f"r{number}" for number in range(60))
    source.compact(range(0, 50, 3))
    target.compact(range(1, 50, 4))

    found = match(source, target)

    assert pairs(found) == still_there(truth, source, target)
    assert found.only_on_source == sum(offset not in target.content for offset in source.content)
    assert found.only_on_target == sum(offset not in source.content for offset in target.content)


def test_records_copied_a_second_time_count_where_they_stand_last() -> None:
    source, target, _ = copied(f"r{number}" for number in range(10))
    again = {offset: target.append(text) for offset, text in source.content.items()}

    found = match(source, target)

    assert pairs(found) == list(again.items())
    assert found.only_on_target == 10


def test_without_a_position_content_alone_decides() -> None:
    source, target, truth = copied((f"r{number}" for number in range(30)), ahead=5)
    target.append("another copy wrote this")

    assert pairs(match(source, target, certain_end=False)) == list(truth.items())


def test_timestamps_that_the_target_gave_do_not_count() -> None:
    source, target, truth = copied(f"r{number}" for number in range(10))

    assert pairs(match(source, target, attributes=LOG_APPEND_TIME)) == list(truth.items())


def test_records_that_a_policy_has_left_out(subtests: pytest.Subtests) -> None:
    for skipped in (((4, 5), (9, 11)), None):
        with subtests.test(skipped=skipped):
            source, target = Log(), Log()
            truth = {}
            for number in range(20):
                offset = source.append(f"r{number}")
                if number not in (4, 9, 10):
                    truth[offset] = target.append(f"r{number}")

            found = match(source, target, skipped=skipped)

            assert pairs(found) == list(truth.items())
            assert found.only_on_source == 3


class TestLogsThatDoNotMatch:
    def test_one_record_is_altered_or_foreign_or_two_are_swapped(self, subtests: pytest.Subtests) -> None:
        def swapped(content: dict[int, str | None]) -> dict[int, str | None]:
            return {**content, 10: content[11], 11: content[10]}

        def between(content: dict[int, str | None]) -> dict[int, str | None]:
            return {**{offset + (offset >= 10): text for offset, text in content.items()}, 10: "foreign"}

        def altered(content: dict[int, str | None]) -> dict[int, str | None]:
            return {**content, 10: "altered"}

        for change in (altered, swapped, between):
            with subtests.test(change=change.__name__):
                source, target, _ = copied(f"r{number}" for number in range(20))
                target.content = change(target.content)
                target.end = len(target.content)

                with pytest.raises(MismatchError) as caught:
                    match(source, target)

                if change is altered:
                    assert (caught.value.source_offset, caught.value.target_offset) == (10, 10)

    def test_not_one_record_is_the_same(self, subtests: pytest.Subtests) -> None:
        source, _, _ = copied(f"r{number}" for number in range(20))
        _, target, _ = copied(f"x{number}" for number in range(20))
        for certain_end in (True, False):
            with subtests.test(certain_end=certain_end), pytest.raises(MismatchError):
                match(source, target, certain_end=certain_end)


@st.composite
def _histories(draw: st.DrawFn) -> tuple[Log, Log, dict[int, int]]:
    """A topic that was compacted, copied run by run with take-overs between, and lost records on both sides since."""
    count = draw(st.integers(1, 60))
    gone = draw(st.sets(st.integers(0, count - 1)))
    markers = draw(st.sets(st.integers(0, count - 1), max_size=8))
    fences = draw(st.sets(st.integers(0, count - 1), max_size=4))
    source, target = Log(), Log()
    truth = {}
    for number in range(count):
        offset = source.append(None if number in markers else f"r{number}")
        if number in fences:
            target.append(None)
        if number in gone:
            source.compact([offset])
        elif number not in markers:
            truth[offset] = target.append(f"r{number}")
    source.compact(draw(st.sets(st.integers(0, count - 1))))
    target.compact(draw(st.sets(st.integers(0, max(0, target.end - 1)))))
    source.delete_before(draw(st.integers(0, count)))
    target.delete_before(draw(st.integers(0, target.end)))
    return source, target, truth


@given(history=_histories(), step=st.integers(1, 5), certain_end=st.booleans())
def test_whatever_was_lost_the_rest_is_matched_and_nothing_is_guessed(
    history: tuple[Log, Log, dict[int, int]], step: int, certain_end: bool
) -> None:
    source, target, truth = history
    expected = still_there(truth, source, target)

    try:
        found = match(source, target, step=step, certain_end=certain_end)
    except MismatchError:
        # Only when nothing that is left on both sides is the same.
        assert not expected
    else:
        assert pairs(found) == expected
        assert found.ambiguous == 0


@given(count=st.integers(1, 40), kept=st.tuples(st.integers(0, 40), st.integers(0, 40)), values=st.integers(1, 3))
def test_few_different_values_without_holes_are_never_confused(count: int, kept: tuple[int, int], values: int) -> None:
    source, target, truth = copied(f"r{number % values}" for number in range(count))
    source.delete_before(kept[0])
    target.delete_before(kept[1])

    assert pairs(match(source, target)) == still_there(truth, source, target)


@dataclass
class CleanedLog:
    """A log from which the cleaner takes records before a reading from its start begins."""

    log: Log
    clean: Callable[[int], Iterable[int]]
    readings: int = 0

    async def read(self, offset: int) -> list[Span]:
        if offset == self.log.start:
            self.log.compact(self.clean(self.readings))
            self.readings += 1
        return [each for each in self.log.spans() if each.next_offset > offset][:2]


def found_in(source: CleanedLog, target: CleanedLog) -> LogMatch:
    plan = RebuildPlan(
        ORDERS, ORDERS, source.log.start, source.log.end, target.log.start, target.log.end, certain_end=True
    )
    return asyncio.run(match_logs(plan, source, target, (), lambda _offsets: None))


@example(texts=[None, None, "", None, None, None, None, "", "", None], crashes=[(3, 1), (8, 1)], kept=0)
@given(
    texts=st.lists(st.sampled_from(["a", "b", None, None, "", "", "", ""]), min_size=1, max_size=30),
    crashes=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), max_size=3),
    kept=st.integers(0, 10),
)
def test_where_mirror_maker_copied_again_after_a_crash_the_last_copy_counts(
    texts: list[str | None], crashes: list[tuple[int, int]], kept: int
) -> None:
    """It goes back to the position that it had stored last; some records are equal, and some offsets are markers."""
    source, target = Log(), Log()
    for number, each in enumerate(texts):
        source.append(each or f"r{number}" if each is not None else None)
    truth: dict[int, int] = {}
    at = 0
    for upto, back in [*((min(upto, len(texts)), back) for upto, back in crashes), (len(texts), 0)]:
        for offset in range(at, upto):
            if (copied_text := source.content[offset]) is not None:
                truth[offset] = target.append(copied_text)
        at = max(0, max(at, upto) - back)
    # Our own run goes on at its end.
    for number in range(kept):
        truth[source.append(f"new {number}")] = target.append(f"new {number}")

    are_equal = bool({"a", "b"} & set(texts))
    try:
        found = found_in(CleanedLog(source, lambda _: ()), CleanedLog(target, lambda _: ()))
    except MismatchError:
        # Repetitions within a few records of one another are refused.
        assert are_equal or len(crashes) > 1
        return

    there = pairs(found)
    for here, offset in there:
        # Whoever goes on there reads all that it has not read.
        onward = iter([target.content[each] for each in range(offset, target.end)])
        assert all(
            source.content[each] in onward for each in range(here, source.end) if source.content[each] is not None
        )
    if not are_equal and None not in texts:
        assert there == sorted(truth.items())
    elif not are_equal and found.repeated:
        # Next to markers a single repetition may be taken for a hole; what counts as repeated is no last copy.
        assert [here for here, _ in there] == sorted(truth)
        repeated = {offset for first, following in found.repeated for offset in range(first, following)}
        assert not repeated & {*truth.values(), *(offset for _, offset in there)}


class TestACleanerThatIsAtWork:
    """Both logs are read twice; what the cleaner removes between the readings is a hole in the second one only."""

    @given(
        count=st.integers(2, 40),
        before=st.tuples(st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39))),
        between=st.tuples(st.sets(st.integers(0, 38)), st.sets(st.integers(0, 38))),
    )
    def test_between_both_readings(
        self, count: int, before: tuple[set[int], set[int]], between: tuple[set[int], set[int]]
    ) -> None:
        source, target, truth = copied(f"r{number}" for number in range(count))
        # The newest record of a log is never removed.
        source.compact(before[0] - {count - 1})
        target.compact(before[1] - {count - 1})

        found = found_in(
            CleanedLog(source, lambda reading: between[0] - {count - 1} if reading == 1 else ()),
            CleanedLog(target, lambda reading: between[1] - {count - 1} if reading == 1 else ()),
        )

        assert pairs(found) == still_there(truth, source, target)

    def test_that_never_rests_is_no_other_writer(self) -> None:
        source, target, _ = copied(f"r{number}" for number in range(40))

        with pytest.raises(TransientError, match="cannot be compared"):
            found_in(CleanedLog(source, lambda reading: [reading]), CleanedLog(target, lambda _reading: ()))

    def test_that_rests_does_not_hide_another_writer(self) -> None:
        source, target, _ = copied(f"r{number}" for number in range(40))
        target.content[20] = "somebody else's"

        with pytest.raises(MismatchError):
            found_in(CleanedLog(source, lambda _reading: ()), CleanedLog(target, lambda _reading: ()))


@given(behind=st.lists(st.sampled_from([None, "x"]), max_size=6), on_source=st.booleans())
def test_what_stands_behind_the_end_changes_nothing(behind: list[str | None], on_source: bool) -> None:
    # Given two logs up to their ends, and others' records and markers behind one of them
    here, there = Log(), Log()
    for text in ("a", "b", "c"):
        here.append(text)
        there.append(text)
    for text in behind:
        (here if on_source else there).append(text)
    spans = here.spans(), there.spans()
    shapes = [LogShape(0, 3).with_spans(each, 0) for each in spans]

    matcher = LogMatcher(shapes[0], shapes[1], certain_end=True)
    matcher.feed_source(spans[0])
    matcher.feed_target(spans[1])
    matcher.walk()

    assert matcher.is_finished
    assert matcher.as_shaped
    assert pairs(matcher.match()) == [(0, 0), (1, 1), (2, 2)]


@given(ledger=run_lists(), logs=run_lists())
def test_records_are_compared_one_by_one(ledger: tuple[OffsetRun, ...], logs: tuple[OffsetRun, ...]) -> None:
    known, told = dict(records(ledger)), dict(records(logs))

    found = Difference.between(RunColumns.of(ledger), RunColumns.of(logs))

    both = known.keys() & told.keys()
    assert found == Difference(
        same=sum(known[source] == told[source] for source in both),
        only_in_ledger=len(known.keys() - both),
        only_in_logs=len(told.keys() - both),
        contradicting=sum(known[source] != told[source] for source in both),
    )


@given(runs=run_lists(), data=st.data())
def test_a_map_that_the_logs_do_not_add_to_is_left_as_it_is(runs: tuple[OffsetRun, ...], data: st.DataObject) -> None:
    """Retention has taken some of it: what the ledger knows of that is still true."""
    whole = RunColumns.of(runs)
    pairs = records(runs)
    kept = [pair for pair in pairs if data.draw(st.booleans())]
    difference = Difference.between(whole, RunColumns.of([OffsetRun(*pair, 1) for pair in kept]))

    rebuilt = Rebuilt(RebuildPlan(ORDERS, ORDERS, 0, 1, 0, 1, certain_end=True), difference=difference)

    assert not rebuilt.changes
    assert (difference.same, difference.only_in_ledger) == (len(kept), len(pairs) - len(kept))
