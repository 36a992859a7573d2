"""Figures of a flow from the ledger, for metrics and health: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from mirror_lib.ledger.cutover_rows import CutoverRow
from mirror_lib.ledger.observed_rows import (
    FlowObservationRow,
    HeartbeatObservationRow,
    PartitionObservationRow,
    StepOutcomeRow,
)
from mirror_lib.ledger.rows import RoundRow, RunRow


class RunTotals(NamedTuple):
    """All runs of a flow, added up."""

    runs: int
    failed: int
    records: int
    bytes: int
    last_success: datetime | None


NO_RUNS = RunTotals(0, 0, 0, 0, None)


class GapTotals(NamedTuple):
    """A flow's gaps of one cause, added up; where the number of records is unknown, `records` counts offsets."""

    gaps: int
    records: int
    open: int


class UncommittedTotals(NamedTuple):
    """Records on a flow's target whose transactions were aborted, or had not ended when they were copied."""

    aborted: int = 0
    open: int = 0


NOTHING_UNCOMMITTED = UncommittedTotals()


class VerifyTotals(NamedTuple):
    """A flow's verifications, added up."""

    #: Partition comparisons that found a difference.
    mismatches: int
    #: Partitions that were compared at least once.
    partitions: int
    #: Partitions whose last comparison found them equal up to some offset.
    equal: int
    #: When the partition with the oldest comparison was found equal.
    oldest_equal: datetime | None
    #: Offsets that are copied and not compared yet.
    unverified: int
    #: The oldest `equal` result among partitions with offsets to compare; None if there are none.
    waiting_since: datetime | None


class GroupTotals(NamedTuple):
    """A flow's consumer groups, added up; rows with a reason in `NOT_THIS_FLOWS` do not count."""

    groups: int
    #: Groups with a reason on some partition.
    behind: int
    #: None, here and below, if no group has a usable offset map.
    duplicates: int | None
    skipped: int | None = None


class RunTimes(NamedTuple):
    """When the records of one round of a run were written, and when they arrived."""

    #: Epoch milliseconds.
    first_timestamp: int
    last_timestamp: int
    #: Of the partition that finished last.
    stored_at: datetime
    #: Of the slowest partition.
    seconds: float


@dataclass(frozen=True, slots=True)
class FlowFigures:
    """Everything that the ledger knows of one flow."""

    flow: str
    #: The latest observation and the one before it.
    observed: FlowObservationRow | None = None
    observed_before: FlowObservationRow | None = None
    #: The latest finished run, and the latest run.
    last_run: RunRow | None = None
    newest_run: RunRow | None = None
    #: True if the latest run is alive; false for a run that died without recording its end.
    is_running: bool = False
    #: Rounds of the latest run that copied records.
    times: tuple[RunTimes, ...] = ()
    #: The latest committed round that copied records.
    last_round: RoundRow | None = None
    runs: RunTotals = NO_RUNS
    #: By cause.
    gaps: Mapping[str, GapTotals] = field(default_factory=dict)
    uncommitted: UncommittedTotals = NOTHING_UNCOMMITTED
    verified: VerifyTotals | None = None
    #: Partitions by reason.
    stalled: Mapping[str, int] = field(default_factory=dict)
    #: Source offsets of stalled partitions that are not copied, by reason.
    stalled_behind: Mapping[str, int] = field(default_factory=dict)
    #: Groups and partitions by reason.
    unsynced: Mapping[str, int] = field(default_factory=dict)
    groups: GroupTotals | None = None
    steps: tuple[StepOutcomeRow, ...] = ()
    heartbeats: tuple[HeartbeatObservationRow, ...] = ()
    #: The latest cutovers, latest first.
    cutovers: tuple[CutoverRow, ...] = ()
    #: Names of the cutovers in `cutovers` that a process is running or rolling back.
    carried: frozenset[str] = frozenset()
    #: Partitions with the most lag; only if requested.
    worst: tuple[PartitionObservationRow, ...] = ()
