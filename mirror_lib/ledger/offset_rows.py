"""Rows of positions and of the offset map in the ledger: plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """A copy of a position record of the target cluster (Kafka wins if the two differ)."""

    flow: str
    topic: str
    partition: int
    #: The last replicated source offset, -1 before the first record.
    offset: int
    #: The next target offset that is expected; None if MM2 wrote the position.
    target_offset: int | None = None
    #: `open` while a run may write, else `closed`.
    state: str
    producer_id: int | None = None
    epoch: int | None = None
    run_id: str | None = None
    topic_id: str | None = None
    #: As in the position; None in rows of earlier versions.
    claim: int | None = None
    #: The copy that the partition's map, routes and verifications are about, as in the position.
    copy: str | None = None
    #: When the row was stored; set by the ledger.
    updated_at: datetime | None = None


class KnownPosition(NamedTuple):
    """What a plan compares of a row, for each partition of a flow and in each round. See `PositionRow`."""

    offset: int
    target_offset: int | None = None
    state: str = "closed"
    run_id: str | None = None
    claim: int | None = None
    copy: str | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow:
    """A segment of an offset map: source [source_first, source_next) went to target [target_first, target_next)."""

    flow: str
    topic: str
    partition: int
    source_first: int
    source_next: int
    target_first: int
    target_next: int
    records: int
    #: The runs as `mirror_lib.offsets.runs.encode` returns them; None for a single run without holes.
    runs: bytes | None = None
    #: The run that wrote the newest part.
    run_id: str

    def __post_init__(self) -> None:
        width = self.source_next - self.source_first
        target_width = self.target_next - self.target_first
        fits = self.records <= width and self.records <= target_width
        if self.runs is None:
            fits = self.records == width == target_width
        if not fits or self.records < 0:
            raise ValueError(
                f"{self.records} records {'with' if self.runs is not None else 'without'} holes do not fit "
                f"source [{self.source_first}, {self.source_next}), target [{self.target_first}, {self.target_next})"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCountRow:
    """Records of transactions among the copied records of a partition; only of partitions that have some."""

    flow: str
    topic: str
    partition: int
    #: The copy that is counted, as in the position.
    copy: str | None = None
    #: Source offset up to which they are counted.
    counted_to: int
    #: Records of aborted transactions.
    aborted: int
    #: Records of transactions that had not ended when they were copied.
    undecided: int
    #: Offsets that are not counted, because an interrupted run has copied them.
    uncounted: int
    #: The transactions that had not ended: producer id, first source offset, records.
    open: Sequence[Sequence[int]]
    #: When the row was stored; set by the ledger.
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSize:
    """The stored size of one partition's offset map."""

    flow: str
    topic: str
    partition: int
    #: Rows of the table.
    segments: int
    records: int
    source_first: int
    source_next: int
    target_first: int
    target_next: int
    #: Sum of all values in those rows, without the database's overhead per row.
    bytes: int

    @property
    def bytes_per_million_records(self) -> float:
        """Bytes for a million records of this partition."""
        return self.bytes / self.records * 1e6
