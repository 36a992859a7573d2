"""Rows of the ledger about one partition of a flow; tests name only the values that matter to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from mirror_lib.features.verify.tables import VerificationRow
from mirror_lib.ledger.observed_rows import FlowObservationRow, GroupObservationRow, PartitionObservationRow
from mirror_lib.ledger.offset_rows import SegmentRow, TransactionCountRow
from mirror_lib.ledger.rows import GapRow, PartitionRunRow, RoundRow
from mirror_lib.offsets.runs import OffsetRun, Segment

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
FLOW = "a->b"
_PLACE: dict[str, Any] = {"topic": "orders", "partition": 0}
_TARGET: dict[str, Any] = {"target_topic": "a.orders"}


def partition_run(run_id: str, partition: int = 0, **values: Any) -> PartitionRunRow:
    """A partition that a run has copied up to offset 10."""
    place = {**_PLACE, **_TARGET, "partition": partition, "round": 1, "state": "done"}
    offsets = {"start_offset": 0, "end_offset": 10, "source_next": 10, "target_first": 0, "target_next": 10}
    return PartitionRunRow(run_id=run_id, **{**place, **offsets, **values})


def round_row(run_id: str, **values: Any) -> RoundRow:
    """The first round of a run, which began at noon."""
    settings = {"flow": "A->B", "number": 1, "began_at": NOON, "planning_seconds": 0.5}
    return RoundRow(run_id=run_id, **{**settings, **values})


def transaction_count(**values: Any) -> TransactionCountRow:
    """A copy without records of transactions that were aborted or had not ended."""
    counts = {"counted_to": 10, "aborted": 0, "undecided": 0, "uncounted": 0, "open": ()}
    return TransactionCountRow(**{"flow": FLOW, **_PLACE, **counts, **values})


def segment(source_first: int, target_first: int, count: int, *, run_id: str = "r1", **values: Any) -> SegmentRow:
    """A part of the offset map without holes."""
    return segment_of([OffsetRun(source_first, target_first, count)], run_id=run_id, **values)


def segment_of(runs: Sequence[OffsetRun], *, run_id: str = "r1", **values: Any) -> SegmentRow:
    """A part of the offset map with these runs."""
    made = Segment.of(runs)
    offsets = {
        "source_first": made.source_first,
        "source_next": made.source_next,
        "target_first": made.target_first,
        "target_next": made.target_next,
    }
    place = {"flow": FLOW, **_PLACE, "records": made.records, "runs": made.encoded_runs}
    return SegmentRow(run_id=run_id, **{**place, **offsets, **values})


def gap(**values: Any) -> GapRow:
    """An open gap of 20 offsets that retention has left."""
    offsets = {"first_offset": 10, "next_offset": 30}
    settings = {"id": "g1", "flow": FLOW, "cause": "retention-gap", "detail": "", "found_at": NOON}
    return GapRow(**{**settings, **_PLACE, **offsets, **values})


def verification(**values: Any) -> VerificationRow:
    """A whole comparison that found offsets 0 to 49 equal."""
    offsets = {"source_first": 0, "source_next": 50, "target_first": 0, "target_next": 50}
    settings = {"id": "v1", "flow": FLOW, "mode": "full", "verdict": "equal", "started_at": NOON, "finished_at": NOON}
    return VerificationRow(**{**settings, **_PLACE, **_TARGET, **offsets, **values})


def observed_flow(**values: Any) -> FlowObservationRow:
    """A flow of two partitions, one of which lags."""
    counts = {"partitions": 2, "lagging": 1, "stalled": 0, "records_behind": 0}
    return FlowObservationRow(**{"flow": FLOW, "observed_at": NOON, "outlook": "ok", **counts, **values})


def observed_partition(**values: Any) -> PartitionObservationRow:
    """A partition of which nothing but its existence is known."""
    settings = {"flow": FLOW, "observed_at": NOON, "outlook": "ok"}
    return PartitionObservationRow(**{**settings, **_PLACE, **_TARGET, **values})


def observed_group(group: str, partition: int = 0, **values: Any) -> GroupObservationRow:
    """A group that is in sync."""
    place = {"flow": FLOW, **_PLACE, **_TARGET, "partition": partition}
    return GroupObservationRow(group=group, **{**place, "observed_at": NOON, **values})
