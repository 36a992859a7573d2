"""What the walk along two logs has found. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mirror_lib.features.audit.unmatched import UnmatchedRecords


@dataclass(slots=True)
class Bounds:
    """First and last offset and time of what was seen on one side; times in epoch milliseconds, -1 if unknown."""

    first: int | None = None
    last: int | None = None
    first_time: int = -1
    last_time: int = -1

    def extend(self, first: int, last: int, first_time: int, last_time: int) -> None:
        """Take in a later range."""
        if self.first is None:
            self.first, self.first_time = first, first_time
        self.last, self.last_time = last, last_time


@dataclass(frozen=True, slots=True)
class Reached:
    """A place up to which both logs are equal, without any fault."""

    #: The next offsets.
    source_next: int
    target_next: int
    equal: int
    others: int
    replaced_times: bool
    source: Bounds
    target: Bounds


@dataclass(slots=True)
class Altered:
    """Consecutive pairs of records that differ in the same parts."""

    source_first: int
    source_last: int
    target_first: int
    target_last: int
    records: int
    #: key, value, headers, timestamp.
    parts: tuple[str, ...]
    #: Milliseconds: target minus source, of the first pair.
    shift: int


@dataclass(slots=True)
class Moved:
    """Consecutive pairs of records at other offsets than each other, where offsets are to be the same."""

    source_first: int
    source_last: int
    target_first: int
    target_last: int
    records: int


@dataclass(slots=True)
class Account:
    """What the walk has found."""

    #: Of the source and of the target.
    partitions: tuple[int, int] = (0, 0)
    #: Pairs of equal records.
    equal: int = 0
    source: Bounds = field(default_factory=Bounds)
    target: Bounds = field(default_factory=Bounds)
    only_source: UnmatchedRecords = field(init=False)
    only_target: UnmatchedRecords = field(init=False)
    #: The number of records before the first pair.
    before: tuple[int, int] = (0, 0)
    #: Where differences are the rule. Single ones are unmatched records.
    altered: list[Altered] = field(default_factory=list)
    #: Number of these pairs.
    changed: int = 0
    #: Pairs at other offsets, where that is compared; a record at its offset ends a range.
    moved: list[Moved] = field(default_factory=list)
    #: True if a broker has replaced timestamps on the target: they are not compared.
    replaced_times: bool = False
    #: Places from which on nothing of either log was found on the other.
    diverged: int = 0
    #: True if that happened too often: the rest is not compared.
    gave_up: bool = False
    hunks: int = 0
    #: Records of the target that were passed as those of other sources.
    others: int = 0
    #: Hunks in which the other side has lost records to retention during the walk.
    expired: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin without records."""
        self.only_source, self.only_target = map(UnmatchedRecords, self.partitions)

    @property
    def passed(self) -> tuple[int, int]:
        """Number of records of each side so far."""
        pairs = self.equal + self.changed
        return pairs + len(self.only_source), pairs + len(self.only_target)

    def pair(self, source: tuple[int, int, int, int], target: tuple[int, int, int, int], records: int) -> None:
        """Count equal records.

        Args:
            source: first and last offset, first and last time; of the target likewise.
        """
        if not self.equal + self.changed:
            self.before = len(self.only_source), len(self.only_target)
        self.equal += records
        self.source.extend(*source)
        self.target.extend(*target)

    def move(self, source: Sequence[int], target: Sequence[int]) -> None:
        """Note which of the next pairs are at other offsets than each other, before they are counted (`pair`).

        Args:
            source: the offsets of the records; of the target likewise.
        """
        before = self.source.last
        for here, there in zip(source, target, strict=True):
            if here != there:
                self.move_row((here, here), (there, there), 1, before=before)
            before = here

    def move_row(self, source: tuple[int, int], target: tuple[int, int], records: int, *, before: int | None) -> None:
        """Note that pairs in a row are at other offsets than each other.

        Args:
            source: first and last offset; of the target likewise.
            before: the source offset of the pair before them.
        """
        last = self.moved[-1] if self.moved else None
        if last is not None and last.source_last == before:
            last.source_last, last.target_last = source[1], target[1]
            last.records += records
        else:
            self.moved.append(Moved(*source, *target, records))
