"""Rows of the ledger: plain values, never objects bound to a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    """State of a run."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    #: Some partitions were copied, others failed.
    PARTIAL = "partial"
    FAILED = "failed"


class PartitionRunState(StrEnum):
    """State of one partition in a run."""

    PLANNED = "planned"
    COPYING = "copying"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run of a flow. All times are timezone-aware UTC."""

    id: str
    flow: str
    #: What started it: `cli`, an Airflow DAG run, ...
    trigger: str
    #: One of `RunState`.
    state: str
    started_at: datetime
    finished_at: datetime | None = None
    rounds: int = 0
    #: Partitions with something to copy.
    planned_partitions: int = 0
    records: int = 0
    bytes: int = 0
    #: `MirrorError.attributes()` of the first error.
    error: Mapping[str, Any] | None = None
    #: Time of the last heartbeat.
    heartbeat_at: datetime

    def has_died(self, lock: RunLockRow | None) -> bool:
        """Return true if the run has ended without recording it: a living run holds its flow's lock.

        Args:
            lock: the flow's lock now.
        """
        return self.state == RunState.RUNNING and (lock is None or lock.run_id != self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopicsRow:
    """Topics that a flow's source had at its last run."""

    flow: str
    #: A name in each line.
    topics: str
    #: When the row was stored; set by the ledger.
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRunRow:
    """One partition in one round of a run: source [start_offset, source_next) of the planned end_offset."""

    run_id: str
    round: int
    topic: str
    partition: int
    target_topic: str
    start_offset: int
    end_offset: int
    #: The next source offset to copy.
    source_next: int
    target_first: int
    target_next: int
    records: int = 0
    bytes: int = 0
    batches: int = 0
    #: Epoch milliseconds; None if no record was copied.
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    seconds: float = 0.0
    #: One of `PartitionRunState`.
    state: str
    #: `MirrorError.reason` of a failure.
    reason: str | None = None
    #: The error message of a failure.
    detail: str | None = None
    #: When the row was stored; set by the ledger.
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """One round of a run: its plan, its estimate, and its result.

    A round with nothing to copy has a row only if it is the first of its run. `committed_at` is None during a round,
    and stays None if the round ended before its commit.
    """

    run_id: str
    flow: str
    #: From 1.
    number: int
    began_at: datetime
    #: Reading the state of both clusters, and planning.
    planning_seconds: float
    #: Claims, producers, and the target's log ends.
    opening_seconds: float = 0.0
    copying_seconds: float = 0.0
    #: Writing positions, offset-syncs, and the ledger's rows.
    committing_seconds: float = 0.0
    #: Bins with something to copy: the number of copy tasks that can run in parallel.
    tasks: int = 0
    #: Partitions with something to copy.
    partitions: int = 0
    records: int = 0
    #: Of record batches written to the target.
    bytes: int = 0
    #: Bytes of the largest bin: a round takes as long as its longest bin.
    heaviest_bytes: int = 0
    #: Lag in source offsets when it was planned; an offset need not hold a record.
    lag_records: int = 0
    #: Lag in bytes, from log sizes; None if the source does not report the size of every log.
    lag_bytes: int | None = None
    #: Offsets to copy in this round: the whole lag, or less if the flow has a limit.
    planned_records: int = 0
    planned_bytes: int | None = None
    #: Estimates at planning; None without earlier rounds to estimate from. The seconds include opening, copying and
    #: committing.
    expected_bytes: int | None = None
    expected_seconds: float | None = None
    #: Milliseconds from the timestamps of the oldest and the newest record to the commit; None if nothing was copied,
    #: never negative.
    oldest_age_ms: int | None = None
    newest_age_ms: int | None = None
    committed_at: datetime | None = None

    @property
    def seconds(self) -> float:
        """Seconds after planning; `expected_seconds` is the estimate."""
        return self.opening_seconds + self.copying_seconds + self.committing_seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output and the report file."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: _plain(value) for name, value in values.items()} | {"seconds": round(self.seconds, 3)}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return round(value, 3) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPairRow:
    """The clusters that the rows of a flow belong to."""

    #: The flow; its backfills use the same clusters.
    flow: str
    #: The cluster ids.
    source_id: str
    target_id: str
    since: datetime
    #: Who decided that these are the clusters; None if the first run recorded them.
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLockRow:
    """The holder of a flow's run lock. The lease starts at `renewed_at`, by the database's clock."""

    flow: str
    run_id: str
    #: Host and process, for display and to detect a dead holder: see `mirror_lib.ledger.tables.locks`.
    holder: str
    acquired_at: datetime
    renewed_at: datetime
    lease_seconds: float


class RateSide(StrEnum):
    """The side of a cluster that a limit applies to."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateClaimRow:
    """A run's share of a cluster's limit during a round."""

    flow: str
    side: RateSide
    cluster: str
    run_id: str
    #: Bytes per second that the run could use; None means unlimited.
    wanted: int | None
    #: Bytes per second that the run was given.
    bytes_per_second: int
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class CopiedTopic:
    """A source topic that a flow has copied, and its target topic."""

    flow: str
    topic: str
    target_topic: str
    #: When a run last recorded it.
    last: datetime


class GapState(StrEnum):
    """The resolution of a gap."""

    #: None yet: the partition is stalled, unless a policy has skipped single records.
    OPEN = "open"
    #: Copying continues after the gap.
    ACCEPTED = "accepted"
    #: The partition was copied again from the start of the source, or continued after the flow had not selected it.
    RECOPIED = "recopied"
    #: The partition is no longer replicated.
    STOPPED = "stopped"


#: `GapRow.cause` of records that only the lost source had (`mirror cutover after-disaster`).
DISASTER = "disaster"
#: `GapRow.cause` of a topic that was deleted at the source, and was copied up to its last observed end.
SOURCE_DELETED = "source-deleted"
#: `GapRow.cause` of a position that an operator has set or forgotten.
POSITION_SET = "position-set"
#: `GapRow.cause` of deletions that an operator has written to the target (`mirror gaps delete-keys`).
DELETIONS_WRITTEN = "deletions-written"
#: `GapRow.cause` of source records that the target lacks, as a rebuilt map shows: nothing else is known.
NOT_COPIED = "not-copied"
#: `GapRow.cause` of records that only the source of a flow has: MM2 copied them there, and once more later.
REPEATED = "repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """Source records [first_offset, next_offset) that are missing on the target, or differ from the source's."""

    id: str
    flow: str
    topic: str
    partition: int
    #: `MirrorError.reason`: `retention-gap`, `source-truncated`, `source-recreated`, `poison`, ...
    cause: str
    first_offset: int
    next_offset: int
    #: Number of records; None if it cannot be known.
    records: int | None = None
    #: The time range of the records or, if they are gone, of their loss; None if it is not known.
    first_time: datetime | None = None
    last_time: datetime | None = None
    #: The source topic's id when the gap was found.
    topic_id: str | None = None
    #: Description of what happened.
    detail: str
    run_id: str | None = None
    found_at: datetime
    #: One of `GapState`.
    state: str = GapState.OPEN.value
    decided_by: str | None = None
    decided_at: datetime | None = None
    note: str | None = None


class AclKind(StrEnum):
    """Why the ledger has a row for an ACL of the target."""

    #: Copied from the source, rewritten for the target.
    COPIED = "copied"
    #: It allows writes, and waits for the cutover.
    STAGED = "staged"


class AclState(StrEnum):
    """State of an ACL on the target."""

    #: Not created.
    WAITING = "waiting"
    #: The row was written before the ACL is created: it may exist.
    CREATING = "creating"
    #: Created by the replicator.
    CREATED = "created"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedAclRow:
    """An ACL of the target that a flow created or keeps for the cutover. Other ACLs have no row."""

    flow: str
    #: One of `AclResource`, `AclPattern`, `AclPermission` and their operation, as `AclBinding` has them.
    resource: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    #: One of `AclKind`.
    kind: str
    #: One of `AclState`.
    state: str
    #: The source had it once and no longer has it.
    withdrawn: bool = False
    changed_at: datetime
    #: The operator or program that brought it into this state.
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTimeRow:
    """When the last successful run of a step with its own interval began."""

    flow: str
    step: str
    begun_at: datetime
