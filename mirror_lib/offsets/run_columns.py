"""Runs of an offset map as numeric columns: for maps of millions of runs, in the same format as `runs.encode`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mirror_lib.offsets.runs import OffsetRun, damage_error, pack, unpack

Offsets = NDArray[np.int64]

_COLUMNS = 3
_WIDTH = 8


class StoredSegment(Protocol):
    """A segment of a partition's map as stored; for a dense one, the ranges are sufficient."""

    @property
    def source_first(self) -> int: ...
    @property
    def target_first(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def runs(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class RunColumns:
    """Runs that ascend on both sides; run `i` is `source_first[i]`, `target_first[i]`, `count[i]`."""

    source_first: Offsets
    target_first: Offsets
    count: Offsets

    @classmethod
    def of(cls, runs: Sequence[OffsetRun]) -> RunColumns:
        """Runs as columns, in as few runs as possible.

        Raises:
            ValueError: the runs do not ascend on both sides, or one is empty.
        """
        table = np.array(runs, dtype=np.int64).reshape(len(runs), _COLUMNS)
        columns = (np.ascontiguousarray(table[:, column]) for column in range(_COLUMNS))
        return _join(_check(cls(*columns)))

    @classmethod
    def of_segments(cls, segments: Iterable[StoredSegment]) -> RunColumns:
        """The runs of consecutive segments.

        Raises:
            OffsetMapError: stored runs are damaged, or the segments do not ascend.
        """
        parts = [
            cls._dense(segment) if segment.runs is None else cls.decode(segment.runs)
            for segment in segments
            if segment.records
        ]
        try:
            return cls.join(parts)
        except ValueError as error:
            raise damage_error(str(error)) from error

    @classmethod
    def join(cls, parts: Sequence[RunColumns]) -> RunColumns:
        """Consecutive parts as one, in as few runs as possible.

        Raises:
            ValueError: the parts do not ascend on both sides.
        """
        if not parts:
            return cls.of(())
        columns = (
            np.concatenate([part.source_first for part in parts]),
            np.concatenate([part.target_first for part in parts]),
            np.concatenate([part.count for part in parts]),
        )
        return _join(_check(cls(*columns)))

    @classmethod
    def decode(cls, data: bytes) -> RunColumns:
        """The inverse of `encode`, and of `runs.encode`.

        Raises:
            OffsetMapError: the bytes are damaged, or their format is not known to this version.
        """
        planes = np.frombuffer(unpack(data), dtype=np.uint8).reshape(_COLUMNS, _WIDTH, -1)
        numbers = np.ascontiguousarray(planes.transpose(0, 2, 1)).view("<i8").reshape(_COLUMNS, -1)
        source_gap, target_gap, count = (column.astype(np.int64) for column in numbers)
        found = cls(np.cumsum(source_gap + count) - count, np.cumsum(target_gap + count) - count, count)
        try:
            return _check(found)
        except ValueError as error:
            raise damage_error(str(error)) from error

    @classmethod
    def _dense(cls, segment: StoredSegment) -> RunColumns:
        return cls.of([OffsetRun(segment.source_first, segment.target_first, segment.records)])

    def encode(self) -> bytes:
        """The same bytes as `runs.encode`."""
        gaps = (
            np.diff(self.source_first, prepend=0) - np.concatenate(([0], self.count))[:-1],
            np.diff(self.target_first, prepend=0) - np.concatenate(([0], self.count))[:-1],
            self.count,
        )
        return pack(b"".join(np.ascontiguousarray(_bytes_of(column).T).tobytes() for column in gaps))

    def __len__(self) -> int:
        """The number of runs."""
        return len(self.count)

    @property
    def records(self) -> int:
        """The number of mapped records."""
        return int(self.count.sum())

    @property
    def source_next(self) -> Offsets:
        """The source offset after each run."""
        return self.source_first + self.count

    @property
    def target_next(self) -> Offsets:
        """The target offset after each run."""
        return self.target_first + self.count

    def runs(self) -> tuple[OffsetRun, ...]:
        """The runs as values."""
        columns = (self.source_first.tolist(), self.target_first.tolist(), self.count.tolist())
        return tuple(OffsetRun(*run) for run in zip(*columns, strict=True))

    def part(self, start: int, end: int) -> RunColumns:
        """The runs [start, end)."""
        return RunColumns(self.source_first[start:end], self.target_first[start:end], self.count[start:end])

    def before(self, *, source: int, target: int) -> RunColumns:
        """Only the records before both offsets."""
        room = np.minimum(source - self.source_first, target - self.target_first)
        count = np.minimum(self.count, room)
        kept = count > 0
        return RunColumns(self.source_first[kept], self.target_first[kept], count[kept])

    def behind(self, *, source: int, target: int) -> RunColumns:
        """Only the records at or after both offsets."""
        skip = np.maximum(np.maximum(source - self.source_first, target - self.target_first), 0)
        count = self.count - skip
        kept = count > 0
        return RunColumns((self.source_first + skip)[kept], (self.target_first + skip)[kept], count[kept])

    def inverse(self) -> RunColumns:
        """The map of the opposite direction."""
        return RunColumns(self.target_first, self.source_first, self.count)

    def holds(self, other: RunColumns) -> bool:
        """True if this map contains exactly the other map within the other's span."""
        if not len(other):
            return True
        at = np.searchsorted(self.source_first, other.source_first, side="right") - 1
        if not len(self) or (at < 0).any():
            return False
        same = other.source_first - other.target_first == (self.source_first - self.target_first)[at]
        inside = other.source_next <= self.source_next[at]
        first, last = int(other.source_first[0]), int(other.source_next[-1])
        within = np.minimum(self.source_next, last) - np.maximum(self.source_first, first)
        return bool((same & inside).all()) and int(np.maximum(within, 0).sum()) == other.records


def _join(runs: RunColumns) -> RunColumns:
    """Merge runs that continue each other."""
    if len(runs) == 0:
        return runs
    source_continues = runs.source_first[1:] == runs.source_next[:-1]
    continues = source_continues & (runs.target_first[1:] == runs.target_next[:-1])
    begins = np.flatnonzero(np.concatenate(([True], ~continues)))
    return RunColumns(runs.source_first[begins], runs.target_first[begins], np.add.reduceat(runs.count, begins))


def _check(runs: RunColumns) -> RunColumns:
    """Return the runs unchanged.

    Raises:
        ValueError: the runs do not ascend on both sides, or one is empty.
    """
    if len(runs):
        empty = (runs.count < 1).any()
        negative = runs.source_first[0] < 0 or runs.target_first[0] < 0
        back = (runs.source_first[1:] < runs.source_next[:-1]).any()
        back_on_target = (runs.target_first[1:] < runs.target_next[:-1]).any()
        if empty or negative or back or back_on_target:
            raise ValueError("runs are not in ascending order on both sides")
    return runs


def _bytes_of(column: Offsets) -> NDArray[np.uint8]:
    return np.ascontiguousarray(column.astype("<i8")).view(np.uint8).reshape(-1, _WIDTH)
