"""Compare one range of both logs in order, through the exact offset map. Pure: spans in, an outcome out.

Of transformed records, the source side is the output of the transforms, as blocks of records.

Batches that were copied untouched are compared as bytes (`whole_batches`). Where batches do not line up, both sides are
decoded into columns and compared list by list; single records are compared only where the lists differ. After a
difference both sides are aligned again by content (`realignment.explain`); `Placement` keeps the distance to the map.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.expected_offsets import Hole, Placement
from mirror_lib.features.verify.compare.realignment import LOOK_AHEAD, differing_parts, explain, short_digest
from mirror_lib.features.verify.compare.side import REPLACED, Side
from mirror_lib.features.verify.compare.tally import Tally
from mirror_lib.features.verify.compare.whole_batches import WholeBatches
from mirror_lib.features.verify.findings import Difference, DifferenceKind, RangeOutcome
from mirror_lib.features.verify.model import CheckRange, PartitionCheck
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.records.spans import Span
from mirror_lib.topology.names import TopicPartition

#: Source records that are decoded at a time where the target has none.
_AT_ONCE = 1_000


def whole_partition(source: TopicPartition, target: TopicPartition, range_: CheckRange) -> PartitionCheck:
    """Return a check of one range that needs only the offset map."""
    return PartitionCheck(source=source, target=target, ranges=(range_,), target_end=range_.target_next)


class RangeComparer:
    """The comparison of one range.

    Call `walk`, then feed the sides for which `needs_source` and `needs_target` are set, until it is `finished`.
    """

    def __init__(self, check: PartitionCheck, range_: CheckRange, *, keep: int = 20) -> None:
        """Begin at the start of the range.

        Args:
            keep: differences to keep; all are counted.
        """
        self._check = check
        self._range = range_
        self._placement = Placement(range_.runs, several=check.several)
        # Several rows of one source record each need a number: see `expected_offsets.RowPlaces`.
        self._row_bits = self._placement.row_bits
        self.source = Side(range_.source_first << self._row_bits, range_.source_next << self._row_bits)
        # A target log may end before the map does: then its last records were lost.
        target_end = max(min(range_.target_next, check.target_end), range_.target_first)
        self.target = Side(range_.target_first, target_end, hide_append_times=True)
        self.needs_source = self.needs_target = False
        self.finished = False
        #: The last hole in the map that had records, and how many of its source and target offsets had one.
        self._hole: Hole | None = None
        self._used = [0, 0]
        self._unknown_deleted = range_.unknown_deleted
        self._tally = Tally(range_, keep=keep)
        self._whole = WholeBatches(self.source, self.target, self._placement, self._tally)

    def feed_source(self, spans: Sequence[Span | RecordBlock], next_offset: int) -> None:
        """Feed spans of the source from `source.fed_to` on."""
        self.source.feed(spans, next_offset)

    def feed_target(self, spans: Sequence[Span | RecordBlock], next_offset: int) -> None:
        """Feed spans of the target from `target.fed_to` on; no blocks."""
        self.target.feed(spans, next_offset)

    def source_expired(self, log_start: int) -> None:
        """Note that retention removed everything below an offset during the comparison."""
        self.source.log_start = max(self.source.log_start, log_start << self._row_bits)
        self.source.feed((), log_start << self._row_bits)

    def target_expired(self, log_start: int) -> None:
        """Like `source_expired`, for the target."""
        self.target.log_start = max(self.target.log_start, log_start)
        self.target.feed((), log_start)

    def walk(self) -> None:
        """Compare as far as what was fed reaches.

        Raises:
            RecordError, CodecError: a batch cannot be read.
        """
        self.needs_source = self.needs_target = False
        while not self.finished and self._step():
            pass

    @property
    def met_records(self) -> bool:
        """Return True if the range has a record that counts, on either side."""
        return self._tally.records > 0 or self._tally.has_differences

    def outcome(self) -> RangeOutcome:
        """Return what was found so far."""
        source_next, target_next = self._compared_to()
        rows = self._row_bits > 0
        return self._tally.outcome(source_next, target_next, complete=self.finished, rows=rows)

    def _compared_to(self) -> tuple[int, int]:
        """Return the offsets of both sides before which everything is compared."""
        if self.finished:
            return self._range.source_next, self._range.target_next
        position = min(self.source.position, self.source.end)
        return self._placement.resume_at(position, self.target.position)

    def _step(self) -> bool:
        """Do one step; return False when something must be fed first, or all is done."""
        while True:
            if self._is_starved():
                return False
            if not self._whole.pass_next():
                break
        self.needs_source = self._whole.needs_source
        if self.needs_source:
            return False
        have_source, have_target = self._have(1)
        if self._waits():
            return False
        if have_source and have_target:
            self._compare_records()
        elif have_source:
            self._only_on_source()
        elif have_target:
            self._only_on_target()
        else:
            self.finished = True
        return not self._waits()

    def _is_starved(self) -> bool:
        """Return True if a side has nothing to compare until more is fed, and note which."""
        self.needs_source, self.needs_target = self.source.is_starved, self.target.is_starved
        return self._waits()

    def _waits(self) -> bool:
        return self.needs_source or self.needs_target

    def _have(self, wanted: int) -> tuple[int, int]:
        """Decode until `wanted` records wait on both sides or their ends are reached; notes what must be fed.

        Fewer records, but at least one, are decoded if they are very large.
        """
        source, target = self.source, self.target
        while target.pending_records < wanted and not target.is_full and self._decode_target():
            pass
        # Many small batches on one side can equal one large batch on the other: long lists are compared at once.
        while source.pending_records < (enough := max(wanted, target.pending_records)) and not source.is_full:
            if source.decode_next(enough - source.pending_records if target.pending_records else _AT_ONCE) is None:
                break
        while 0 < target.pending_records < source.pending_records and not target.is_full and self._decode_target():
            pass
        self.needs_source = source.pending_records < wanted and not (source.is_exhausted or source.is_full)
        self.needs_target = target.pending_records < wanted and not (target.is_exhausted or target.is_full)
        return self.source.visible(wanted), self.target.visible(wanted)

    def _decode_target(self) -> bool:
        span = self.target.decode_next()
        if span is None:
            return False
        assert isinstance(span, Span), "the target's batches count in the digest one by one"
        self._tally.note_target(span)
        self._tally.timestamps_compared &= not span.log_append_time
        return True

    def _compare_records(self) -> None:
        """Both sides have a record: pass as many equal ones as possible, or judge the first."""
        source, target = self.source, self.target
        mine, theirs = source.offsets[source.at], target.offsets[target.at]
        run = self._placement.run_of(mine)
        if run is None:
            self._outside(mine, theirs)
            return
        place = self._placement.place(run, mine)
        if place != theirs:
            self._out_of_place(place, theirs)
            return
        equal = self._equal_ahead(run)
        if equal:
            self._pass_equal(equal)
        else:
            self._part()

    def _pass_equal(self, count: int) -> None:
        self._tally.equal(count, decoded=True)
        self.source.advance(count)
        self.target.advance(count)

    def _equal_ahead(self, run: OffsetRun) -> int:
        """Return how many of the next records are equal and at their expected offsets."""
        source, target = self.source, self.target
        i, j = source.at, target.at
        count = min(
            source.visible(source.pending_records),
            target.visible(target.pending_records),
            run.source_next - source.offsets[i],
        )
        if (
            source.offsets[i + count - 1] - source.offsets[i] == count - 1
            and target.offsets[j + count - 1] - target.offsets[j] == count - 1
            and source.tails[i : i + count] == target.tails[j : j + count]
            and self._same_times(i, j, count)
        ):
            return count
        for ahead in range(count):
            a, b = i + ahead, j + ahead
            if source.offsets[a] - source.offsets[i] != target.offsets[b] - target.offsets[j] or not self._same(a, b):
                return ahead
        return count

    def _same_times(self, i: int, j: int, count: int) -> bool:
        theirs = self.target.times[j : j + count]
        return self.source.times[i : i + count] == theirs or theirs.count(REPLACED) == count

    def _same(self, i: int, j: int) -> bool:
        return self.source.tails[i] == self.target.tails[j] and self._same_times(i, j, 1)

    def _only_on_source(self) -> None:
        """The target has ended."""
        source = self.source
        mine = source.offsets[source.at]
        run = self._placement.run_of(mine)
        if run is None:
            self._unmapped()
            return
        place = self._placement.place(run, mine)
        if place < self.target.log_start:
            self._tally.expired += 1
            self._skip_source()
        elif self._check.target_compacted and place < self.target.fed_to and place < self._check.target_end:
            self._tally.compacted_target += 1
            self._skip_source()
        else:
            self._lone_source(DifferenceKind.MISSING)

    def _only_on_target(self) -> None:
        """The source has ended."""
        theirs = self.target.offsets[self.target.at]
        back = self._placement.number_at(theirs, passed=self.source.passed)
        if back is None:
            self._lone_target()
        else:
            self._vanished_on_source(back)

    def _outside(self, mine: int, theirs: int) -> None:
        """Judge a source record that is not in the map."""
        end = self._placement.hole_end(mine)
        is_outside = end is None or theirs < end
        if is_outside and self._same(self.source.at, self.target.at) and not self._check.shared_target:
            self._tally.records += 1
            self._tally.outside_map += 1
            self._use(self._placement.hole_of(mine), source=1, target=1)
            self.source.advance(1)
            self.target.advance(1)
        else:
            self._unmapped()

    def _unmapped(self) -> None:
        """Judge a source record that is not in the map, and not on the target either.

        A killed run may have written it to a compacted topic whose cleaner removed it before the next run could find it
        there: then the target has offsets without a record in that place, at least one for each such record. The same
        holds for what retention has deleted of a copy whose ledger was restored.
        """
        hole = self._placement.hole_of(self.source.offsets[self.source.at])
        if hole.first is None and self._unknown_deleted > 0:
            self._unknown_deleted -= 1
            self._tally.expired += 1
            self.source.advance(1)
            return
        if self._check.target_compacted and self._has_unused(hole, source=False):
            self._use(hole, source=1, target=1)
            self._tally.compacted_target += 1
            self.source.advance(1)
            return
        self._use(hole, source=1)
        self._lone_source(DifferenceKind.UNMAPPED)

    def _has_unused(self, hole: Hole, *, source: bool) -> bool:
        """Return True if a side has an offset in a hole that may have been a record which compaction removed."""
        if self._row_bits:
            return False
        range_, used = self._range, self._used if hole == self._hole else (0, 0)
        first = range_.source_first, range_.target_first
        on_source, on_target = hole.sizes(first, (range_.source_next, self.target.end))
        return used[0] < on_source if source else used[1] < on_target

    def _use(self, hole: Hole, *, source: int = 0, target: int = 0) -> None:
        """Note that offsets of a hole had a record."""
        if hole != self._hole:
            self._hole, self._used = hole, [0, 0]
        self._used[0] += source
        self._used[1] += target

    def _out_of_place(self, place: int, theirs: int) -> None:
        """Judge the target's next record, which is not at the expected offset of the source's next record."""
        if theirs > place:
            if place < self.target.log_start:
                self._tally.expired += 1
                self._skip_source()
            elif self._check.target_compacted:
                self._tally.compacted_target += 1
                self._skip_source()
            elif not self._move(theirs - place):
                self._lone_source(DifferenceKind.MISSING)
            return
        back = self._placement.number_at(theirs, passed=self.source.passed)
        if back is not None:
            self._vanished_on_source(back)
        elif self._check.shared_target or self._is_foreign(theirs) or not self._move(theirs - place):
            self._lone_target()

    def _move(self, distance: int) -> bool:
        """Return True if the record is the right one at another offset than the map says; then the rest is moved
        too.
        """
        source, target = self.source, self.target
        if self._check.shared_target or not self._same(source.at, target.at):
            return False
        self._add(DifferenceKind.UNMAPPED, source.at, target.at)
        self._placement.drift += distance
        self._tally.accounted += 1
        source.advance(1)
        target.advance(1)
        self._move_end()
        return True

    def _vanished_on_source(self, source_offset: int) -> None:
        """Judge a target record that is in the map but no longer on the source."""
        if source_offset < self.source.log_start:
            self._tally.expired += 1
        elif self._check.source_compacted:
            self._tally.compacted_source += 1
        elif self._is_skipped(source_offset) or self._is_skipped(source_offset, rewritten=True):
            self._tally.skipped += 1
        else:
            self._add(DifferenceKind.EXTRA, None, self.target.at)
        self._tally.accounted += 1
        self.target.advance(1)

    def _lone_source(self, kind: DifferenceKind) -> None:
        """The source's next record has no counterpart."""
        source = self.source
        if self._is_skipped(source.offsets[source.at]):
            self._tally.skipped += 1
        else:
            self._add(kind, source.at, None)
        self._tally.accounted += kind is DifferenceKind.MISSING
        source.advance(1)

    def _lone_target(self) -> None:
        """The target's next record has no counterpart, and the map does not know its place.

        A killed run may have written it, of a compacted topic whose cleaner removed it before the next run could find
        it: then the source has offsets without a record in that place, at least one for each such record.
        """
        theirs = self.target.offsets[self.target.at]
        if self._check.shared_target or self._is_foreign(theirs):
            self._tally.foreign += 1
        elif self._is_compacted_source(self._placement.hole_at(theirs)):
            self._tally.compacted_source += 1
        else:
            self._add(DifferenceKind.EXTRA, None, self.target.at)
        self.target.advance(1)

    def _is_compacted_source(self, hole: Hole) -> bool:
        if not self._check.source_compacted or not self._has_unused(hole, source=True):
            return False
        self._use(hole, source=1, target=1)
        return True

    def _is_foreign(self, target_offset: int) -> bool:
        """Return True if, by the ledger, other producers wrote this record."""
        return any(first <= target_offset < following for first, following in self._check.known_foreign)

    def _skip_source(self) -> None:
        """The source's next record cannot be on the target."""
        self._tally.accounted += 1
        self.source.advance(1)

    def _part(self) -> None:
        """Two records at the same offset differ: find the cause as far as possible."""
        row = self.source.offsets[self.source.at]
        if self._row_bits and self._is_skipped(row):
            # Any of several rows may have been skipped, and others not.
            self._tally.skipped += 1
            self._placement.skip_row(row)
            self.source.advance(1)
            return
        ours, theirs = self._have(LOOK_AHEAD)
        if self.needs_source or self.needs_target:
            return
        found = explain(self._keys(self.source, ours), self._keys(self.target, theirs))
        i, j = self.source.at, self.target.at
        if found.kind is DifferenceKind.REORDERED:
            self._add(found.kind, i, j, records=found.source)
            self._tally.accounted += found.source
        elif found.kind is DifferenceKind.ALTERED:
            for ahead in range(found.source):
                self._compare_pair(i + ahead, j + ahead)
        skipped = 0
        for ahead in range(found.source if found.kind is DifferenceKind.MISSING else 0):
            if self._is_skipped(self.source.offsets[i + ahead]):
                self._tally.skipped += 1
                skipped += self._placement.skip_row(self.source.offsets[i + ahead])
            else:
                self._add(DifferenceKind.MISSING, i + ahead, None)
            self._tally.accounted += 1
        for ahead in range(found.target if found.kind is DifferenceKind.EXTRA else 0):
            self._add(DifferenceKind.EXTRA, None, j + ahead)
        if found.source:
            self.source.advance(found.source)
        if found.target:
            self.target.advance(found.target)
        self._placement.drift += found.target - found.source + skipped
        self._move_end()

    def _compare_pair(self, i: int, j: int) -> None:
        self._tally.accounted += 1
        if self._same(i, j):
            self._tally.records += 1
        else:
            self._add(DifferenceKind.ALTERED, i, j)

    def _keys(self, side: Side, count: int) -> list[Hashable]:
        """Return keys for `explain` that are equal for equal records of either side."""
        tails = side.tails[side.at : side.at + count]
        if not self._tally.timestamps_compared:
            return list(tails)
        return list(zip(side.times[side.at : side.at + count], tails, strict=True))

    def _move_end(self) -> None:
        """Move the end of the range on the target by the drift; at the log end there is nothing to move."""
        if not self._range.to_end:
            self.target.end = min(self._range.target_next + self._placement.drift, self._check.target_end)

    def _is_skipped(self, source_offset: int, *, rewritten: bool = False) -> bool:
        """Return True if a gap explains a record that only one side has.

        Args:
            rewritten: of gaps about lost records, which only the target has. The source's present records at these
                offsets are others, that have to be copied.
        """
        source_offset >>= self._row_bits
        return any(
            gap.first_offset <= source_offset < gap.next_offset
            for gap in self._check.known_gaps
            if gap.rewritten is rewritten
        )

    def _add(self, kind: DifferenceKind, i: int | None, j: int | None, *, records: int = 1) -> None:
        """Note a difference; `i` and `j` are places among the decoded records."""
        if not self._tally.count_difference():
            return
        source, target = self.source, self.target
        what: tuple[str, ...] = ()
        if kind is DifferenceKind.ALTERED and i is not None and j is not None:
            what = differing_parts(source.tails[i], target.tails[j], times_differ=not self._same_times(i, j, 1))
        self._tally.keep(
            Difference(
                kind=kind,
                source_offset=None if i is None else source.offsets[i] >> self._row_bits,
                target_offset=None if j is None else target.offsets[j],
                what=what,
                source_digest=None if i is None else short_digest(source.tails[i]),
                target_digest=None if j is None else short_digest(target.tails[j]),
                records=records,
            )
        )
