"""Offsets of both logs for which an audit counts the records before them, and finds the place on the target. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: Offsets of records, or the first offset of records in a row.
Offsets = Sequence[int] | int


class Place(NamedTuple):
    """A place on the target."""

    offset: int
    #: Number of records before it.
    records: int


class Marks:
    """Ascending offsets of one log, while the walk passes them."""

    def __init__(self, offsets: Iterable[int]) -> None:
        self._offsets = sorted(set(offsets))
        self._at = 0
        #: Number of records before each offset that was passed.
        self.records: dict[int, int] = {}

    def passes(self, last: int, offsets: Offsets, before: int) -> list[int]:
        """Note that records are passed; return the marks among them.

        Args:
            last: the last offset of the records.
            offsets: the offsets of the records.
            before: number of records before them.
        """
        found = []
        while self._at < len(self._offsets) and self._offsets[self._at] <= last:
            mark = self._offsets[self._at]
            self.records[mark] = before + place_in(offsets, mark)
            found.append(mark)
            self._at += 1
        return found

    def rewind(self, offset: int) -> None:
        """Note that reading returns to an offset."""
        self._at = bisect_left(self._offsets, offset)

    def end(self, records: int) -> None:
        """Note the end of the log.

        Args:
            records: of the whole log.
        """
        for mark in self._offsets[self._at :]:
            self.records[mark] = records


def place_in(offsets: Offsets, mark: int) -> int:
    """Number of the records that come before an offset."""
    return max(mark - offsets, 0) if isinstance(offsets, int) else bisect_left(offsets, mark)


class Translation:
    """Finds for each mark of the source the target record that a consumer from there on reads first."""

    def __init__(self, source: Iterable[int], target: Iterable[int]) -> None:
        self.source, self.target = Marks(source), Marks(target)
        self._waiting: list[int] = []
        self._found: dict[int, Place] = {}

    def skip(self, *, of_source: bool, last: int, offsets: Offsets, before: int) -> None:
        """Note records that only one log has."""
        if of_source:
            self._waiting += self.source.passes(last, offsets, before)
        else:
            self.target.passes(last, offsets, before)

    def pair(self, source: tuple[int, Offsets, int], target: tuple[int, Offsets, int]) -> None:
        """Note pairs of equal records.

        Args:
            source: last offset, offsets and number of records before; of the target likewise.
        """
        self.target.passes(*target)
        _, offsets, before = target
        for mark in self._waiting:
            self._found[mark] = Place(_offset_of(offsets, 0), before)
        self._waiting = []
        for mark in self.source.passes(*source):
            place = place_in(source[1], mark)
            self._found[mark] = Place(_offset_of(offsets, place), before + place)

    def rewind(self, offset: int, *, of_source: bool) -> None:
        """Note that reading of a log returns to an offset."""
        (self.source if of_source else self.target).rewind(offset)
        if of_source:
            self._waiting = [mark for mark in self._waiting if mark < offset]

    def end(self, source_records: int, target_records: int, target_end: int) -> Positions:
        """The result at the ends of both logs."""
        self.source.end(source_records)
        self.target.end(target_records)
        places = {mark: self._found.get(mark, Place(target_end, target_records)) for mark in self.source.records}
        return Positions(dict(self.source.records), places, dict(self.target.records))


def _offset_of(offsets: Offsets, place: int) -> int:
    return offsets + place if isinstance(offsets, int) else offsets[place]


@dataclass(frozen=True, slots=True)
class Positions:
    """What was found about the marks of a partition."""

    #: Number of source records before each mark of the source.
    source: Mapping[int, int]
    #: Where a consumer that is at a mark of the source continues on the target.
    exact: Mapping[int, Place]
    #: Number of target records before each mark of the target.
    target: Mapping[int, int]
