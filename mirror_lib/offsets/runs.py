"""The exact offset map: the target offset of each source record, as runs of constant difference.

Copying keeps order and drops some offsets (markers, compacted records, aborted ones), so the map of a partition is a
list of runs that ascend on both sides. A partition without holes is one run, however long it is.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from mirror_lib.errors import OffsetMapError

_FORMAT = 1
_COLUMNS = 3
_WIDTH = 8
#: Maximum size of a decoded map in bytes: forty million runs, as many as a run of a flow can hold in memory.
_LARGEST = 1 << 30


class OffsetRun(NamedTuple):
    """Consecutive records on both sides: source offset `source_first + i` is target offset `target_first + i`."""

    source_first: int
    target_first: int
    #: Records of the run, at least one.
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed

    @property
    def source_next(self) -> int:
        """The source offset after the run."""
        return self.source_first + self.count

    @property
    def target_next(self) -> int:
        """The target offset after the run."""
        return self.target_first + self.count


class RunBuilder:
    """Collects runs in the order of acknowledgement and merges runs that continue each other."""

    def __init__(self) -> None:
        self._closed: list[OffsetRun] = []
        self._source_first = self._target_first = 0
        #: The source offset after everything that was added; 0 at the start.
        self.source_next = 0
        self._target_next = 0

    def add(self, source_first: int, target_first: int, count: int) -> None:
        """Record that `count` records from `source_first` on have the target offsets from `target_first` on.

        Raises:
            ValueError: the run is empty, or begins before the end of what was added so far.
        """
        if source_first == self.source_next and target_first == self._target_next and count > 0:
            self.source_next += count
            self._target_next += count
            return
        if count < 1 or source_first < self.source_next or target_first < self._target_next:
            raise ValueError(
                f"run of {count} records at source {source_first}, target {target_first} cannot follow "
                f"source {self.source_next}, target {self._target_next}"
            )
        self._close()
        self._source_first, self._target_first = source_first, target_first
        self.source_next = source_first + count
        self._target_next = target_first + count

    def drop_from(self, source_offset: int) -> list[OffsetRun]:
        """Forget the records from this source offset on; return them."""
        runs = list(self.runs())
        dropped: list[OffsetRun] = []
        while runs and runs[-1].source_next > source_offset:
            last = runs.pop()
            kept = max(0, source_offset - last.source_first)
            dropped.append(OffsetRun(last.source_first + kept, last.target_first + kept, last.count - kept))
            if kept:
                runs.append(OffsetRun(last.source_first, last.target_first, kept))
        self._closed = runs[:-1]
        last = runs[-1] if runs else OffsetRun(0, 0, 0)
        self._source_first, self._target_first = last.source_first, last.target_first
        self.source_next, self._target_next = last.source_next, last.target_next
        return dropped

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._closed) + len(self._current())

    def runs(self) -> tuple[OffsetRun, ...]:
        """All added records, in as few runs as possible."""
        return (*self._closed, *self._current())

    def target_of(self, source_offset: int) -> int | None:
        """The target offset of a record; None if it was not added."""
        runs = self._current()
        if source_offset < self._source_first:
            after = bisect_right(self._closed, source_offset, key=attrgetter("source_first"))
            runs = tuple(self._closed[max(0, after - 1) : after])
        return next(
            (run.target_first + source_offset - run.source_first for run in runs if source_offset < run.source_next),
            None,
        )

    def _close(self) -> None:
        self._closed.extend(self._current())

    def _current(self) -> tuple[OffsetRun, ...]:
        count = self.source_next - self._source_first
        return (OffsetRun(self._source_first, self._target_first, count),) if count else ()


def merge(runs: Iterable[OffsetRun]) -> tuple[OffsetRun, ...]:
    """The same map in as few runs as possible.

    Raises:
        ValueError: the runs do not ascend on both sides.
    """
    builder = RunBuilder()
    for run in runs:
        builder.add(*run)
    return builder.runs()


def translate(runs: Sequence[OffsetRun], source_offset: int) -> int:
    """Return the target offset where a reader continues that would continue at `source_offset` on the source.

    This is the offset of the record itself; in a hole that of the next record; at or after the end the offset after
    the last record.

    Raises:
        ValueError: there are no runs.
    """
    if not runs:
        raise ValueError("an empty list of runs cannot translate offsets")
    after = bisect_right(runs, source_offset, key=attrgetter("source_first"))
    if after == 0:
        return runs[0].target_first
    run = runs[after - 1]
    if source_offset < run.source_next:
        return run.target_first + source_offset - run.source_first
    return runs[after].target_first if after < len(runs) else run.target_next


def encode(runs: Sequence[OffsetRun]) -> bytes:
    """Encode runs for the ledger and for transport: one format byte, then compressed differences.

    A run is stored as its distances from the end of the previous run on both sides, and its count. Bytes of equal
    significance are stored next to each other, so that the mostly zero upper bytes compress well.

    Raises:
        ValueError: the runs do not ascend on both sides.
    """
    source_gaps, target_gaps, counts = array("Q"), array("Q"), array("Q")
    source_next = target_next = 0
    try:
        for source_first, target_first, count in runs:
            source_gaps.append(source_first - source_next)
            target_gaps.append(target_first - target_next)
            counts.append(count)
            source_next = source_first + count
            target_next = target_first + count
    except OverflowError as error:
        raise ValueError(
            f"runs are not in ascending order before source {source_first}, target {target_first}"
        ) from error
    return pack(b"".join(_planes(column) for column in (source_gaps, target_gaps, counts)))


def decode(data: bytes, *, largest: int = _LARGEST) -> tuple[OffsetRun, ...]:
    """The inverse of `encode`.

    Args:
        largest: maximum size of the decoded map in bytes; a run takes 24.

    Raises:
        OffsetMapError: the bytes are damaged, decode to too many bytes, or have a format unknown to this version.
    """
    body = unpack(data, largest=largest)
    size = len(body) // _COLUMNS
    columns = (_numbers(body[start : start + size]) for start in range(0, len(body), size)) if size else ((), (), ())
    runs: list[OffsetRun] = []
    source_next = target_next = 0
    for source_gap, target_gap, count in zip(*columns, strict=True):
        if count == 0:
            raise damage_error("a run without records")
        run = OffsetRun(source_next + source_gap, target_next + target_gap, count)
        runs.append(run)
        source_next, target_next = run.source_next, run.target_next
    return tuple(runs)


def pack(body: bytes) -> bytes:
    """Compress planes of differences, as `encode` stores them."""
    return bytes((_FORMAT,)) + zlib.compress(body)


def unpack(data: bytes, *, largest: int = _LARGEST) -> bytes:
    """The inverse of `pack`: the bytes of whole runs.

    Raises:
        OffsetMapError: the bytes are damaged, decode to too many bytes, or have a format unknown to this version.
    """
    if data[:1] != bytes((_FORMAT,)):
        raise OffsetMapError(
            f"an offset map starts with {data[:1].hex() or 'nothing'} instead of format {_FORMAT}.",
            action="If a newer version of this project wrote it, use that version.",
        )
    inflater = zlib.decompressobj()
    try:
        # The bytes may come from a Kafka record, where a few bytes can decompress to gigabytes.
        body = inflater.decompress(data[1:], largest + 1)
    except zlib.error as error:
        raise damage_error(str(error)) from error
    if len(body) > largest:
        raise damage_error(f"it is larger than {largest} bytes")
    if not inflater.eof or inflater.unused_data:
        raise damage_error("its length does not match its content")
    if len(body) % (_COLUMNS * _WIDTH):
        raise damage_error(f"{len(body)} bytes are not a whole number of runs")
    return body


def damage_error(why: str) -> OffsetMapError:
    """The error for inconsistent stored runs."""
    return OffsetMapError(
        f"an offset map is malformed: {why}.",
        action="Restore the ledger from a backup, or rebuild the map with `mirror map rebuild`; positions in Kafka are "
        "not affected.",
    )


def _planes(column: array[int]) -> bytes:
    raw = _little_endian(column).tobytes()
    return b"".join(raw[place::_WIDTH] for place in range(_WIDTH))


def _numbers(planes: bytes) -> array[int]:
    size = len(planes) // _WIDTH
    raw = bytearray(len(planes))
    for place in range(_WIDTH):
        raw[place::_WIDTH] = planes[place * size : (place + 1) * size]
    return _little_endian(array("Q", bytes(raw)))


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a partition's map: source [source_first, source_next) went to target [target_first, target_next).

    The ranges may be wider than their records: holes at either end are included.
    """

    source_first: int
    source_next: int
    target_first: int
    target_next: int
    records: int
    runs: tuple[OffsetRun, ...]

    @classmethod
    def of(
        cls,
        runs: Sequence[OffsetRun],
        *,
        source_first: int | None = None,
        source_next: int | None = None,
        target_first: int | None = None,
        target_next: int | None = None,
    ) -> Segment:
        """Build a segment from runs; ranges that are not given end at the outermost records.

        Raises:
            ValueError: the runs do not ascend or lie outside the ranges, or there are none and a range is not given.
        """
        merged = merge(runs)
        if not merged and None in (source_first, source_next, target_first, target_next):
            raise ValueError("a segment without records needs explicit ranges")
        segment = cls(
            source_first=merged[0].source_first if source_first is None else source_first,
            source_next=merged[-1].source_next if source_next is None else source_next,
            target_first=merged[0].target_first if target_first is None else target_first,
            target_next=merged[-1].target_next if target_next is None else target_next,
            records=sum(run.count for run in merged),
            runs=merged,
        )
        segment._check()
        return segment

    @classmethod
    def restore(
        cls, *, source_first: int, source_next: int, target_first: int, target_next: int, runs: bytes | None
    ) -> Segment:
        """A segment from its ranges and `encoded_runs`.

        Raises:
            OffsetMapError: the bytes are damaged or do not fit the ranges.
        """
        if runs is None:
            decoded: tuple[OffsetRun, ...] = (OffsetRun(source_first, target_first, source_next - source_first),)
        else:
            decoded = decode(runs)
        try:
            return cls.of(
                decoded,
                source_first=source_first,
                source_next=source_next,
                target_first=target_first,
                target_next=target_next,
            )
        except ValueError as error:
            raise damage_error(str(error)) from error

    @property
    def dense(self) -> bool:
        """True if every offset of both ranges holds a record, so that the ranges alone are sufficient."""
        return self.records == self.source_next - self.source_first == self.target_next - self.target_first

    @property
    def encoded_runs(self) -> bytes | None:
        """The runs as `encode` returns them; None for a dense segment."""
        return None if self.dense else encode(self.runs)

    def translate(self, source_offset: int) -> int:
        """As the function `translate`; after the last record, the result is `target_next`."""
        if not self.runs or source_offset >= self.runs[-1].source_next:
            return self.target_next
        return translate(self.runs, source_offset)

    def _check(self) -> None:
        source_fits = self.source_first <= self.source_next
        target_fits = self.target_first <= self.target_next
        if self.runs:
            first, last = self.runs[0], self.runs[-1]
            source_fits = self.source_first <= first.source_first and last.source_next <= self.source_next
            target_fits = self.target_first <= first.target_first and last.target_next <= self.target_next
        if not (source_fits and target_fits):
            raise ValueError(
                f"records do not fit source [{self.source_first}, {self.source_next}), "
                f"target [{self.target_first}, {self.target_next})"
            )
