"""The exact offset map of one partition: where every copied record stands, on both sides, for single and bulk lookups.

A lookup asks where a reader goes on, as `runs.translate` does: at the record itself where it was copied; in a hole
(compacted and aborted records, markers) at the next record; before the map at its first record; behind it at the
offset after its last record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mirror_lib.offsets.run_columns import Offsets, RunColumns, StoredSegment
from mirror_lib.offsets.runs import OffsetRun


class Landing(StrEnum):
    """What stands at an offset that is looked up."""

    #: A record that has its counterpart on the other side.
    EXACT = "exact"
    #: Nothing that was copied; the answer is the next record that was.
    HOLE = "hole"
    #: The map begins later; the answer is its first record.
    BEFORE = "before"
    #: The map ends at or before it; the answer is where the next copied record will stand, if no marker comes first.
    BEYOND = "beyond"


#: What the codes of `Lookups` stand for.
LANDINGS = (Landing.EXACT, Landing.HOLE, Landing.BEFORE, Landing.BEYOND)
_EXACT, _HOLE, _BEFORE, _BEYOND = range(len(LANDINGS))


class Lookup(NamedTuple):
    """The answer to one lookup."""

    offset: int
    landing: Landing


@dataclass(frozen=True, slots=True, eq=False)
class Lookups:
    """The answers to many, in the order of the questions."""

    offsets: Offsets
    #: Indexes into `LANDINGS`.
    codes: NDArray[np.uint8]

    def landings(self) -> tuple[Landing, ...]:
        """What stands at each of the offsets."""
        return tuple(LANDINGS[code] for code in self.codes.tolist())

    def counts(self) -> dict[Landing, int]:
        """How many lookups landed how."""
        found = np.bincount(self.codes, minlength=len(LANDINGS)).tolist()
        return dict(zip(LANDINGS, found, strict=True))


class OffsetMap:
    """The map of one partition; immutable, 32 bytes for each run, so threads may share it."""

    __slots__ = ("_before", "_columns", "_source", "_target")

    def __init__(self, columns: RunColumns) -> None:
        self._columns = columns
        #: Each side has a last element more: where it ends.
        self._source = _with_end(columns.source_first, columns.count)
        self._target = _with_end(columns.target_first, columns.count)
        #: Records before each run, and all of them.
        self._before = np.concatenate((np.zeros(1, np.int64), np.cumsum(columns.count)))

    @classmethod
    def of_segments(cls, segments: Iterable[StoredSegment]) -> OffsetMap:
        """The map that a ledger keeps for a partition.

        Raises:
            OffsetMapError: what is stored is damaged.
        """
        return cls(RunColumns.of_segments(segments))

    @classmethod
    def of_runs(cls, runs: Sequence[OffsetRun]) -> OffsetMap:
        """The map that runs make.

        Raises:
            ValueError: they do not ascend on both sides.
        """
        return cls(RunColumns.of(runs))

    @property
    def columns(self) -> RunColumns:
        """The runs."""
        return self._columns

    @property
    def records(self) -> int:
        """How many records are mapped."""
        return int(self._before[-1])

    @property
    def empty(self) -> bool:
        """Whether no record is mapped; then nothing can be looked up."""
        return not self.records

    @property
    def source_first(self) -> int:
        """Offset of the first mapped record; `ValueError` where there is none, as for the next three."""
        return int(self._sides()[0][0])

    @property
    def source_next(self) -> int:
        """The offset after the last mapped record."""
        return int(self._sides()[0][-1])

    @property
    def target_first(self) -> int:
        """Target offset of the first mapped record."""
        return int(self._sides()[1][0])

    @property
    def target_next(self) -> int:
        """The target offset after the last mapped record."""
        return int(self._sides()[1][-1])

    def to_target(self, source_offset: int) -> Lookup:
        """Where a reader of the target goes on who would go on at `source_offset` on the source.

        Raises:
            ValueError: the map is empty.
        """
        return _one(self.to_target_many([source_offset]))

    def goes_on_at(self, source_offset: int) -> Lookup:
        """As `to_target`, for readers that must miss nothing.

        Where target offsets without a mapped record stand in a hole it is the first of them: those are markers of
        take-overs, which no reader sees, or the records of a run that did not reach the ledger.

        Raises:
            ValueError: the map is empty.
        """
        lookup = self.to_target(source_offset)
        if lookup.landing is not Landing.HOLE:
            return lookup
        return Lookup(lookup.offset - self.target_gap_before(lookup.offset), lookup.landing)

    def to_source(self, target_offset: int) -> Lookup:
        """The same in the other direction.

        Raises:
            ValueError: the map is empty.
        """
        return _one(self.to_source_many([target_offset]))

    def to_target_many(self, source_offsets: ArrayLike) -> Lookups:
        """As `to_target` for many offsets in any order; ascending ones are fastest.

        Raises:
            ValueError: the map is empty.
        """
        source, target = self._sides()
        return self._look_up(source, target, source_offsets)

    def to_source_many(self, target_offsets: ArrayLike) -> Lookups:
        """As `to_source` for many offsets in any order.

        Raises:
            ValueError: the map is empty.
        """
        source, target = self._sides()
        return self._look_up(target, source, target_offsets)

    def source_records_between(self, first: int, end: int) -> int:
        """How many mapped records stand at source offsets [first, end)."""
        return self._records_between(self._source, first, end)

    def target_records_between(self, first: int, end: int) -> int:
        """How many mapped records stand at target offsets [first, end)."""
        return self._records_between(self._target, first, end)

    def target_gap_before(self, target_offset: int) -> int:
        """How many target offsets right before this one hold no mapped record; all of them before the first record."""
        after = int(np.searchsorted(self._target[:-1], target_offset, side="left"))
        if after == 0:
            return target_offset
        last = int(self._target[after - 1] + self._columns.count[after - 1])
        return max(0, target_offset - last)

    def records_read_again(self, source_offset: int, target_offset: int) -> int:
        """How many mapped records a reader sees twice that has read all before `source_offset` on the source, and goes
        on at `target_offset` on the target; negative, when it misses some: so many.

        With the offset that `to_target` gives it is 0. Records that are not copied yet are not counted.
        """
        if self.empty:
            return 0
        exact = self.to_target(source_offset).offset
        if target_offset > exact:
            return -self.target_records_between(exact, target_offset)
        return self.target_records_between(target_offset, exact)

    def _sides(self) -> tuple[Offsets, Offsets]:
        if self.empty:
            raise ValueError("an empty offset map translates nothing")
        return self._source, self._target

    def _look_up(self, here: Offsets, there: Offsets, offsets: ArrayLike) -> Lookups:
        wanted = np.asarray(offsets, dtype=np.int64)
        runs = len(self._columns)
        after = np.searchsorted(here[:-1], wanted, side="right")
        run = np.maximum(after - 1, 0)
        within = wanted - here[run]
        exact = (within < self._columns.count[run]) & (after > 0)
        codes = np.full(wanted.shape, _HOLE, np.uint8)
        codes[after == runs] = _BEYOND
        codes[after == 0] = _BEFORE
        codes[exact] = _EXACT
        return Lookups(np.where(exact, there[run] + within, there[after]), codes)

    def _records_between(self, side: Offsets, first: int, end: int) -> int:
        return max(0, self._records_before(side, end) - self._records_before(side, first))

    def _records_before(self, side: Offsets, offset: int) -> int:
        run = int(np.searchsorted(side[:-1], offset, side="right")) - 1
        if run < 0:
            return 0
        return int(self._before[run]) + min(offset - int(side[run]), int(self._columns.count[run]))


def _with_end(first: Offsets, count: Offsets) -> Offsets:
    return np.concatenate((first, first[-1:] + count[-1:]))


def _one(lookups: Lookups) -> Lookup:
    return Lookup(int(lookups.offsets[0]), LANDINGS[int(lookups.codes[0])])
