"""The map of a range, walked forward: where a record of the source must stand, and whose place a target offset is.

`Places` and `RowPlaces` look up what the map says; `Placement` adds what the walk has come to know beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from mirror_lib.offsets import OffsetRun

Int64s = NDArray[np.int64]
#: No drift makes a place of it.
_UNKNOWN = -(1 << 62)
_SOURCE_FIRST = attrgetter("source_first")
_TARGET_FIRST = attrgetter("target_first")
#: Of the number of a row, those that tell rows of one record apart; the others are its source offset.
ROW_BITS = 20
#: Rows that one record may become, and still be told apart.
MOST_ROWS = 1 << ROW_BITS


class Places:
    """Look-ups in a list of runs, quick for offsets that ascend."""

    def __init__(self, runs: Sequence[OffsetRun]) -> None:
        self._runs = runs
        self._near = 0
        self._columns: tuple[Int64s, Int64s, Int64s] | None = None

    def places_of(self, source_offsets: Int64s) -> Int64s:
        """The target offset of each record; one below zero where the map does not know it."""
        if self._columns is None:
            # Most maps have few runs, and most ranges of them are never asked for here.
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
        """The source offset whose record the map places at a target offset."""
        after = bisect_right(self._runs, target_offset, key=_TARGET_FIRST)
        if after == 0 or target_offset >= self._runs[after - 1].target_next:
            return None
        run = self._runs[after - 1]
        return run.source_first + target_offset - run.target_first

    def hole_end(self, source_offset: int) -> int | None:
        """For a source offset in no run: the first target offset of the run behind it, None behind the last."""
        after = bisect_right(self._runs, source_offset, key=_SOURCE_FIRST)
        return self._runs[after].target_first if after < len(self._runs) else None


class RowPlaces:
    """The same where a record of the source may stand for several on the target, next to each other.

    The map knows where the first of them is. So each has a number, which stands in this class for a source offset: that
    of number `i` of those that were made of source offset `s` is `(s << ROW_BITS) + i`.
    """

    def __init__(self, runs: Sequence[OffsetRun]) -> None:
        self._runs = runs
        self._records = Places(runs)

    def places_of(self, rows: Int64s) -> Int64s:
        """As of `Places`."""
        places = self._records.places_of(rows >> ROW_BITS)
        return np.where(places < 0, _UNKNOWN, places + (rows & (MOST_ROWS - 1)))

    def run_of(self, row: int) -> OffsetRun | None:
        """The run of all that is made of a row's record."""
        offset = row >> ROW_BITS
        run = self._records.run_of(offset)
        if run is None:
            return None
        return OffsetRun(offset << ROW_BITS, run.target_first + offset - run.source_first, MOST_ROWS)

    def source_of(self, target_offset: int) -> int | None:
        """The row at a target offset, if it is made of the last mapped record at it or before."""
        after = bisect_right(self._runs, target_offset, key=_TARGET_FIRST)
        if after == 0:
            return None
        run = self._runs[after - 1]
        number = min(target_offset - run.target_first, run.count - 1)
        behind = target_offset - run.target_first - number
        return ((run.source_first + number) << ROW_BITS) + behind if behind < MOST_ROWS else None

    def hole_end(self, row: int) -> int | None:
        """As of `Places`."""
        return self._records.hole_end(row >> ROW_BITS)


class Placement:
    """Where the records of a range must stand on the target, by the map and by what was found on the way.

    Records are named by ascending numbers: source offsets, or rows where several may be made of one (see `RowPlaces`).
    """

    def __init__(self, runs: Sequence[OffsetRun], *, several: bool) -> None:
        """Begin as the map says.

        Args:
            several: whether several records may be made of one.
        """
        self.row_bits = ROW_BITS if several else 0
        self._places = RowPlaces(runs) if several else Places(runs)
        #: How far records of the target stand from where the map says: other than 0 after a loss or an addition.
        self.drift = 0
        #: Rows of this source offset that a policy left out, before those that are yet to come.
        self._rows_left_out, self._rows_left_out_of = 0, -1

    def run_of(self, number: int) -> OffsetRun | None:
        """The run that holds a record."""
        return self._places.run_of(number)

    def place(self, run: OffsetRun, number: int) -> int:
        """The target offset where a record of a run must stand."""
        place = run.target_first + number - run.source_first + self.drift
        if self._rows_left_out and number >> self.row_bits == self._rows_left_out_of:
            return place - self._rows_left_out
        return place

    def are_in_a_row(self, numbers: Int64s, first_place: int) -> bool:
        """Whether all of these must stand one behind the other, the first of them at a target offset."""
        places = self._places.places_of(numbers) + self.drift
        return bool((places == np.arange(first_place, first_place + len(numbers), dtype=np.int64)).all())

    def number_at(self, target_offset: int, *, passed: int) -> int | None:
        """Which record must stand at a target offset, if it is yet to come.

        Args:
            passed: all before this number was compared.
        """
        number = self._places.source_of(target_offset - self.drift)
        # All that is made of one record comes in a row: what stands behind it is not its.
        if self.row_bits and number is not None and number >> self.row_bits == passed - 1 >> self.row_bits:
            return None
        return number

    def hole_end(self, number: int) -> int | None:
        """For a record in no run: the place of the first one of the run behind it, None behind the last."""
        end = self._places.hole_end(number)
        return None if end is None else end + self.drift

    def resume_at(self, number: int, place: int) -> tuple[int, int]:
        """Where to go on later, when the next record and its place on the target are these.

        Returns:
            A source offset and a target offset. Not among what was made of one record: who goes on makes all of it.
        """
        offset = number >> self.row_bits
        row = number - (offset << self.row_bits)
        run = self._places.run_of(number) if row else None
        return offset, place - row if run is None else run.target_first + self.drift

    def leave_out(self, number: int) -> bool:
        """Note that a policy left out one of several rows: the map is right about the next record all the same.

        Returns:
            Whether there are several rows of one record in this range at all; if not, nothing was noted.
        """
        if not self.row_bits:
            return False
        offset = number >> self.row_bits
        self._rows_left_out = self._rows_left_out + 1 if offset == self._rows_left_out_of else 1
        self._rows_left_out_of = offset
        return True
