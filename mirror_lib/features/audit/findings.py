"""What became of the records that an alignment left unmatched: ranges of one kind. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mirror_lib.features.audit.account import Account
from mirror_lib.features.audit.unmatched import NULL, Unmatched
from mirror_lib.features.verify.compare.side import REPLACED

#: The place of records between which there is no order.
UNORDERED = -1
_PARTS = ("key", "value", "headers")
_Content = tuple[int, int, int]
_Alike = Callable[["Unmatched"], tuple[int, ...] | None]


class Kind(StrEnum):
    """What is wrong, or not known, about records."""

    MISSING = "missing"
    REPEATED = "repeated"
    REORDERED = "reordered"
    CHANGED = "changed"
    EXTRA = "extra"
    MOVED = "moved"
    UNVERIFIABLE = "unverifiable"


#: The kinds that make a copy wrong.
WRONG = frozenset(Kind) - {Kind.UNVERIFIABLE}


@dataclass(frozen=True, slots=True)
class Offsets:
    """First and last offset of some records of a partition, and their first and last time (epoch ms; None: unknown)."""

    first: int
    last: int
    first_time: int | None
    last_time: int | None
    partition: int = 0

    @classmethod
    def of(cls, records: Sequence[Unmatched]) -> Offsets | None:
        """The range of some records; None without any."""
        if not records:
            return None
        times = [each.time for each in records if each.time != REPLACED]
        return cls(
            min(each.offset for each in records),
            max(each.offset for each in records),
            min(times, default=None),
            max(times, default=None),
            records[0].partition,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "partition": self.partition,
            "first_offset": self.first,
            "last_offset": self.last,
            "first_time": self.first_time,
            "last_time": self.last_time,
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """Records of one kind at one place."""

    kind: Kind
    records: int
    source: Offsets | None
    target: Offsets | None
    #: Of changed records: key, value, headers, timestamp.
    parts: tuple[str, ...] = ()
    #: A sentence; of unverifiable ones the reason.
    why: str = ""

    @property
    def partition(self) -> int | None:
        """The partition of the source, or of the target if only that has the records."""
        known = self.source or self.target
        return None if known is None else known.partition

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "kind": self.kind.value,
            "records": self.records,
            "source": None if self.source is None else self.source.to_dict(),
            "target": None if self.target is None else self.target.to_dict(),
            "parts": list(self.parts),
            "why": self.why,
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about the two partitions besides their records."""

    #: Source offset before which a record must be on the target; by partition where several are compared.
    judged_end: int | Mapping[int, int]
    source_log_start: int = 0
    target_log_start: int = 0
    source_compacted: bool = False
    target_compacted: bool = False
    #: Epoch milliseconds: retention has removed records before that time from the source, or from the target.
    source_edge: int | None = None
    target_edge: int | None = None
    #: True if other sources write to the target, too: what only the target has is not judged.
    merged: bool = False


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Where the source holds a record that the target has once more."""

    offset: int
    #: True if its transaction was aborted, so that no committed reader sees it.
    aborted: bool = False
    partition: int = 0


@dataclass(slots=True)
class Question:
    """What has to be looked up in the logs before the findings are known; empty if nothing."""

    #: Contents of target records: does the source hold them?
    contents: set[_Content] = field(default_factory=set)
    #: Keys: which is the last record of each?
    source_keys: set[int] = field(default_factory=set)
    target_keys: set[int] = field(default_factory=set)
    #: Contents of source records: does the target hold them where the walk did not come to?
    beyond: set[_Content] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """True if nothing has to be looked up."""
        return not (self.contents or self.source_keys or self.target_keys or self.beyond)


@dataclass(slots=True)
class Answer:
    """What was found."""

    #: By content and time, and by content alone with `REPLACED`.
    occurrences: dict[tuple[_Content, int], Occurrence] = field(default_factory=dict)
    #: The last offset of each key.
    source_keys: dict[int, int] = field(default_factory=dict)
    target_keys: dict[int, int] = field(default_factory=dict)
    #: By content and time: the target offset of records where the walk did not come to.
    beyond: dict[tuple[_Content, int], int] = field(default_factory=dict)

    def add(self, content: _Content, time: int, found: Occurrence) -> None:
        """Note a record of the source; the first one of each kind counts."""
        self.occurrences.setdefault((content, time), found)
        self.occurrences.setdefault((content, REPLACED), found)


class Unpaired:
    """The unmatched records of both sides, and which of them belong together."""

    def __init__(
        self,
        source: Iterable[Unmatched],
        target: Iterable[Unmatched],
        facts: Facts,
        account: Account | None = None,
    ) -> None:
        """Pair those that are the same: they were only written in another order."""
        self._account, self._facts = account or Account(), facts
        self.reordered: list[tuple[Unmatched, Unmatched]] = []
        waiting: dict[tuple[_Content, int], deque[Unmatched]] = defaultdict(deque)
        for each in source:
            waiting[self._identity(each)].append(each)
        #: Number of those that are in order after all: a permutation has as few displaced records as possible.
        self.in_order = 0
        #: Number of records that are taken for those of other sources.
        self.others = 0
        self.target: list[Unmatched] = []
        for each in target:
            same = waiting.get(self._identity(each))
            if same:
                self.reordered.append((same.popleft(), each))
            else:
                self.target.append(each)
        self.source = sorted((each for rest in waiting.values() for each in rest), key=_position)
        pairs, self.reordered = self.reordered, list(_displaced(self.reordered))
        self.in_order = len(pairs) - len(self.reordered)

    def _identity(self, each: Unmatched) -> tuple[_Content, int]:
        return each.content, REPLACED if self._account.replaced_times else each.time

    def question(self) -> Question:
        """Return what must be looked up."""
        question = Question(contents={each.content for each in self.target})
        if self._account.gave_up:
            question.beyond = {each.content for each in self.source}
        if self._facts.source_compacted or self._facts.target_compacted:
            question.source_keys = {each.key for each in self.source}
            question.target_keys = {each.key for each in self.target}
            question.target_keys |= {each.key for each in self.source if each.value == NULL}
        return question

    def findings(self, answer: Answer) -> list[Finding]:
        """Return all findings in the order of the logs."""
        account = self._account
        surely = [(each, answer.occurrences.get(self._identity(each))) for each in self.target]
        # What compaction may have removed is judged first: a removed record and another of its key are no changed one.
        wanted = [each for each in self.source if not self._is_superseded(each, answer)]
        unknown = [each for each, found in surely if found is None and not self._is_removed_on_source(each, answer)]
        before_source, before_target = self._before_first_pair()
        # Another source may have the same key at the same place; at the same time, too, it is hardly another record.
        changed, missing, rest = _changed(
            wanted, unknown, _ALIKE[:1] if self._facts.merged else _ALIKE, before_source | before_target
        )
        # Who writes copies with other timestamps repeats them so, too.
        perhaps = [(each, answer.occurrences.get((each.content, REPLACED))) for each in rest]
        held = [(each, found) for each, found in (*surely, *perhaps) if found is not None]
        held.sort(key=lambda pair: _position(pair[0]))
        repeated = [
            (each._replace(offset=found.offset, partition=found.partition), each)
            for each, found in held
            if not found.aborted
        ]
        aborted = [each for each, found in held if found.aborted]
        extra = [each for each, found in perhaps if found is None]
        if self._facts.merged:
            self.others, extra = len(extra), []
        places = [(each, answer.beyond.get(self._identity(each))) for each in missing]
        missing = [each for each, place in places if place is None]
        self.reordered += [(each, each._replace(offset=place)) for each, place in places if place is not None]
        late = [each for each in missing if each.offset < self._judged_end(each.partition)]
        unknown_source, lost = _split(late, before_source, self._facts.target_edge)
        unknown_target, known_extra = _split(extra, before_target, self._facts.source_edge)
        ranges = [
            *_ranges(Kind.MISSING, [(each, None) for each in lost]),
            *_ranges(Kind.UNVERIFIABLE, [(each, None) for each in unknown_source], why=_TARGET_EXPIRED),
            *_ranges(Kind.EXTRA, [(None, each) for each in known_extra]),
            *_ranges(Kind.EXTRA, [(None, each) for each in aborted], why=ABORTED),
            *_ranges(Kind.UNVERIFIABLE, [(None, each) for each in unknown_target], why=_SOURCE_EXPIRED),
            *_ranges(Kind.REORDERED, self.reordered),
            *_ranges(Kind.REPEATED, repeated),
            *_changed_ranges(changed),
            *_altered(account),
            *_moved(account),
        ]
        return sorted(ranges, key=_place)

    def _judged_end(self, partition: int) -> int:
        end = self._facts.judged_end
        return end if isinstance(end, int) else end[partition]

    def _before_first_pair(self) -> tuple[set[int], set[int]]:
        """Return the hunks of records of the source, and of the target, whose copies retention may have removed.

        Without any pair these are all of a side: the other one may have nothing left.
        """
        account, facts = self._account, self._facts
        before_source = set(account.expired)
        before_target = set(account.expired)
        for records, count, into, start in (
            (account.only_source, account.before[0], before_source, facts.target_log_start),
            (account.only_target, account.before[1], before_target, facts.source_log_start),
        ):
            if start > 0:
                first = zip(records, range(count if account.equal + account.changed else len(records)), strict=False)
                into |= {each.hunk for each, _ in first}
        return before_source, before_target

    def _is_superseded(self, each: Unmatched, answer: Answer) -> bool:
        """Return True if compaction may have removed the record from the target."""
        if not self._facts.target_compacted or each.key == NULL:
            return False
        if answer.source_keys.get(each.key, -1) > each.offset:
            return True
        # A deletion is removed last: where an older record of the key is left, it never came.
        return each.value == NULL and each.key not in answer.target_keys

    def _is_removed_on_source(self, each: Unmatched, answer: Answer) -> bool:
        """Return True if compaction may have removed the record from the source."""
        if not self._facts.source_compacted or each.key == NULL:
            return False
        return each.value == NULL or answer.target_keys.get(each.key, -1) > each.offset


def _split(records: Sequence[Unmatched], hunks: set[int], edge: int | None) -> tuple[list[Unmatched], list[Unmatched]]:
    """Separate records whose counterparts retention may have removed from the others.

    Args:
        hunks: of the former.
        edge: time before which retention has removed records on the other side.
    """
    found: tuple[list[Unmatched], list[Unmatched]] = ([], [])
    for each in records:
        is_unknown = each.hunk in hunks or (edge is not None and REPLACED < each.time < edge)
        found[not is_unknown].append(each)
    return found


def _position(each: Unmatched) -> tuple[int, int]:
    return each.partition, each.offset


def _displaced(pairs: Sequence[tuple[Unmatched, Unmatched]]) -> Iterator[tuple[Unmatched, Unmatched]]:
    """Yield the pairs that were displaced: of a permutation at one place as few as possible."""
    places: dict[tuple[int, ...], list[tuple[Unmatched, Unmatched]]] = defaultdict(list)
    for mine, theirs in sorted(pairs, key=lambda pair: _position(pair[0])):
        places[mine.hunk, theirs.hunk, mine.partition, theirs.partition].append((mine, theirs))
    for (here, there, *_), found in places.items():
        if here == there == UNORDERED:
            continue
        in_order = _longest_increasing([theirs.offset for _, theirs in found]) if here == there else set()
        yield from (pair for place, pair in enumerate(found) if place not in in_order)


def _longest_increasing(values: Sequence[int]) -> set[int]:
    """Return the places of a longest increasing subsequence of different values."""
    ends: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for place, value in enumerate(values):
        length = bisect_left(ends, value)
        before.append(places[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        places[length : length + 1] = [place]
    found = set()
    place = places[-1] if places else -1
    while place >= 0:
        found.add(place)
        place = before[place]
    return found


_TARGET_EXPIRED = "what is compared of the target begins later: retention, `--since`, or copying began here"
_SOURCE_EXPIRED = "what is compared of the source begins later: retention, or `--since`"
#: `Finding.why` of extra records.
ABORTED = "of transactions that were aborted on the source"


def _changed(
    source: Sequence[Unmatched], target: Sequence[Unmatched], likenesses: Sequence[_Alike], expired: Set[int]
) -> tuple[list[tuple[Unmatched, Unmatched]], list[Unmatched], list[Unmatched]]:
    """Pair records at the same place that are the same in part; return the pairs and what is left of each side.

    Args:
        expired: places of which retention may have removed records: two of one key may be different ones there.
    """
    pairs: list[tuple[Unmatched, Unmatched]] = []
    for alike in likenesses:
        waiting: dict[tuple[int, ...], deque[Unmatched]] = defaultdict(deque)
        for each in source:
            if (likeness := alike(each)) is not None and not (alike is _same_key and each.hunk in expired):
                waiting[each.hunk, *likeness].append(each)
        left: list[Unmatched] = []
        paired: set[Unmatched] = set()
        for each in target:
            likeness = alike(each)
            same = None if likeness is None else waiting.get((each.hunk, *likeness))
            if same:
                paired.add(same[0])
                pairs.append((same.popleft(), each))
            else:
                left.append(each)
        source, target = [each for each in source if each not in paired], left
    return sorted(pairs, key=lambda pair: _position(pair[0])), list(source), list(target)


def _same_key(each: Unmatched) -> tuple[int, ...] | None:
    return None if each.key == NULL else (each.key,)


#: What two records have in common that are one, which was changed; the surest first. None if that says nothing.
_ALIKE: tuple[_Alike, ...] = (
    lambda each: None if each.key == NULL else (each.key, each.time),
    _same_key,
    lambda each: None if each.value == NULL else (each.value,),
    lambda each: None if each.time == REPLACED else (each.time, each.key),
)


def _parts(mine: Unmatched, theirs: Unmatched) -> tuple[str, ...]:
    found = [name for name, a, b in zip(_PARTS, mine.content, theirs.content, strict=True) if a != b]
    return (*found, "timestamp") if theirs.time not in (REPLACED, mine.time) else tuple(found)


_Pair = tuple[Unmatched | None, Unmatched | None]


def _ranges(kind: Kind, pairs: Iterable[_Pair], *, why: str = "", parts: tuple[str, ...] = ()) -> Iterator[Finding]:
    """Join pairs of the same place, or of consecutive offsets, on the known sides."""
    group: list[_Pair] = []
    for pair in pairs:
        if group and not _follows(group[-1], pair):
            yield _finding(kind, group, why, parts)
            group = []
        group.append(pair)
    if group:
        yield _finding(kind, group, why, parts)


def _follows(before: _Pair, after: _Pair) -> bool:
    for a, b in zip(before, after, strict=True):
        if a is None or b is None:
            continue
        is_same_place = a.hunk == b.hunk >= 0 or b.offset == a.offset + 1
        if a.partition != b.partition or not is_same_place:
            return False
    return True


def _finding(kind: Kind, pairs: Sequence[_Pair], why: str, parts: tuple[str, ...]) -> Finding:
    source = [mine for mine, _ in pairs if mine is not None]
    target = [theirs for _, theirs in pairs if theirs is not None]
    return Finding(kind, len(pairs), Offsets.of(source), Offsets.of(target), parts, why)


def _changed_ranges(pairs: Sequence[tuple[Unmatched, Unmatched]]) -> Iterator[Finding]:
    by_parts: dict[tuple[str, ...], list[_Pair]] = defaultdict(list)
    for mine, theirs in pairs:
        by_parts[_parts(mine, theirs)].append((mine, theirs))
    for parts, each in by_parts.items():
        yield from _ranges(Kind.CHANGED, each, parts=parts)


def _altered(account: Account) -> Iterator[Finding]:
    for each in account.altered:
        yield Finding(
            Kind.CHANGED,
            each.records,
            Offsets(each.source_first, each.source_last, None, None, account.partitions[0]),
            Offsets(each.target_first, each.target_last, None, None, account.partitions[1]),
            each.parts,
            f"by {each.shift:+,} ms at the first of them" if each.shift else "",
        )


def _moved(account: Account) -> Iterator[Finding]:
    for each in account.moved:
        yield Finding(
            Kind.MOVED,
            each.records,
            Offsets(each.source_first, each.source_last, None, None, account.partitions[0]),
            Offsets(each.target_first, each.target_last, None, None, account.partitions[1]),
            why=f"by {each.target_first - each.source_first:+,} at the first of them",
        )


def _place(finding: Finding) -> tuple[tuple[int, int], tuple[int, int]]:
    source, target = finding.source, finding.target
    return (
        (-1, -1) if source is None else (source.partition, source.first),
        (-1, -1) if target is None else (target.partition, target.first),
    )


def count_by_kind(findings: Iterable[Finding]) -> Mapping[Kind, int]:
    """Number of records of each kind."""
    counts: dict[Kind, int] = defaultdict(int)
    for each in findings:
        counts[each.kind] += each.records
    return counts
