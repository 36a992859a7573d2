"""Find how many of the source's records are on a target whose last writer did not finish.

After the last certain pair of offsets, the target has the first of the source's records there, in the same order, if
no other producer wrote to it. Walking along both logs shows where they end. Between the two attempts compaction or
retention may have removed records on either side. The offsets show such holes: every offset that the target lacks was
one record of the source, or a marker, and the source may lack as many records as its hole has offsets. The records
after a hole show which it was: equal ones may be at several places. If more than one explanation remains, or none,
nothing is certain, and the walk ends with an error.

Pure: spans of both logs in, the match out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

from mirror_lib.cluster.topics.position_format import OmittedRange
from mirror_lib.offsets.runs import OffsetRun, RunBuilder
from mirror_lib.records.records import Record
from mirror_lib.records.spans import Span

#: Maximum number of markers assumed among offsets that a log lacks; it limits memory.
_MOST_MARKERS = 1_000


class MismatchError(Exception):
    """The target has another record than the source.

    Attributes:
        source_offset: offset of the expected source record; the source's end if it has no more.
        target_offset: offset of the record on the target.
    """

    def __init__(self, source_offset: int, target_offset: int) -> None:
        super().__init__(f"target offset {target_offset} does not match source offset {source_offset}")
        self.source_offset = source_offset
        self.target_offset = target_offset


@dataclass(frozen=True, slots=True)
class TailMatch:
    """The part of the source that the target has.

    Attributes:
        source_next: the source offset to copy next.
        records: number of target records that were found on the source.
        unknown: records on the target that compaction has removed from the source meanwhile.
        runs: target offsets of the source records.
        skipped: source records that the policy had skipped, though no position has them.
    """

    source_next: int
    records: int
    unknown: int
    runs: tuple[OffsetRun, ...]
    skipped: tuple[Record, ...] = ()


class _Side:
    """One log: buffered spans, and the records of the current one."""

    def __init__(self, start: int) -> None:
        #: The first offset that is not explained yet.
        self.next_offset = start
        #: Offsets after `next_offset` that are already explained: a consumer sees no record there.
        self.hidden = 0
        self.waiting: deque[Span] = deque()
        self.records: deque[Record] = deque()
        self.own_timestamps = True
        #: Offsets up to which everything was fed.
        self.fed_to = start

    def feed(self, spans: Iterable[Span]) -> None:
        for span in spans:
            if span.next_offset > self.fed_to:
                self.waiting.append(span)
                self.fed_to = span.next_offset

    def whole(self) -> Span | None:
        """The next batch, if none of its records is used yet and no offset is missing before it."""
        if self.records:
            return None
        self._skip_hidden()
        span = self.waiting[0] if self.waiting else None
        return span if span is not None and span.first == self.next_offset + self.hidden else None

    def take_whole(self) -> None:
        self.next_offset, self.hidden = self.waiting.popleft().next_offset, 0

    def head(self) -> Record | None:
        """The next record, None if more must be fed."""
        while not self.records:
            self._skip_hidden()
            if not self.waiting:
                return None
            span = self.waiting.popleft()
            self.own_timestamps = not span.log_append_time
            self.records.extend(record for record in span.records() if record.offset >= self.next_offset)
        return self.records[0]

    def holds(self, count: int) -> bool:
        """True if at least `count` further records were fed."""
        return len(self.records) + sum(span.count for span in self.waiting) >= count

    def ahead(self) -> Iterator[Record]:
        """The next records. Their batches are decoded one at a time and not kept: there may be very large ones."""
        yield from self.records
        for span in self.waiting:
            yield from span.records()

    def take(self) -> None:
        self.next_offset, self.hidden = self.records.popleft().offset + 1, 0

    def hole(self) -> int:
        """Unexplained offsets before the next record."""
        return self.records[0].offset - self.next_offset - self.hidden

    def count_unexplained(self, end: int) -> int:
        """Unexplained offsets before the end of the log."""
        return end - self.next_offset - self.hidden

    def _skip_hidden(self) -> None:
        while self.waiting and self.waiting[0].is_hidden:
            span = self.waiting.popleft()
            self.hidden += span.next_offset - max(span.first, self.next_offset)


class _Shifts:
    """Number of source records by which the walk may be ahead: as many as missing offsets may have been markers.

    In that case the source's records that number of positions earlier equal the target's, record by record.
    """

    def __init__(self) -> None:
        #: Missing offsets since the last pair.
        self._lacking = 0
        self._open: frozenset[int] = frozenset()
        #: Source records before the next one that may be the target's next.
        self._before: deque[tuple[bytes, int]] = deque(maxlen=_MOST_MARKERS)

    def __bool__(self) -> bool:
        return self._lacking > 0 or bool(self._open)

    def lack(self, here: Record) -> None:
        """Record that the target lacks an offset, which is explained by `here`."""
        self._lacking += 1
        self._before.append(print_of(here))

    def pair(self, here: Record, there: Record, *, compare_timestamps: bool) -> None:
        """Record that `here` is paired with `there`."""
        if not self:
            return
        before, wanted = list(self._before), print_of(there)
        lacking = range(min(self._lacking, len(before)) + 1)
        shifts = {shift + more for shift in (0, *self._open) for more in lacking} - {0}
        self._open = frozenset(
            shift
            for shift in shifts
            if shift <= len(before)
            and before[-shift][0] == wanted[0]
            and (before[-shift][1] == wanted[1] or not compare_timestamps)
        )
        self._lacking = 0
        self._before.append(print_of(here))
        if not self._open:
            self._before.clear()


class LogSide(Protocol):
    """One of two logs."""

    #: Offsets up to which everything was fed.
    fed_to: int


_Log = TypeVar("_Log", bound=LogSide)


class TwoLogs(Generic[_Log]):
    """Two logs, fed as they are read."""

    def __init__(self, source: _Log, target: _Log) -> None:
        self._source, self._target = source, target

    @property
    def source_offset(self) -> int:
        """The source offset to read next."""
        return self._source.fed_to

    @property
    def target_offset(self) -> int:
        """The target offset to read next."""
        return self._target.fed_to


class TailMatcher(TwoLogs[_Side]):
    """Walks along both logs as they are read; feed the side that `needs_source` and `needs_target` name."""

    def __init__(
        self,
        source_offset: int,
        target_offset: int,
        target_end: int,
        *,
        skipped: Sequence[OmittedRange] = (),
        may_be_skipped: Callable[[Record], bool] = lambda _: False,
    ) -> None:
        """Start at the last certain pair of offsets.

        Args:
            target_end: log end offset of the target, where the walk ends.
            skipped: source ranges that were certainly skipped, ascending. They need not be readable.
            may_be_skipped: whether the flow's policy may have skipped a source record.
        """
        super().__init__(_Side(source_offset), _Side(target_offset))
        self._known = skipped
        self._may_be_skipped = may_be_skipped
        self._skipped: list[Record] = []
        self._end = target_end
        self._runs = RunBuilder()
        self._records = self._unknown = 0
        #: Whether source records explain offsets that the target lacks. If both sides lack records, one could be
        #: mistaken for the other.
        self._filled = False
        self._shifts = _Shifts()

    @property
    def needs_target(self) -> bool:
        """True if the target's log extends beyond the fed spans."""
        return not self._target.records and not self._target.waiting and self._target.fed_to < self._end

    @property
    def is_finished(self) -> bool:
        """True if everything on the target is explained."""
        return not self._target.records and not self._target.waiting and self._target.fed_to >= self._end

    def feed_source(self, spans: Iterable[Span]) -> None:
        """Feed the source's spans from `source_offset` on."""
        self._source.feed(Span(each.first, each.next_offset) if self._is_omitted(each) else each for each in spans)

    def feed_target(self, spans: Iterable[Span]) -> None:
        """Feed the target's spans from `target_offset` on."""
        self._target.feed(spans)

    def walk(self, *, source_ended: bool = False) -> None:
        """Continue as far as the fed spans allow.

        Args:
            source_ended: the source has no more than the fed spans.

        Raises:
            MismatchError: the target has other records than the source.
            RecordError: a batch cannot be read.
        """
        source, target = self._source, self._target
        while True:
            mine, theirs = source.whole(), target.whole()
            if (
                mine is not None
                and theirs is not None
                and not self._shifts
                and not self._holds_omission(mine)
                and mine.same_batch(theirs)
            ):
                assert mine.header is not None
                self._pair(mine.first, theirs.first, mine.header.count)
                source.take_whole()
                target.take_whole()
                continue
            there = target.head()
            if there is None:
                self._check_end()
                return
            here = source.head()
            if here is None:
                if source_ended:
                    raise MismatchError(source.fed_to, there.offset)
                return
            if self.omission_at(here.offset) is not None:
                source.take()
            elif target.hole() > 0:
                if not self._fill_hole(here, there, source_ended=source_ended):
                    return
            elif _equal(here, there, compare_timestamps=target.own_timestamps):
                self._take_pair(here, there)
            elif self._may_be_skipped(here):
                self._skipped.append(here)
                source.take()
            elif source.hole() > 0 and not self._filled:
                # The target has it, and the source has compacted it away since.
                target.take()
                source.next_offset += 1
                self._unknown += 1
            else:
                raise MismatchError(here.offset, there.offset)

    def omission_at(self, source_offset: int) -> OmittedRange | None:
        """The certainly skipped range that contains this offset."""
        after = bisect_right(self._known, source_offset, key=attrgetter("first_offset"))
        found = self._known[after - 1] if after else None
        return found if found is not None and source_offset < found.next_offset else None

    def _is_omitted(self, span: Span) -> bool:
        """True if none of it is on the target; its records may be damaged."""
        omission = self.omission_at(max(span.first, self._source.fed_to))
        return omission is not None and omission.next_offset >= span.next_offset

    def _holds_omission(self, span: Span) -> bool:
        after = bisect_right(self._known, span.next_offset - 1, key=attrgetter("first_offset"))
        return bool(after) and self._known[after - 1].next_offset > span.first

    def _fill_hole(self, here: Record, there: Record, *, source_ended: bool) -> bool:
        """Explain the next offset that the target lacks; return False if more of the source must be fed first.

        Raises:
            MismatchError: the source lacks records there too, and it cannot be determined which.
        """
        source, target = self._source, self._target
        if source.hole() == 0 and not self._unknown:
            # The target has compacted or deleted it since: each offset was a record.
            self._filled = True
            self._shifts.lack(here)
            source.take()
            target.next_offset += 1
            return True
        if source.hole() < target.hole() or not _equal(here, there, compare_timestamps=target.own_timestamps):
            raise MismatchError(here.offset, there.offset)
        # Both have lost the records before. The source's hole may have held fewer records than the target's.
        look = min(target.hole(), _MOST_MARKERS) + 1
        if not source.holds(look) and not source_ended:
            return False
        later = islice(source.ahead(), 1, look)
        if any(_equal(each, there, compare_timestamps=target.own_timestamps) for each in later):
            raise MismatchError(here.offset, there.offset)
        self._take_pair(here, there)
        return True

    def _check_end(self) -> None:
        if self.is_finished and (self._target.count_unexplained(self._end) > 0 or self._shifts):
            # Deleted records that were never compared; markers may have been among them.
            raise MismatchError(self._source.next_offset, self._target.next_offset)

    def _take_pair(self, here: Record, there: Record) -> None:
        self._shifts.pair(here, there, compare_timestamps=self._target.own_timestamps)
        self._pair(here.offset, there.offset, 1)
        self._source.take()
        self._target.take()

    def _pair(self, source_offset: int, target_offset: int, count: int) -> None:
        self._runs.add(source_offset, target_offset, count)
        self._records += count

    def match(self) -> TailMatch:
        """The result; the walk must be finished."""
        assert self.is_finished
        return TailMatch(
            self._source.next_offset, self._records, self._unknown, self._runs.runs(), tuple(self._skipped)
        )


def print_of(record: Record) -> tuple[bytes, int]:
    """A compact fingerprint that distinguishes records."""
    return blake2b(record.tail, digest_size=16).digest(), record.timestamp


def _equal(here: Record, there: Record, *, compare_timestamps: bool) -> bool:
    return here.tail == there.tail and (here.timestamp == there.timestamp or not compare_timestamps)
