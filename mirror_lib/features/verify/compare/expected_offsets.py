"""The offset map of a range, walked forward: the expected offset of a source record, and the record of a target offset.

`Places` and `RowPlaces` look up the map; `Placement` adds what the walk has found out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from mirror_lib.offsets.runs import OffsetRun

Int64s = NDArray[np.int64]
#: No drift makes a place of it.
_UNKNOWN = -(1 << 62)
_SOURCE_FIRST = attrgetter("source_first")
_TARGET_FIRST = attrgetter("target_first")
#: Low bits of a row number: they number the rows of one record; the other bits are its source offset.
ROW_BITS = 20
#: Maximum number of rows of one record.
MOST_ROWS = 1 << ROW_BITS


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets between two runs that the map does not pair.

    Attributes:
        first: the source and the target offset with which it begins; None before the first run.
        following: those of the run after it; None after the last run.
    """

    first: tuple[int, int] | None
    following: tuple[int, int] | None

    def sizes(self, first: tuple[int, int], following: tuple[int, int]) -> tuple[int, int]:
        """Return its number of source and of target offsets.

        Args:
            first: the first offsets of the range: a hole before the first run begins there.
            following: the offsets after the range's last ones: a hole after the last run ends there.
        """
        begin, end = self.first or first, self.following or following
        return end[0] - begin[0], end[1] - begin[1]


class Places:
    """Look-ups in a list of runs, fast for ascending offsets."""

    def __init__(self, runs: Sequence[OffsetRun]) -> None:
        self._runs = runs
        self._near = 0
        self._columns: tuple[Int64s, Int64s, Int64s] | None = None

    def places_of(self, source_offsets: Int64s) -> Int64s:
        """The target offset of each record; one below zero where the map does not know it."""
        if self._columns is None:
            # Most maps have few runs, and most ranges of them are never looked up here.
            columns = np.array(self._runs, dtype=np.int64).reshape(len(self._runs), 3)
            self._columns = columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy()
        firsts, targets, counts = self._columns
        if not len(firsts):
            return np.full(len(source_offsets), _UNKNOWN, dtype=np.int64)
        numbers = np.maximum(np.searchsorted(firsts, source_offsets, side="right") - 1, 0)
        behind = source_offsets - firsts[numbers]
        return np.where((behind >= 0) & (behind < counts[numbers]), targets[numbers] + behind, _UNKNOWN)

    def run_of(self, source_offset: int) -> OffsetRun | None:
        """The run that holds a source offset."""
        runs, near = self._runs, self._near
        if near < len(runs) and runs[near].source_first <= source_offset < runs[near].source_next:
            return runs[near]
        after = bisect_right(runs, source_offset, key=_SOURCE_FIRST)
        if after == 0 or source_offset >= runs[after - 1].source_next:
            return None
        self._near = after - 1
        return runs[after - 1]

    def source_of(self, target_offset: int) -> int | None:
        """Return the source offset that the map pairs with a target offset."""
        after = bisect_right(self._runs, target_offset, key=_TARGET_FIRST)
        if after == 0 or target_offset >= self._runs[after - 1].target_next:
            return None
        run = self._runs[after - 1]
        return run.source_first + target_offset - run.target_first

    def hole_of(self, source_offset: int) -> Hole:
        """Return the hole that a source offset in no run is in."""
        return self._hole_before(bisect_right(self._runs, source_offset, key=_SOURCE_FIRST))

    def hole_at(self, target_offset: int) -> Hole:
        """Return the hole that a target offset in no run is in."""
        return self._hole_before(bisect_right(self._runs, target_offset, key=_TARGET_FIRST))

    def _hole_before(self, after: int) -> Hole:
        before = self._runs[after - 1] if after else None
        following = self._runs[after] if after < len(self._runs) else None
        return Hole(
            None if before is None else (before.source_next, before.target_next),
            None if following is None else (following.source_first, following.target_first),
        )


class RowPlaces:
    """Like `Places`, where one source record may have several target records next to each other.

    The map has the target offset of the first of them. Each has a row number, used here in place of a source offset:
    row `i` of source offset `s` is `(s << ROW_BITS) + i`.
    """

    def __init__(self, runs: Sequence[OffsetRun]) -> None:
        self._runs = runs
        self._records = Places(runs)

    def places_of(self, rows: Int64s) -> Int64s:
        """See `Places`."""
        places = self._records.places_of(rows >> ROW_BITS)
        return np.where(places < 0, _UNKNOWN, places + (rows & (MOST_ROWS - 1)))

    def run_of(self, row: int) -> OffsetRun | None:
        """Return the run that contains the source record of a row."""
        offset = row >> ROW_BITS
        run = self._records.run_of(offset)
        if run is None:
            return None
        return OffsetRun(offset << ROW_BITS, run.target_first + offset - run.source_first, MOST_ROWS)

    def source_of(self, target_offset: int) -> int | None:
        """Return the row at a target offset, if it belongs to the last mapped record at or before that offset."""
        after = bisect_right(self._runs, target_offset, key=_TARGET_FIRST)
        if after == 0:
            return None
        run = self._runs[after - 1]
        number = min(target_offset - run.target_first, run.count - 1)
        behind = target_offset - run.target_first - number
        return ((run.source_first + number) << ROW_BITS) + behind if behind < MOST_ROWS else None

    def hole_of(self, row: int) -> Hole:
        """See `Places`. Rows of the last record of a run may follow, so that the hole may be smaller."""
        return self._records.hole_of(row >> ROW_BITS)

    def hole_at(self, target_offset: int) -> Hole:
        """See `Places` and `hole_of`."""
        return self._records.hole_at(target_offset)


class Placement:
    """Expected target offsets of the records of a range, by the map and by what was found on the way.

    Records are named by ascending numbers: source offsets, or rows where one record may become several (see
    `RowPlaces`).
    """

    def __init__(self, runs: Sequence[OffsetRun], *, several: bool) -> None:
        """Begin with the offsets of the map.

        Args:
            several: True if one source record may become several target records.
        """
        self.row_bits = ROW_BITS if several else 0
        self._places = RowPlaces(runs) if several else Places(runs)
        #: Distance of target records from the offsets of the map: not 0 after a loss or an addition.
        self.drift = 0
        #: Rows of this source offset that a policy skipped, before the rows that follow.
        self._rows_skipped, self._rows_skipped_of = 0, -1

    def run_of(self, number: int) -> OffsetRun | None:
        """Return the run that holds a record."""
        return self._places.run_of(number)

    def place(self, run: OffsetRun, number: int) -> int:
        """Return the expected target offset of a record of a run."""
        place = run.target_first + number - run.source_first + self.drift
        if self._rows_skipped and number >> self.row_bits == self._rows_skipped_of:
            return place - self._rows_skipped
        return place

    def are_in_a_row(self, numbers: Int64s, first_place: int) -> bool:
        """Return True if the expected offsets of all these records are consecutive and begin at a target offset."""
        places = self._places.places_of(numbers) + self.drift
        return bool((places == np.arange(first_place, first_place + len(numbers), dtype=np.int64)).all())

    def number_at(self, target_offset: int, *, passed: int) -> int | None:
        """Return the record that is expected at a target offset, if it was not compared yet.

        Args:
            passed: all records before this number are compared.
        """
        number = self._places.source_of(target_offset - self.drift)
        # The rows of one record are consecutive: what follows them belongs to another record.
        if self.row_bits and number is not None and number >> self.row_bits == passed - 1 >> self.row_bits:
            return None
        return number

    def hole_end(self, number: int) -> int | None:
        """Return, for a record in no run, the offset of the first record of the next run; None after the last."""
        following = self._places.hole_of(number).following
        return None if following is None else following[1] + self.drift

    def hole_of(self, number: int) -> Hole:
        """Return the hole that a record in no run is in; its target offsets are those of the map, without drift."""
        return self._places.hole_of(number)

    def hole_at(self, target_offset: int) -> Hole:
        """Return the hole that a target record in no run is in; see `hole_of`."""
        return self._places.hole_at(target_offset - self.drift)

    def resume_at(self, number: int, place: int) -> tuple[int, int]:
        """Return where a later verification continues, given the next record and its target offset.

        Returns:
            A source offset and a target offset. Never between the rows of one record: all of them are made again.
        """
        offset = number >> self.row_bits
        row = number - (offset << self.row_bits)
        run = self._places.run_of(number) if row else None
        return offset, place - row if run is None else run.target_first + self.drift

    def skip_row(self, number: int) -> bool:
        """Note that a policy skipped one of several rows: the map stays right about the next record.

        Returns:
            True if a record of this range may have several rows; if not, nothing was noted.
        """
        if not self.row_bits:
            return False
        offset = number >> self.row_bits
        self._rows_skipped = self._rows_skipped + 1 if offset == self._rows_skipped_of else 1
        self._rows_skipped_of = offset
        return True
