"""What transforms make of a source, and the log that should hold it, for comparisons without brokers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from mirror_lib.features.transforms.arrow.rows import HEADERS_TYPE
from mirror_lib.features.transforms.rows.columns import RowColumns
from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.compare.expected_offsets import ROW_BITS
from mirror_lib.features.verify.findings import RangeOutcome
from mirror_lib.features.verify.model import PartitionCheck
from mirror_lib.features.verify.transformed.compare_rows import RowNumbers
from mirror_lib.offsets.runs import OffsetRun, merge
from tests.support.records.logs import numbered, spans
from tests.support.records.record_batches import SourceRecord


@dataclass(frozen=True)
class Made:
    """What is made of a source.

    Attributes:
        sources: for each row the source offset that it comes from.
        rows: their contents, with offsets as on the target.
    """

    sources: tuple[int, ...]
    rows: tuple[SourceRecord, ...]
    runs: tuple[OffsetRun, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def target_first(self) -> int:
        return self.rows[0].offset

    def without(self, sources: set[int]) -> Made:
        """The same, but for the rows of some source offsets that the source has no more."""
        left = [number for number, source in enumerate(self.sources) if source not in sources]
        return replace(
            self, sources=tuple(self.sources[each] for each in left), rows=tuple(self.rows[each] for each in left)
        )


def made(counts: Sequence[int], *, source_first: int = 0, target_first: int = 0) -> Made:
    """A source of which each record becomes so many rows, all of which are different."""
    sources = [source_first + number for number, count in enumerate(counts) for _ in range(count)]
    places: list[OffsetRun] = []
    at = target_first
    for number, count in enumerate(counts):
        if count:
            places.append(OffsetRun(source_first + number, at, 1))
        at += count
    return Made(tuple(sources), tuple(numbered(len(sources), first=target_first)), merge(places))


def rows_of(records: Sequence[SourceRecord], sources: Sequence[int]) -> RowColumns:
    """Rows as they come from Spark."""
    headers = [[{"key": name, "value": value} for name, value in each.headers] or None for each in records]
    return RowColumns(
        pa.array([each.key for each in records], pa.binary()),
        pa.array([each.value for each in records], pa.binary()),
        pa.array(headers, HEADERS_TYPE),
        pa.array([each.timestamp * 1000 for each in records], pa.timestamp("us", tz="UTC")),
        np.array(sources, dtype=np.int64),
    )


def compared_rows(
    check: PartitionCheck, given: Made, target: bytes, *, rows_at_once: int = 1_000, ranges_at_once: int = 1_000
) -> RangeOutcome:
    """The whole comparison of what was made with a log, with so much fed at a time."""
    (range_,) = check.ranges
    comparer = RangeComparer(check, range_)
    numbers = RowNumbers(several=check.several)
    whole = rows_of(given.rows, given.sources) if given.rows else None
    theirs, fed = spans(target), 0
    starts = iter(range(0, len(given), rows_at_once))
    comparer.walk()
    while not comparer.finished:
        assert comparer.needs_source or comparer.needs_target
        if comparer.needs_target:
            part = theirs[fed : fed + ranges_at_once]
            fed += len(part)
            comparer.feed_target(part, part[-1].next_offset if part else comparer.target.end)
        elif (start := next(starts, None)) is not None and whole is not None:
            block = numbers.block(whole.part(start, min(start + rows_at_once, len(whole))))
            comparer.feed_source((block,), block.next_offset)
        else:
            comparer.feed_source((), range_.source_next << (ROW_BITS if check.several else 0))
        comparer.walk()
    return comparer.outcome()
