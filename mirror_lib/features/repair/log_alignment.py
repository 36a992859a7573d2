"""Match the records of a target partition with those of the source, by the two logs only.

The target has copies of the source's records, in order. Since then compaction and retention may have removed records on
either side, so the matcher walks along both logs, and where the next records differ, it searches for the nearest
records that are equal on both sides.

Offsets limit the possible pairs. Each copied record took one offset of the target, so the distance of a record, its
source offset minus its target offset (markers on the target not counted), never decreases along the log. It grows by
at most the number of source offsets without a record, and at the end it is known from the partition's position. In a
log without holes that alone decides, and equal records cannot be confused. Where records were compacted away and equal
records are close together, they could be confused, and are counted as ambiguous.

MM2 copies records again after a crash. Then the distance decreases: the walk goes back on the source, if that is
allowed, and the last copy of each record counts.

Pure: spans of both logs in, runs out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, islice
from typing import NamedTuple

from mirror_lib.copy.takeover.tail_match import MismatchError, TwoLogs
from mirror_lib.offsets.ranges import unite
from mirror_lib.offsets.run_columns import RunColumns
from mirror_lib.offsets.runs import RunBuilder
from mirror_lib.records.records import Record
from mirror_lib.records.spans import Span

#: Maximum number of records of each side in the search for the next equal ones; it limits memory too.
LOOKAHEAD = 20_000
#: Maximum number of records that the target repeats in one piece; each takes about 250 bytes.
LOOKBACK = 200_000
#: Number of records that are searched first, which is nearly always enough, and the growth of that number.
_FIRST_LOOK, _LOOK_GROWTH = 32, 8
_DIGEST_BYTES = 16
_UNBOUNDED = 1 << 63


#: Ranges of records that only the source has; more of them become one, as on a compacted target.
_MOST_RANGES = 10_000


class _Entry(NamedTuple):
    """A record, with the offsets before it in its log."""

    offset: int
    digest: bytes
    #: Offsets before it that a consumer does not see.
    hidden: int
    #: Offsets before it without a record or marker.
    holes: int

    @property
    def data_offset(self) -> int:
        """Its offset without counting markers."""
        return self.offset - self.hidden


@dataclass(frozen=True, slots=True)
class LogShape:
    """The shape of a log [start, end), from a first reading."""

    start: int
    end: int
    hidden: int = 0
    holes: int = 0
    #: Whether the broker set the records' timestamps (`message.timestamp.type=LogAppendTime`).
    own_timestamps: bool = False

    def with_spans(self, spans: Iterable[Span], read_to: int) -> LogShape:
        """The shape including more of the log.

        Args:
            read_to: the offset up to which the log was read before.
        """
        hidden, holes, own = self.hidden, self.holes, self.own_timestamps
        for each in spans:
            first, end = max(each.first, read_to), min(each.next_offset, self.end)
            if end <= first:
                continue
            holes += first - read_to
            if each.is_hidden:
                hidden += end - first
            elif not each.dense:
                holes += end - first - sum(first <= record.offset < end for record in each.records())
            own = own or each.log_append_time
            read_to = end
        return LogShape(self.start, self.end, hidden, holes, own)

    def at_end(self, read_to: int) -> LogShape:
        """The shape if nothing more can be read."""
        return LogShape(self.start, self.end, self.hidden, self.holes + self.end - read_to, self.own_timestamps)


@dataclass(frozen=True, slots=True)
class LogMatch:
    """The matched records of two logs."""

    columns: RunColumns
    #: Records of the source that the target does not have: never copied, skipped, compacted or deleted there.
    only_on_source: int
    #: Records of the target that the source no longer has.
    only_on_target: int
    #: Mapped records that are equal to others near them, so that offsets alone do not distinguish them.
    ambiguous: int
    #: Source offsets [first, next) of the records that only the source has.
    missing: tuple[tuple[int, int], ...] = ()
    #: Target offsets [first, next) of records that the target has once more later: MM2 copied them again after a crash.
    repeated: tuple[tuple[int, int], ...] = ()


def join(matches: Sequence[tuple[LogMatch, bool]]) -> LogMatch:
    """The match of whole logs, from the matches of their parts in order.

    Args:
        matches: each with whether its source and target are swapped.
    """
    return LogMatch(
        RunColumns.join([each.columns.inverse() if inverse else each.columns for each, inverse in matches]),
        sum(each.only_on_target if inverse else each.only_on_source for each, inverse in matches),
        sum(each.only_on_source if inverse else each.only_on_target for each, inverse in matches),
        sum(each.ambiguous for each, _ in matches),
        # What the opposite flow has copied has its history in that flow's part of the ledger.
        tuple(range_ for each, inverse in matches if not inverse for range_ in each.missing),
        tuple(range_ for each, inverse in matches if not inverse for range_ in each.repeated),
    )


class _Side:
    """One log during the walk."""

    def __init__(self, shape: LogShape, *, timestamps: bool) -> None:
        self.start, self.end = shape.start, shape.end
        #: Offsets up to which everything was fed.
        self.fed_to = self.start
        self.ended = self.start >= self.end
        self.waiting: deque[_Entry] = deque()
        self.hidden = self.holes = 0
        self._timestamps = timestamps

    @property
    def over(self) -> bool:
        """True if nothing remains of it."""
        return self.ended and not self.waiting

    def feed(self, spans: Iterable[Span]) -> None:
        fed = False
        for span in spans:
            if span.next_offset <= self.fed_to:
                continue
            fed = True
            if span.first >= self.end:
                # Offsets after the end mean nothing for those before it.
                self._advance(self.end, self.end, hidden=False)
                break
            if span.is_hidden:
                self._advance(max(span.first, self.fed_to), min(span.next_offset, self.end), hidden=True)
            else:
                for record in span.records():
                    if self.fed_to <= record.offset < self.end:
                        self._take(record)
                self._advance(min(span.next_offset, self.end), min(span.next_offset, self.end), hidden=False)
        if not fed or self.fed_to >= self.end:
            self._advance(self.end, self.end, hidden=False)
            self.ended = True

    def _take(self, record: Record) -> None:
        self._advance(record.offset, record.offset, hidden=False)
        digest = blake2b(record.tail, digest_size=_DIGEST_BYTES)
        if self._timestamps:
            digest.update(record.timestamp.to_bytes(8, "big", signed=True))
        self.waiting.append(_Entry(record.offset, digest.digest(), self.hidden, self.holes))
        self.fed_to = record.offset + 1

    def _advance(self, first: int, to: int, *, hidden: bool) -> None:
        """Advance to `to`; there are no records from the present offset up to `first`."""
        self.holes += max(0, first - self.fed_to)
        if hidden:
            self.hidden += max(0, to - max(first, self.fed_to))
        self.fed_to = max(self.fed_to, to)


class _Ranges:
    """Ascending ranges of offsets."""

    def __init__(self, ranges: Sequence[tuple[int, int]], start: int) -> None:
        self._firsts: list[int] = []
        self._ends: list[int] = []
        #: Offsets in the ranges before each of them.
        self._before: list[int] = [0]
        for first, end in ranges:
            begin = max(first, start, self._ends[-1] if self._ends else 0)
            if begin < end:
                self._firsts.append(begin)
                self._ends.append(end)
                self._before.append(self._before[-1] + end - begin)

    def before(self, offset: int) -> int:
        """Number of their offsets that are lower."""
        after = bisect_left(self._firsts, offset)
        if after == 0:
            return 0
        return self._before[after - 1] + min(offset, self._ends[after - 1]) - self._firsts[after - 1]


class _Passed:
    """The newest records of the source that the walk has passed."""

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._digests: Counter[bytes] = Counter()

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._digests

    def append(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._digests[entry.digest] += 1
        if len(self._entries) > LOOKBACK:
            self._forget(self._entries.popleft())

    def take_from(self, digests: Sequence[bytes], following: Iterable[_Entry]) -> list[_Entry]:
        """Remove and return the newest of its records from which the source continues like this; empty without any.

        Args:
            following: the records of the source after its own.
        """
        entries = list(self._entries)
        for start in range(len(entries) - 1, -1, -1):
            if digests and entries[start].digest != digests[0]:
                continue
            onward = chain(entries[start : start + len(digests)], following)
            if all(each.digest == digest for each, digest in zip(onward, digests, strict=False)):
                for _ in entries[start:]:
                    self._forget(self._entries.pop())
                return entries[start:]
        return []

    def _forget(self, entry: _Entry) -> None:
        self._digests[entry.digest] -= 1
        if not self._digests[entry.digest]:
            del self._digests[entry.digest]


class LogMatcher(TwoLogs[_Side]):
    """Walks along both logs; feed the side that it needs."""

    def __init__(
        self,
        source: LogShape,
        target: LogShape,
        *,
        certain_end: bool,
        skipped: Sequence[tuple[int, int]] | None = (),
        may_repeat: bool = False,
    ) -> None:
        """Start at the beginning of both logs.

        Args:
            certain_end: the target had copies of all source records before the source's end when it ended at its end,
                except dropped ones.
            skipped: ranges of source offsets, ascending, that may have been skipped although the source has their
                records; None if any record may have been skipped.
            may_repeat: the target may have records twice.
        """
        self._shapes = source, target
        timestamps = not target.own_timestamps
        super().__init__(_Side(source, timestamps=timestamps), _Side(target, timestamps=timestamps))
        self._skipped = None if skipped is None else _Ranges(skipped, source.start)
        self._without_record = source.hidden + source.holes + self._skipped_before(source.end)
        self._end_distance = source.end - (target.end - target.hidden) if certain_end else None
        self._target_holes = target.holes
        self._passed = _Passed() if may_repeat else None
        self._repeated: list[tuple[int, int]] = []
        self._runs = RunBuilder()
        self._last: tuple[_Entry, _Entry] | None = None
        self._only_on_source = self._only_on_target = self._ambiguous = 0
        self._missing: list[tuple[int, int]] = []
        #: Number of records of each side that the walk needs to continue.
        self._need = 1

    @property
    def needs_source(self) -> bool:
        """True if more of the source must be fed."""
        return not self._source.ended and len(self._source.waiting) < self._need

    @property
    def needs_target(self) -> bool:
        """True if more of the target must be fed."""
        return not self._target.ended and len(self._target.waiting) < self._need

    @property
    def is_finished(self) -> bool:
        """True if the walk has reached the end of both logs."""
        return self._source.over and self._target.over

    @property
    def as_shaped(self) -> bool:
        """True if both logs had the holes and the hidden offsets of their shapes during the walk."""
        sides = zip(self._shapes, (self._source, self._target), strict=True)
        return all((shape.hidden, shape.holes) == (side.hidden, side.holes) for shape, side in sides)

    def feed_source(self, spans: Iterable[Span]) -> None:
        """Feed the source from `source_offset` on; no spans if it has no more."""
        self._source.feed(spans)

    def feed_target(self, spans: Iterable[Span]) -> None:
        """Feed the target from `target_offset` on; no spans if it has no more."""
        self._target.feed(spans)

    def walk(self) -> None:
        """Continue as far as the fed spans allow.

        Raises:
            MismatchError: the target has a record that the source never had.
        """
        source, target = self._source.waiting, self._target.waiting
        while not (self.needs_source or self.needs_target or self.is_finished):
            if not target:
                self._drop_source()
                continue
            if not source or source[0].digest != target[0].digest:
                has_gone_back = self._go_back()
                if has_gone_back is None:
                    return
                if has_gone_back:
                    continue
            if not source:
                self._drop_target()
                continue
            here, there = source[0], target[0]
            distance, (lowest, highest) = here.offset - there.data_offset, self._distances(here, there)
            if distance > highest:
                self._drop_target()
            elif distance < lowest:
                self._drop_source()
            elif here.digest == there.digest:
                self._pair(certain=lowest == highest)
            elif lowest == highest and not self._may_be_skipped(here):
                raise MismatchError(here.offset, there.offset)
            elif not self._skip_to_equal():
                return

    def match(self) -> LogMatch:
        """The result; the walk must be finished.

        Raises:
            MismatchError: both logs have records, and none of them are equal.
        """
        assert self.is_finished
        columns = RunColumns.of(self._runs.runs())
        if not len(columns) and self._only_on_source and self._only_on_target:
            raise MismatchError(self._source.start, self._target.start)
        return LogMatch(
            columns,
            self._only_on_source,
            self._only_on_target,
            self._ambiguous,
            tuple(unite(self._missing)),
            tuple(unite(self._repeated)),
        )

    def _distances(self, here: _Entry, there: _Entry) -> tuple[int, int]:
        """The minimum and maximum of the distance of this pair.

        A hole on the target may have been a marker, which takes no record's place: it widens both limits.
        """
        lowest, highest = -_UNBOUNDED, _UNBOUNDED
        known = self._skipped is not None
        if self._last is not None:
            here_before, there_before = self._last
            before = here_before.offset - there_before.data_offset
            lowest = before - (there.holes - there_before.holes)
            if known:
                highest = before + self._without_record_before(here) - self._without_record_before(here_before)
        if self._end_distance is not None:
            if self._passed is None:
                highest = min(highest, self._end_distance + self._target_holes - there.holes)
            if known:
                after = self._without_record - self._without_record_before(here)
                lowest = max(lowest, self._end_distance - after)
        return lowest, highest

    def _without_record_before(self, here: _Entry) -> int:
        return here.hidden + here.holes + self._skipped_before(here.offset)

    def _may_be_skipped(self, here: _Entry) -> bool:
        return self._skipped is None or self._skipped_before(here.offset + 1) > self._skipped_before(here.offset)

    def _skipped_before(self, offset: int) -> int:
        return 0 if self._skipped is None else self._skipped.before(offset)

    def _go_back(self) -> bool | None:
        """Go back on the source if the target repeats records from here on; return None if more must be fed first."""
        source, target, passed = self._source.waiting, self._target.waiting, self._passed
        if passed is None or target[0].digest not in passed:
            return False
        self._need = _FIRST_LOOK
        if self.needs_source or self.needs_target:
            return None
        self._need = 1
        again = passed.take_from([each.digest for each in islice(target, _FIRST_LOOK)], source)
        if not again:
            return False
        source.extendleft(reversed(again))
        first = again[0].offset
        self._repeated += ((run.target_first, run.target_next) for run in self._runs.drop_from(first))
        while self._missing and self._missing[-1][1] > first:
            begin, end = self._missing.pop()
            self._only_on_source -= end - max(begin, first)
            if begin < first:
                self._missing.append((begin, first))
        self._last = None
        return True

    def _skip_to_equal(self) -> bool:
        """Drop the entries before the nearest equal records; return False if more must be fed first.

        Raises:
            MismatchError: there are none.
        """
        source, target = self._source, self._target
        look = max(_FIRST_LOOK, self._need)
        while True:
            self._need = look
            if self.needs_source or self.needs_target:
                return False
            found = self._nearest_equal(look)
            if found is None and max(len(source.waiting), len(target.waiting)) < look:
                # The last records of both: each side has lost those that the other has.
                found = len(source.waiting), len(target.waiting)
            if found is not None:
                for _ in range(found[0]):
                    self._drop_source()
                for _ in range(found[1]):
                    self._drop_target()
                self._need = 1
                return True
            if look >= LOOKAHEAD:
                raise MismatchError(source.waiting[0].offset, target.waiting[0].offset)
            look = min(look * _LOOK_GROWTH, LOOKAHEAD)

    def _nearest_equal(self, look: int) -> tuple[int, int] | None:
        source = list(islice(self._source.waiting, look))
        places: dict[bytes, list[int]] = {}
        for place, entry in enumerate(source):
            places.setdefault(entry.digest, []).append(place)
        best: tuple[int, int] | None = None
        for there_place, there in enumerate(islice(self._target.waiting, look)):
            if best is not None and there_place >= sum(best):
                break
            for here_place in places.get(there.digest, ()):
                lowest, highest = self._distances(source[here_place], there)
                fits = lowest <= source[here_place].offset - there.data_offset <= highest
                if fits and (best is None or here_place + there_place < sum(best)):
                    best = here_place, there_place
        return best

    def _take_source(self) -> _Entry:
        taken = self._source.waiting.popleft()
        if self._passed is not None:
            self._passed.append(taken)
        return taken

    def _drop_source(self) -> None:
        dropped = self._take_source()
        self._only_on_source += 1
        if self._missing and self._missing[-1][1] == dropped.offset:
            self._missing[-1] = self._missing[-1][0], dropped.offset + 1
        else:
            self._missing.append((dropped.offset, dropped.offset + 1))
        if len(self._missing) > _MOST_RANGES:
            self._missing = [(self._missing[0][0], self._missing[-1][1])]

    def _drop_target(self) -> None:
        self._target.waiting.popleft()
        self._only_on_target += 1

    def _pair(self, *, certain: bool) -> None:
        here, there = self._take_source(), self._target.waiting.popleft()
        if not certain:
            near = [side.waiting[0].digest for side in (self._source, self._target) if side.waiting]
            near += [self._last[0].digest] if self._last is not None else []
            self._ambiguous += here.digest in near
        self._runs.add(here.offset, there.offset, 1)
        self._last = here, there
        self._need = 1
