"""Rows of observations in the ledger: plain values, each with its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowObservationRow:
    """The lag of a flow at one moment. Durations in seconds; infinite means never, None not known."""

    flow: str
    observed_at: datetime
    #: The run after which it was observed.
    run_id: str | None = None
    #: All selected partitions.
    partitions: int
    #: Partitions with lag.
    lagging: int
    #: Stalled partitions.
    stalled: int
    #: Lag in offsets; compaction and transactions leave some offsets without a record.
    records_behind: int
    bytes_behind: int | None = None
    #: The age of the oldest record that is not copied; 0 without lag.
    seconds_behind: float | None = None
    catch_up_seconds: float | None = None
    #: Seconds until retention may delete the first record that is not copied.
    headroom_seconds: float | None = None
    #: One of `observe.outlooks.Outlook`, the worst of the partitions.
    outlook: str
    writes_per_second: float | None = None
    #: Consumer groups with a position in the flow's topics; None if they were not observed.
    groups: int | None = None
    #: Groups that are not in sync.
    groups_behind: int | None = None
    #: Duplicates on failover (records).
    duplicates: int | None = None
    #: Records skipped on failover.
    skipped: int | None = None
    open_gaps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionObservationRow:
    """One partition, as last observed."""

    flow: str
    topic: str
    partition: int
    target_topic: str
    observed_at: datetime
    #: Source offsets; None if the cluster does not report them.
    log_start: int | None = None
    log_end: int | None = None
    #: The next source offset to copy; None before the first copy.
    position: int | None = None
    bytes_behind: int | None = None
    #: The timestamp of the first record that is not copied; None without lag, or if it is not known.
    behind_since: datetime | None = None
    catch_up_seconds: float | None = None
    headroom_seconds: float | None = None
    #: One of `observe.outlooks.Outlook`.
    outlook: str
    #: `MirrorError.reason` of why it is stalled.
    reason: str | None = None
    detail: str | None = None

    @property
    def records_behind(self) -> int:
        """Offsets to copy."""
        if self.log_end is None:
            return 0
        begins = self.position if self.position is not None else self.log_start or 0
        return max(self.log_end - begins, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObservationRow:
    """The position of one consumer group on one partition, as in `sync.groups.plan.GroupRow`."""

    flow: str
    group: str
    topic: str
    partition: int
    target_topic: str
    observed_at: datetime
    upstream: int | None = None
    target_offset: int | None = None
    target_committed: int | None = None
    duplicates: int | None = None
    skipped: int | None = None
    #: One of `offsets.group_standing.GroupReason`; None when it is in sync.
    reason: str | None = None
    what: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatObservationRow:
    """The state of the heartbeats between two clusters."""

    flow: str
    #: `source->target`; the flow's own pair is one of several.
    pair: str
    observed_at: datetime
    #: Time of the latest heartbeat that arrived.
    emitted_at: datetime | None = None
    #: One of `sync.heartbeats.rules.HeartbeatState`.
    verdict: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcomeRow:
    """The last outcome of a sync step (topics, configs, ACLs, groups, heartbeats)."""

    flow: str
    #: The name of the DAG's task.
    step: str
    finished_at: datetime
    #: Differences between the clusters that the step changed, or would change.
    differences: int = 0
    #: Changes that a cluster rejected.
    failed: int = 0
    #: Why the step did nothing.
    skipped: str | None = None
    #: The step's own counts, as it returns them.
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """An entry of the audit log: one action of an operator."""

    id: str
    at: datetime
    by: str
    #: The kind of action: `pause`, `run-now`, `verify`, `gap-accept`, `cutover-start`, ...
    action: str
    flow: str | None = None
    #: The DAG, gap or cutover that the action changed.
    subject: str
    detail: Mapping[str, Any]
