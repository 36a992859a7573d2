"""What the ledger keeps of how flows stand: plain values, each with the moment at which it was true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowObservationRow:
    """How far behind a flow was at one moment. Durations in seconds; infinite means never, None not known."""

    flow: str
    observed_at: datetime
    #: The run after which it was observed.
    run_id: str | None = None
    #: All that the flow selects.
    partitions: int
    #: Those with something to copy.
    lagging: int
    #: Those that stand still for a reason that somebody has to look at.
    stalled: int
    #: Offsets to copy; compaction and transactions leave some without a record.
    records_behind: int
    bytes_behind: int | None = None
    #: The age of the oldest record that is not copied; 0 when everything is.
    seconds_behind: float | None = None
    catch_up_seconds: float | None = None
    #: Until retention may delete the first record that is not copied.
    headroom_seconds: float | None = None
    #: One of `observe.forecast.Outlook`, the worst of the partitions.
    outlook: str
    writes_per_second: float | None = None
    #: Consumer groups with a position in the flow's topics; None where they were not looked at.
    groups: int | None = None
    #: Groups that do not go on on the target exactly where they stand on the source.
    groups_behind: int | None = None
    #: Records that groups would read again if they moved now.
    read_again: int | None = None
    #: Records that groups would never read if they moved now.
    skipped: int | None = None
    open_gaps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionObservationRow:
    """How one partition stood when it was looked at last."""

    flow: str
    topic: str
    partition: int
    target_topic: str
    observed_at: datetime
    #: Offsets of the source; None where the cluster does not tell.
    log_start: int | None = None
    log_end: int | None = None
    #: The next source offset to copy; None before the first copy.
    position: int | None = None
    bytes_behind: int | None = None
    #: The timestamp of the first record that is not copied; None when everything is, or it is not known.
    behind_since: datetime | None = None
    catch_up_seconds: float | None = None
    headroom_seconds: float | None = None
    #: One of `observe.forecast.Outlook`.
    outlook: str
    #: `MirrorError.reason` of why it stands still.
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
    """Where one consumer group stood on one partition, as `sync.group_plan.GroupRow` has it."""

    flow: str
    group: str
    topic: str
    partition: int
    target_topic: str
    observed_at: datetime
    upstream: int | None = None
    goes_on_at: int | None = None
    target_committed: int | None = None
    read_again: int | None = None
    skipped: int | None = None
    #: One of `offsets.group_standing.GroupReason`; None when it is in sync.
    reason: str | None = None
    what: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatObservationRow:
    """What was found of the heartbeats between two clusters."""

    flow: str
    #: `source->target`, of which the flow's own is one.
    pair: str
    observed_at: datetime
    #: Of the newest heartbeat that arrived.
    emitted_at: datetime | None = None
    #: One of `sync.heartbeats`' verdicts.
    verdict: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcomeRow:
    """What a step beside the copy (topics, configs, ACLs, groups, heartbeats) found and did when it ran last."""

    flow: str
    #: The name of the DAG's task.
    step: str
    finished_at: datetime
    #: What differed between the clusters and had to be, or would have to be, changed.
    differences: int = 0
    #: What a cluster refused.
    failed: int = 0
    #: Why nothing was done.
    skipped: str | None = None
    #: The step's own counts, as it returns them.
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """What a person did, in the order of time."""

    id: str
    at: datetime
    by: str
    #: A word for the kind of act: `pause`, `run-now`, `verify`, `gap-accept`, `cutover-start`, ...
    action: str
    flow: str | None = None
    #: What it was done to: a DAG, a gap, a cutover.
    subject: str
    detail: Mapping[str, Any]
