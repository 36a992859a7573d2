"""Align two logs by their records alone, in order and without a map.

The walk goes along both logs as long as the next records are equal: whole batches as bytes, else lists of records.
Where they differ it looks for the nearest place at which both logs agree again, first nearby, then along one log
against the next records of the other, as far as it takes. What lies before that place is unmatched on its side;
`findings` says later what became of it. Offsets are only reported: transactions and compaction leave holes.

Pure: spans of both logs in, an account out. `walk` yields what it needs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import Enum, auto

from mirror_lib.features.audit.account import Account, Altered, Reached
from mirror_lib.features.audit.ignored_headers import Rewrite
from mirror_lib.features.audit.marks import Offsets, Translation
from mirror_lib.features.audit.matching import CERTAIN, Sought, Token, equal_ahead, nearest, windows
from mirror_lib.features.audit.unmatched import UnmatchedRecords, key_of
from mirror_lib.features.verify.compare.realignment import differing_parts
from mirror_lib.features.verify.compare.side import REPLACED, Side
from mirror_lib.features.verify.compare.whole_batches import same_batch
from mirror_lib.records.spans import Span

#: Records of each side among which the nearest equal ones are searched first, the growth of that number, and its limit.
_FIRST_LOOK, _LOOK_GROWTH, _NEAR = 32, 8, 8_192
#: Records of one side that are searched for in the whole rest of the other one.
_SOUGHT = 512
#: Records after which a search along one log is interrupted to search along the other; it grows.
_FIRST_FAR, _FAR_GROWTH = 1 << 20, 16
#: Places without any equal record later on after which the rest is not aligned.
_MOST_DIVERGED = 3
#: Records of both sides among which single equal ones are searched, too.
_MOST_SINGLE = 512
#: Records without an equal, of both sides together; each takes 48 bytes, and about 500 when it is judged.
MOST_UNMATCHED = 400_000


class Need(Enum):
    """What the walk waits for."""

    #: Feed the next records of the source, or of the target.
    SOURCE = auto()
    TARGET = auto()
    #: The source, or the target, is read to its end: move its `end`, or set `ended`.
    MORE_SOURCE = auto()
    MORE_TARGET = auto()
    #: Read the source, or the target, again from its `fed_to` on.
    SEEK_SOURCE = auto()
    SEEK_TARGET = auto()


class Alignment:
    """The walk along two logs.

    Feed `source` and `target` as `walk` asks for; where they were read to their ends, move `end` or set `ended`.
    """

    def __init__(
        self,
        source: tuple[int, int],
        target: tuple[int, int],
        *,
        partitions: tuple[int, int] = (0, 0),
        marks: tuple[Iterable[int], Iterable[int]] = ((), ()),
        most_unmatched: int = MOST_UNMATCHED,
        rewrite: Rewrite | None = None,
        merged: bool = False,
        to_source_end: bool = False,
        ignore_times: bool = False,
        same_offsets: bool = False,
    ) -> None:
        """Begin at the start of both.

        Args:
            source: first offset and end of the source; of the target likewise.
            partitions: of the source and of the target.
            marks: offsets of the source, and of the target, whose places are wanted.
            most_unmatched: number of records without an equal after which the comparison ends.
            rewrite: changes what is compared of a record.
            merged: the target has records of other sources, too; they are only counted.
            ignore_times: compare no timestamps.
            to_source_end: the walk ends with the source: what follows on the target is of other records.
            same_offsets: records are to have the offsets that they have on the source.
        """
        self._rewrite = rewrite
        self._merged, self._ignore_times = merged, ignore_times
        self.source = Side(*source, rewrite=rewrite)
        self.target = self._target_side(*target)
        self.source_ended = self._to_source_end = to_source_end
        self.target_ended = False
        self.account = Account(partitions, replaced_times=ignore_times)
        self.translation = Translation(*marks)
        self._has_marks = any(marks)
        self._same_offsets = same_offsets
        self._most_unmatched = most_unmatched
        #: Pairs with other timestamps in a row: then they are the rule, and nothing is searched for.
        self._retimed_in_a_row = 0
        #: True where no record is equal, but each is like the one at its place.
        self._is_altered = False
        #: Number of hunks before the last of those ranges.
        self._altered_hunk = 0

    def walk(self) -> Iterator[Need]:
        """Go along both logs; ends at the ends of both.

        Raises:
            RecordError, CodecError: a batch cannot be read.
        """
        while True:
            while self._pass_batch():
                pass
            yield from self._have(1)
            source, target = self.source.visible(1), self.target.visible(1)
            if source and target:
                if not (self._pass_equal() or self._pass_retimed() or self._pass_altered()):
                    yield from self._realign()
            elif self._to_source_end and self.source.is_exhausted and not source:
                return
            elif source or target:
                if (yield from self._grows(of_source=not source)):
                    continue
                self._drop(self.source.visible(self.source.pending_records), 0)
                self._drop(0, self.target.visible(self.target.pending_records))
            elif self.source.is_exhausted and self.target.is_exhausted:
                return
            self.account.gave_up |= self._room <= 0
            if self.account.gave_up:
                return

    def reached(self) -> Reached | None:
        """Where another walk could continue; None at the start, and if it would have to know of faults, too."""
        account = self.account
        if not account.equal or account.hunks or account.altered or account.moved or account.expired:
            return None
        return Reached(
            self.source.position,
            self.target.position,
            account.equal,
            account.others,
            account.replaced_times,
            replace(account.source),
            replace(account.target),
        )

    def resume(self, reached: Reached) -> None:
        """Begin with what an earlier walk has found; this one was made for its next offsets."""
        account = self.account
        account.equal, account.others = reached.equal, reached.others
        account.replaced_times = reached.replaced_times
        account.source, account.target = replace(reached.source), replace(reached.target)

    def _target_side(self, first: int, end: int) -> Side:
        return Side(first, end, hide_append_times=True, hide_times=self._ignore_times, rewrite=self._rewrite)

    @property
    def _room(self) -> int:
        account = self.account
        return self._most_unmatched - len(account.only_source) - len(account.only_target) - len(account.altered)

    # ---------------------------------------------------------------- feeding

    def _have(self, wanted: int) -> Iterator[Need]:
        """Decode until `wanted` records wait on each side, or fewer at an end or of large records."""
        source, target = self.source, self.target
        while True:
            while target.pending_records < wanted and not target.is_full and self._decode(target):
                pass
            # Many small batches on one side can equal one large batch on the other.
            enough = max(wanted, target.pending_records)
            while source.pending_records < enough and not source.is_full and self._decode(source):
                pass
            while target.pending_records < source.pending_records and not target.is_full and self._decode(target):
                pass
            starved = [
                need
                for side, need in ((source, Need.SOURCE), (target, Need.TARGET))
                if side.pending_records < wanted and not side.is_full and not side.is_exhausted
            ]
            if not starved:
                return
            yield from starved

    def _decode(self, side: Side) -> bool:
        span = side.decode_next(1 << 16)
        if span is None:
            return False
        if side is self.target:
            self.account.replaced_times |= span.log_append_time
        return True

    def _grows(self, *, of_source: bool) -> Generator[Need, None, bool]:
        """Wait for more of a side that has ended; return whether it has grown."""
        side = self.source if of_source else self.target
        if self.source_ended if of_source else self.target_ended:
            return False
        before = side.end
        yield Need.MORE_SOURCE if of_source else Need.MORE_TARGET
        return side.end > before

    # ---------------------------------------------------------------- equal records

    def _pass_batch(self) -> bool:
        """Pass two batches that are the same, without decoding them."""
        source, target = self.source, self.target
        mine, theirs = source.head(), target.head()
        if not isinstance(mine, Span) or not isinstance(theirs, Span):
            return False
        for each, side in ((mine, source), (theirs, target)):
            if each.first < side.first or each.next_offset > side.end:
                return False
        if not same_batch(mine, theirs):
            return False
        header = mine.header
        assert header is not None
        times = header.first_timestamp, header.max_timestamp
        if self._has_marks:
            self._translate(mine.next_offset - 1, mine.first, theirs.next_offset - 1, theirs.first)
        here, there = (mine.first, mine.next_offset - 1), (theirs.first, theirs.next_offset - 1)
        if self._same_offsets and here != there:
            self.account.move_row(here, there, header.count, before=self.account.source.last)
        self.account.pair((*here, *times), (*there, *times), header.count)
        self.account.replaced_times |= theirs.log_append_time
        source.pass_whole()
        target.pass_whole()
        return True

    def _pass_equal(self) -> bool:
        """Pass the next records as far as they are equal; return False if the first ones differ."""
        source, target = self.source, self.target
        count = min(source.visible(source.pending_records), target.visible(target.pending_records))
        equal = equal_ahead(source, target, count)
        if equal:
            self._pair(equal)
            self._retimed_in_a_row = 0
        return bool(equal)

    def _pair(self, count: int) -> None:
        source, target = self.source, self.target
        i, j, last = source.at, target.at, count - 1
        times = source.times[i], source.times[i + last]
        if self._has_marks:
            mine, theirs = source.offsets[i : i + count], target.offsets[j : j + count]
            self._translate(mine[-1], mine, theirs[-1], theirs)
        if self._same_offsets:
            self.account.move(source.offsets[i : i + count], target.offsets[j : j + count])
        self.account.pair(
            (source.offsets[i], source.offsets[i + last], *times),
            (target.offsets[j], target.offsets[j + last], *times),
            count,
        )
        source.advance(count)
        target.advance(count)

    def _translate(self, source_last: int, source: Offsets, target_last: int, target: Offsets) -> None:
        before, there = self.account.passed
        self.translation.pair((source_last, source, before), (target_last, target, there))

    def _pass_retimed(self) -> bool:
        """Pass records that differ only in their timestamps, where that is the rule or nothing else is as near."""
        source, target = self.source, self.target
        i, j = source.at, target.at
        if source.tails[i] != target.tails[j]:
            return False
        if self._retimed_in_a_row < _FIRST_LOOK and self._is_near():
            return False
        self._retimed_in_a_row += 1
        self._pass_pair_that_differs(("timestamp",), target.times[j] - source.times[i])
        return True

    def _pass_pair_that_differs(self, parts: tuple[str, ...], shift: int) -> None:
        source, target, altered = self.source, self.target, self.account.altered
        here, there = source.offsets[source.at], target.offsets[target.at]
        last = altered[-1] if altered else None
        is_next = self.account.source.last, self.account.hunks
        if last is not None and last.parts == parts and is_next == (last.source_last, self._altered_hunk):
            last.source_last, last.target_last = here, there
            last.records += 1
        else:
            altered.append(Altered(here, here, there, there, 1, parts, shift))
            self._altered_hunk = self.account.hunks
        self._pair(1)
        self.account.equal -= 1
        self.account.changed += 1

    def _pass_altered(self) -> bool:
        """Pass records that are like each other, as long as they are; that this is the rule was found before."""
        source, target = self.source, self.target
        count = min(source.visible(source.pending_records), target.visible(target.pending_records))
        passed = 0
        while self._is_altered and passed < count:
            (mine, theirs), i, j = self._likenesses(1), source.at, target.at
            self._is_altered = mine == theirs
            if not self._is_altered or (source.tails[i] == target.tails[j] and passed):
                break
            self._pass_pair_that_differs(differing_parts(source.tails[i], target.tails[j], times_differ=False), 0)
            passed += 1
        return passed > 0

    def _likenesses(self, count: int) -> tuple[list[object], list[object]]:
        """What is the same of the next records of both sides if only a part of them was changed: key and timestamp."""
        sides = self.source, self.target
        lists: list[list[object]] = []
        for side in sides:
            places = range(side.at, side.at + side.visible(min(count, side.pending_records)))
            times = [REPLACED] * len(places) if self.account.replaced_times else [side.times[each] for each in places]
            lists.append([(key_of(side.tails[each]), when) for each, when in zip(places, times, strict=True)])
        return lists[0], lists[1]

    def _is_near(self) -> bool:
        """Return True if the next records are nearby on the other side, with the same timestamps."""
        return nearest(*windows(self.source, self.target, _FIRST_LOOK)) is not None

    # ---------------------------------------------------------------- other records

    def _realign(self) -> Iterator[Need]:
        """Drop the records before the next place at which both logs agree."""
        look = _FIRST_LOOK
        while True:
            yield from self._have(look)
            source, target = windows(self.source, self.target, look)
            found = nearest(source, target)
            if found is None and look == _FIRST_LOOK * _LOOK_GROWTH:
                # Where every second record is lost no two records in a row agree.
                found = nearest(source, target, certain=1)
            if found is not None:
                self._drop_before(source[: found[0]], target[: found[1]])
                return
            # The ends may still grow: what is looked for may only be late.
            if len(target) < look and self.target.is_exhausted and (yield from self._grows(of_source=False)):
                continue
            if len(source) < look and self.source.is_exhausted and (yield from self._grows(of_source=True)):
                continue
            is_end = max(len(source), len(target)) < look and self.source.is_exhausted and self.target.is_exhausted
            if is_end and len(source) + len(target) <= _MOST_SINGLE:
                self._drop_before(source, target)
                return
            if is_end or look >= _NEAR or self.source.is_full or self.target.is_full:
                if (found := nearest(source, target, to_an_end=True)) is not None:
                    self._drop_before(source[: found[0]], target[: found[1]])
                    return
                if self._find_altered():
                    return
                if is_end:
                    self._drop(len(source), len(target))
                    return
                break
            look *= _LOOK_GROWTH
        yield from self._search_far()

    def _find_altered(self) -> bool:
        """Go to the nearest place at which records are like each other, if that says which ones belong together."""
        source, target = self._likenesses(_FIRST_LOOK * _LOOK_GROWTH)
        if len(set(source)) < len(source) or len(set(target)) < len(target):
            return False
        found = nearest(source, target, certain=_FIRST_LOOK)
        if found is not None:
            self._drop(*found)
            self._is_altered = True
        return found is not None

    def _drop_before(self, source: Sequence[Token], target: Sequence[Token]) -> None:
        """Drop these records, except single ones that are equal: between two faults there may be one that is right."""
        while source and target and len(source) + len(target) <= _MOST_SINGLE:
            single = nearest(source, target, certain=1)
            if single is None:
                break
            self._drop(*single)
            self._pair(1)
            source, target = source[single[0] + 1 :], target[single[1] + 1 :]
        self._drop(len(source), len(target))

    def expire(self, log_start: int, *, of_source: bool) -> None:
        """Note that retention has removed everything below an offset that was not read yet."""
        side = self.source if of_source else self.target
        side.log_start = max(side.log_start, log_start)
        side.feed((), log_start)
        self.account.expired.add(self.account.hunks + 1)

    def _drop(self, source: int, target: int) -> None:
        """Note the next records of each side as unmatched."""
        if self._merged and not source:
            self._pass_others(target)
        elif source or target:
            self.account.hunks += 1
            for side, count, unmatched in (
                (self.source, source, self.account.only_source),
                (self.target, target, self.account.only_target),
            ):
                self._note(side, count, unmatched)

    def _pass_others(self, count: int) -> None:
        if count:
            self.account.others += count
            self.target.advance(count)

    def _note(self, side: Side, count: int, unmatched: UnmatchedRecords) -> None:
        before = self.account.equal + len(unmatched)
        for each in range(side.at, side.at + count):
            unmatched.add(side.offsets[each], side.times[each], side.tails[each], self.account.hunks)
        if count:
            if self._has_marks:
                offsets, of_source = side.offsets[side.at : side.at + count], side is self.source
                self.translation.skip(of_source=of_source, last=offsets[-1], offsets=offsets, before=before)
            side.advance(count)

    def _search_far(self) -> Iterator[Need]:
        """Search along each log for the next records of the other, farther and farther."""
        account = self.account
        account.hunks += 1
        # The side with older records is behind: it has what the other one lacks.
        first = self.source.times[self.source.at] <= self.target.times[self.target.at]
        limit = _FIRST_FAR
        while True:
            ends = 0
            for along_source in (first, not first):
                result = yield from self._search_along(limit, along_source=along_source)
                if result is _Search.FOUND:
                    return
                ends += result is _Search.AT_END
            if ends > 1:
                break
            limit *= _FAR_GROWTH
        account.diverged += 1
        yield from self._have(_SOUGHT)
        self._drop(*(min(_SOUGHT, side.visible(side.pending_records)) for side in (self.source, self.target)))
        account.gave_up = account.diverged >= _MOST_DIVERGED

    def _search_along(self, limit: int, *, along_source: bool) -> Generator[Need, None, _Search]:
        """Search the next records of one side along the other; without a result reading returns to the start."""
        account = self.account
        moving, still, need, unmatched, kept = (
            (self.source, self.target, Need.SOURCE, account.only_source, account.only_target)
            if along_source
            else (self.target, self.source, Need.TARGET, account.only_target, account.only_source)
        )
        mark, others, start = len(unmatched), account.others, moving.offsets[moving.at]
        sought = Sought(still.tails[still.at : still.at + still.visible(min(_SOUGHT, still.pending_records))])
        passed, limit = 0, min(limit, self._room)
        while passed < limit:
            while moving.pending_records < _SOUGHT and not moving.is_full and self._decode(moving):
                pass
            if moving.pending_records < CERTAIN and not moving.is_exhausted:
                yield need
                continue
            count = moving.visible(moving.pending_records)
            if not count:
                break
            before, place = sought.find(moving.tails[moving.at : moving.at + count], is_whole=moving.is_exhausted)
            if self._merged and not along_source:
                self._pass_others(before)
            else:
                self._note(moving, before, unmatched)
            passed += before
            if place is not None:
                self._note(still, place, kept)
                return _Search.FOUND
        unmatched.shorten(mark)
        account.others = others
        self.translation.rewind(start, of_source=along_source)
        if along_source:
            self.source = Side(start, moving.end, rewrite=self._rewrite)
        else:
            self.target = self._target_side(start, moving.end)
        yield Need.SEEK_SOURCE if along_source else Need.SEEK_TARGET
        yield from self._have(1)
        return _Search.STOPPED if self._room > passed >= limit else _Search.AT_END


class _Search(Enum):
    """How a search along a log has ended."""

    FOUND = auto()
    #: It has passed as many records as it may.
    STOPPED = auto()
    AT_END = auto()
