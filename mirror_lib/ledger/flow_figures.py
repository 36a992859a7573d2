"""What the ledger knows of a flow in figures, as metrics and health tell them: plain values."""

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
    """A flow's gaps of one cause, added up; `records` counts offsets where nobody knows the records."""

    gaps: int
    records: int
    open: int


class VerifyTotals(NamedTuple):
    """A flow's verifications, added up."""

    #: Verified partitions in which a difference was found, each time that one was found.
    mismatches: int
    #: Partitions that were compared at least once.
    partitions: int
    #: Those of them that were equal the last time, up to some offset.
    equal: int
    #: When the one that was compared longest ago was found equal.
    oldest_equal: datetime | None
    #: Offsets that are copied and were not compared yet.
    unverified: int
    #: When the partition was found equal that has waited longest with something new to compare; None when none has.
    waiting_since: datetime | None


class GroupTotals(NamedTuple):
    """A flow's consumer groups, added up; rows of topics that are not this flow's business do not count."""

    groups: int
    #: Groups with a reason on some partition.
    behind: int
    #: None where no map can tell of any of them, here and below.
    read_again: int | None
    skipped: int | None = None


class RunTimes(NamedTuple):
    """When the records of a run were written, and when they had arrived; of one of its rounds."""

    #: Epoch milliseconds.
    first_timestamp: int
    last_timestamp: int
    #: Of the partition that was done last.
    stored_at: datetime
    #: Of the slowest partition.
    seconds: float


@dataclass(frozen=True, slots=True)
class FlowFigures:
    """What the ledger knows of one flow."""

    flow: str
    #: The newest observation and the one before it.
    observed: FlowObservationRow | None = None
    observed_before: FlowObservationRow | None = None
    #: The newest run that has ended, and the newest of all.
    last_run: RunRow | None = None
    newest_run: RunRow | None = None
    #: Whether the newest run is under way; one that died without a word is not.
    is_running: bool = False
    #: Rounds of the newest run that copied something.
    times: tuple[RunTimes, ...] = ()
    #: The newest committed round that copied something.
    last_round: RoundRow | None = None
    runs: RunTotals = NO_RUNS
    #: By cause.
    gaps: Mapping[str, GapTotals] = field(default_factory=dict)
    verified: VerifyTotals | None = None
    #: Partitions by reason.
    stalled: Mapping[str, int] = field(default_factory=dict)
    #: Source offsets of these that are not copied, by reason.
    stalled_behind: Mapping[str, int] = field(default_factory=dict)
    #: Groups and partitions by reason.
    unsynced: Mapping[str, int] = field(default_factory=dict)
    groups: GroupTotals | None = None
    steps: tuple[StepOutcomeRow, ...] = ()
    heartbeats: tuple[HeartbeatObservationRow, ...] = ()
    #: Those under way, and the newest.
    cutovers: tuple[CutoverRow, ...] = ()
    #: The names of those of them that a process carries out, or rolls back.
    carried: frozenset[str] = frozenset()
    #: Those that are furthest behind; only where they are asked for.
    worst: tuple[PartitionObservationRow, ...] = ()
