"""Operations on rows of the offset map: compare, cut and merge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mirror_lib.errors import OffsetMapError
from mirror_lib.ledger.offset_rows import SegmentRow
from mirror_lib.offsets.run_columns import RunColumns

#: A row with this number of records or encoded bytes is full: rewriting or cutting it takes milliseconds.
FULL_RECORDS, FULL_BYTES = 1_000_000, 64 * 1024
#: A row that one run wrote and that is larger than this is not merged.
_HUGE_BYTES = 16 * FULL_BYTES


@dataclass(frozen=True, slots=True)
class RowSize:
    """A row without its runs."""

    source_first: int
    records: int
    bytes: int
    #: As of `directions.MapPart`.
    by_opposite: bool = False

    @property
    def small(self) -> bool:
        """True if a partition should not have many rows of this size."""
        return self.records < FULL_RECORDS and self.bytes < FULL_BYTES


def columns_of(row: SegmentRow) -> RunColumns:
    """A row's runs.

    Raises:
        OffsetMapError: the runs are damaged.
    """
    return RunColumns.of_segments((row,))


def holds(old: SegmentRow, row: SegmentRow) -> bool:
    """True if an older row contains exactly what a new one says; false for a damaged row."""
    if row.source_first < old.source_first or old.source_next < row.source_next:
        return False
    try:
        return columns_of(old).holds(columns_of(row))
    except OffsetMapError:
        return False


def cut(old: SegmentRow, *, source: int, target: int) -> SegmentRow | None:
    """The part of a row before both offsets; None if it is empty, or the row is damaged."""
    try:
        kept = columns_of(old).before(source=source, target=target)
    except OffsetMapError:
        return None
    return of_columns(kept, like=old) if len(kept) else None


def of_columns(columns: RunColumns, *, like: SegmentRow) -> SegmentRow:
    """A row of these runs, with partition and run of another row."""
    return replace(
        like,
        source_first=int(columns.source_first[0]),
        source_next=int(columns.source_next[-1]),
        target_first=int(columns.target_first[0]),
        target_next=int(columns.target_next[-1]),
        records=columns.records,
        runs=None if len(columns) == 1 else columns.encode(),
    )


def merge(rows: Sequence[SegmentRow]) -> SegmentRow:
    """Consecutive rows as one; its run is the latest.

    Raises:
        OffsetMapError: a row is damaged, or the rows do not ascend.
    """
    return of_columns(RunColumns.of_segments(rows), like=rows[-1])


def groups_to_merge(rows: Iterable[RowSize]) -> list[list[RowSize]]:
    """Groups of neighbours to merge into one row. A group ends when it is full, and where the direction changes.

    Full rows are rewritten only together with a small one before them; very large rows never.
    """
    groups: list[list[RowSize]] = []
    group: list[RowSize] = []
    for row in rows:
        if row.bytes >= _HUGE_BYTES:
            groups.append(group)
            group = []
            continue
        if group and group[-1].by_opposite != row.by_opposite:
            groups.append(group)
            group = []
        group.append(row)
        if sum(each.records for each in group) >= FULL_RECORDS or sum(each.bytes for each in group) >= FULL_BYTES:
            groups.append(group)
            group = []
    groups.append(group)
    return [group for group in groups if len(group) > 1]
