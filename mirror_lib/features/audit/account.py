"""What the walk along two logs has found. Plain data."""

from __future__ import annotations

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
