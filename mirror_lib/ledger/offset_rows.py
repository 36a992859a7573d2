"""What the ledger keeps of offsets: how far partitions are, and which of the source went where on the target."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionRow:
    """A copy of a position record of the target cluster (Kafka wins when the two differ)."""

    flow: str
    topic: str
    partition: int
    #: The last replicated source offset, -1 before the first record.
    offset: int
    #: The offset expected next on the target, None when MM2 wrote the position.
    target_offset: int | None = None
    #: `open` while a run may be writing, else `closed`.
    state: str
    producer_id: int | None = None
    epoch: int | None = None
    run_id: str | None = None
    topic_id: str | None = None
    #: When it was stored; filled in by the ledger.
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow:
    """A stretch of an offset map: source [source_first, source_next) went to target [target_first, target_next)."""

    flow: str
    topic: str
    partition: int
    source_first: int
    source_next: int
    target_first: int
    target_next: int
    records: int
    #: The runs as `mirror_lib.offsets.runs.encode` gives them; None when it is one run without holes.
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
class RoutedRangeRow:
    """What transforms made of source [source_first, source_next) for one target partition stands there within
    [target_first, target_next), maybe among what they made of other source partitions.

    A source partition whose transforms choose where records go has such rows for every target partition that it wrote
    to, and always for its own: where those reach, all that it sent elsewhere is known.
    """

    flow: str
    target_topic: str
    target_partition: int
    #: Rows of one target partition with the same number were written by the same runs; assigned by the ledger.
    stretch: int = 0
    topic: str
    partition: int
    #: Whether it is the partition that the source partition is copied to where nothing is chosen.
    own: bool
    source_first: int
    source_next: int
    target_first: int
    target_next: int
    #: That were written there, by the account of the runs.
    records: int
    #: The run that wrote the newest part.
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSize:
    """What the ledger stores of one partition's offset map."""

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
    #: Of all values in those rows; what the database adds to a row is not counted.
    bytes: int

    @property
    def bytes_per_million_records(self) -> float:
        """What a million records of this partition take."""
        return self.bytes / self.records * 1e6
