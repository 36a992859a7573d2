"""The exact offset map of one partition: the offset of every copied record on both sides, for single and bulk lookups.

A lookup returns where a reader continues, as `runs.translate` does: at the record itself if it was copied; in a hole
(compacted and aborted records, markers) at the next record; before the map at its first record; after it at the
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
    """Result of a lookup."""

    #: The record was copied.
    EXACT = "exact"
    #: The record was not copied; the next copied record is returned.
    HOLE = "hole"
    #: The map starts later; its first record is returned.
    BEFORE = "before"
    #: Not copied yet; the offset of the next copied record is returned, if no marker precedes it.
    BEYOND = "beyond"


#: Landings by the codes of `Lookups`.
LANDINGS = (Landing.EXACT, Landing.HOLE, Landing.BEFORE, Landing.BEYOND)
_EXACT, _HOLE, _BEFORE, _BEYOND = range(len(LANDINGS))


class Lookup(NamedTuple):
    """The result of one lookup."""

    offset: int
    landing: Landing


@dataclass(frozen=True, slots=True, eq=False)
class Lookups:
    """The results of many lookups, in their order."""

    offsets: Offsets
    #: Indexes into `LANDINGS`.
    codes: NDArray[np.uint8]

    def landings(self) -> tuple[Landing, ...]:
        """The landing of each lookup."""
        return tuple(LANDINGS[code] for code in self.codes.tolist())

    def counts(self) -> dict[Landing, int]:
        """The number of lookups by landing."""
        found = np.bincount(self.codes, minlength=len(LANDINGS)).tolist()
        return dict(zip(LANDINGS, found, strict=True))


class OffsetMap:
    """The map of one partition; immutable, 32 bytes for each run, so threads may share it."""

    __slots__ = ("_before", "_columns", "_source", "_target")

    def __init__(self, columns: RunColumns) -> None:
        self._columns = columns
        #: Each side has one element more: its end.
        self._source = _with_end(columns.source_first, columns.count)
        self._target = _with_end(columns.target_first, columns.count)
        #: The number of records before each run, and of all.
        self._before = np.concatenate((np.zeros(1, np.int64), np.cumsum(columns.count)))

    @classmethod
    def of_segments(cls, segments: Iterable[StoredSegment]) -> OffsetMap:
        """The map that the ledger stores for a partition.

        Raises:
            OffsetMapError: a stored segment is damaged.
        """
        return cls(RunColumns.of_segments(segments))

    @classmethod
    def of_runs(cls, runs: Sequence[OffsetRun]) -> OffsetMap:
        """The map of these runs.

        Raises:
            ValueError: the runs do not ascend on both sides.
        """
        return cls(RunColumns.of(runs))

    @property
    def columns(self) -> RunColumns:
        """The runs."""
        return self._columns

    @property
    def records(self) -> int:
        """The number of mapped records."""
        return int(self._before[-1])

    @property
    def empty(self) -> bool:
        """True if no record is mapped; then lookups fail."""
        return not self.records

    @property
    def source_first(self) -> int:
        """Offset of the first mapped record; `ValueError` if there is none, as in the next three."""
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
        """Return where a reader continues on the target that would continue at `source_offset` on the source.

        Raises:
            ValueError: the map is empty.
        """
        return _one(self.to_target_many([source_offset]))

    def resume_at(self, source_offset: int) -> Lookup:
        """As `to_target`, for readers that must miss nothing.

        If a hole contains target offsets without a mapped record, return the first of them: these are markers of
        take-overs, which no reader sees, or the records of a run that did not reach the ledger.

        Raises:
            ValueError: the map is empty.
        """
        lookup = self.to_target(source_offset)
        if lookup.landing is not Landing.HOLE:
            return lookup
        return Lookup(lookup.offset - self.target_gap_before(lookup.offset), lookup.landing)

    def to_source(self, target_offset: int) -> Lookup:
        """As `to_target`, from the target to the source.

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
        """The number of mapped records at source offsets [first, end)."""
        return self._records_between(self._source, first, end)

    def target_records_between(self, first: int, end: int) -> int:
        """The number of mapped records at target offsets [first, end)."""
        return self._records_between(self._target, first, end)

    def target_gap_before(self, target_offset: int) -> int:
        """The number of target offsets right before this one without a mapped record; all before the first record."""
        after = int(np.searchsorted(self._target[:-1], target_offset, side="left"))
        if after == 0:
            return target_offset
        last = int(self._target[after - 1] + self._columns.count[after - 1])
        return max(0, target_offset - last)

    def count_duplicates(self, source_offset: int, target_offset: int) -> int:
        """Duplicates on failover (records) of a reader that has read all before `source_offset` on the source and
        continues at `target_offset` on the target; negative for records that it skips.

        0 for the offset that `to_target` returns. Records that are not copied yet do not count.
        """
        if self.empty:
            return 0
        exact = self.to_target(source_offset).offset
        if target_offset > exact:
            return -self.target_records_between(exact, target_offset)
        return self.target_records_between(target_offset, exact)

    def _sides(self) -> tuple[Offsets, Offsets]:
        if self.empty:
            raise ValueError("an empty offset map cannot translate offsets")
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
