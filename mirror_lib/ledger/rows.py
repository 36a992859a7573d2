"""What goes into the ledger and comes out of it: plain values, never objects bound to a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any


class RunState(StrEnum):
    """How far a run came."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    #: Some partitions were copied and some failed.
    PARTIAL = "partial"
    FAILED = "failed"


class PartitionRunState(StrEnum):
    """How far a run came with one partition."""

    PLANNED = "planned"
    COPYING = "copying"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run of a flow. All times are timezone-aware UTC."""

    id: str
    flow: str
    #: Who or what started it: `cli`, an Airflow DAG run, ...
    trigger: str
    #: One of `RunState`.
    state: str
    started_at: datetime
    finished_at: datetime | None = None
    rounds: int = 0
    #: Partitions that had something to copy.
    planned_partitions: int = 0
    records: int = 0
    bytes: int = 0
    #: `MirrorError.attributes()` of the first error.
    error: Mapping[str, Any] | None = None
    #: When it last said something about itself.
    heartbeat_at: datetime

    def has_died(self, lock: RunLockRow | None) -> bool:
        """Whether it is over although nothing says how it ended: a run holds its flow's lock as long as it lives.

        Args:
            lock: who holds the flow's lock now.
        """
        return self.state == RunState.RUNNING and (lock is None or lock.run_id != self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRunRow:
    """One partition's share of one round of a run: source [start_offset, source_next) of the planned end_offset."""

    run_id: str
    round: int
    topic: str
    partition: int
    target_topic: str
    start_offset: int
    end_offset: int
    #: The source offset to copy next.
    source_next: int
    target_first: int
    target_next: int
    records: int = 0
    bytes: int = 0
    batches: int = 0
    #: Epoch milliseconds, None when no record was copied.
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    seconds: float = 0.0
    #: One of `PartitionRunState`.
    state: str
    #: `MirrorError.reason` of a failure.
    reason: str | None = None
    #: The failure in words.
    detail: str | None = None
    #: When it was stored; filled in by the ledger.
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """One round of a run: what its plan held, what was expected of it, and what became of it.

    A round with nothing to copy has a row only when it is the first of its run. `committed_at` is None while a round
    is under way, and for ever when it ended before its commit.
    """

    run_id: str
    flow: str
    #: From 1.
    number: int
    began_at: datetime
    #: Asking both clusters and making the plan.
    planning_seconds: float
    #: Opening positions: claims, writers, the target's ends.
    opening_seconds: float = 0.0
    copying_seconds: float = 0.0
    #: Writing positions and offset-syncs, and the ledger's rows.
    committing_seconds: float = 0.0
    #: Bins that had something to copy: so many partitions could be copied at the same time.
    tasks: int = 0
    #: With something to copy.
    partitions: int = 0
    records: int = 0
    #: Of record batches written to the target.
    bytes: int = 0
    #: The bytes of the bin that had most of them: a round lasts as long as its longest bin.
    heaviest_bytes: int = 0
    #: Source offsets outstanding when it was planned; an offset need not hold a record.
    lag_records: int = 0
    #: Their bytes by the sizes of the logs; None where the source does not tell the sizes of all of them.
    lag_bytes: int | None = None
    #: What of that this round was to copy: all of it, or as much as a limit of the flow allows.
    planned_records: int = 0
    planned_bytes: int | None = None
    #: What was expected of it when it was planned; None where earlier rounds do not tell. The seconds are those of
    #: opening, copying and committing.
    expected_bytes: int | None = None
    expected_seconds: float | None = None
    #: From the time of its oldest record, and of its newest, to the commit, milliseconds; None when nothing was
    #: copied, never below 0.
    oldest_age_ms: int | None = None
    newest_age_ms: int | None = None
    committed_at: datetime | None = None

    @property
    def seconds(self) -> float:
        """What `expected_seconds` is about: all that comes after the plan."""
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
    """The clusters that the rows of a flow are about."""

    #: The flow itself; its backfills are between the same clusters.
    flow: str
    #: The ids that the clusters gave themselves.
    source_id: str
    target_id: str
    since: datetime
    #: Who decided that these are the clusters; None where the first run noted them.
    by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLockRow:
    """Who may run a flow now. The lease counts from `renewed_at`, by the database's clock."""

    flow: str
    run_id: str
    #: Host and process, for people and for noticing that it is gone: see `mirror_lib.ledger.tables.locks`.
    holder: str
    acquired_at: datetime
    renewed_at: datetime
    lease_seconds: float


class RateSide(StrEnum):
    """Which way of a cluster a limit is about."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateClaimRow:
    """What a run may take of a cluster's limit during a round."""

    flow: str
    side: RateSide
    cluster: str
    run_id: str
    #: Bytes per second that it could use; None: no matter how many.
    wanted: int | None
    #: What it has got.
    bytes_per_second: int
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class CopiedTopic:
    """A source topic that a flow has copied, and the target topic that it went to."""

    flow: str
    topic: str
    target_topic: str
    #: When a run noted it last.
    last: datetime


class GapState(StrEnum):
    """What was decided about a gap."""

    #: Nothing yet: the partition stands still, except where a policy has left single records out.
    OPEN = "open"
    #: Copying goes on behind it.
    ACCEPTED = "accepted"
    #: The partition was copied again from the start of the source.
    RECOPIED = "recopied"
    #: The partition is not replicated any more.
    STOPPED = "stopped"


#: `GapRow.cause` of what the source alone had when it was lost (`mirror cutover after-disaster`).
DISASTER = "disaster"
#: `GapRow.cause` of a position that somebody has set or forgotten.
POSITION_SET = "position-set"
#: `GapRow.cause` of deletions that a person has had written to the target (`mirror gaps delete-keys`).
DELETIONS_WRITTEN = "deletions-written"


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """Source records [first_offset, next_offset) that are not on the target, or not as the source has them now."""

    id: str
    flow: str
    topic: str
    partition: int
    #: `MirrorError.reason` of what was found: `retention-gap`, `source-truncated`, `source-recreated`, `poison`, ...
    cause: str
    first_offset: int
    next_offset: int
    #: How many records, None where nobody can know.
    records: int | None = None
    #: The time window of the records or, where they are gone, of their loss; None where it is not known.
    first_time: datetime | None = None
    last_time: datetime | None = None
    #: The source topic's id when it was found.
    topic_id: str | None = None
    #: What happened, in words.
    detail: str
    run_id: str | None = None
    found_at: datetime
    #: One of `GapState`.
    state: str = GapState.OPEN.value
    decided_by: str | None = None
    decided_at: datetime | None = None
    note: str | None = None


class AclKind(StrEnum):
    """Why the replicator knows an ACL of the target."""

    #: The source has it, rewritten for the target.
    COPIED = "copied"
    #: It grants writes, which wait for the cutover.
    STAGED = "staged"


class AclState(StrEnum):
    """Whether an ACL stands on the target because of the replicator."""

    #: It does not.
    WAITING = "waiting"
    #: It was about to be created when this was written: it may be there.
    CREATING = "creating"
    #: It was created.
    CREATED = "created"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicatedAclRow:
    """An ACL of the target that a flow created or keeps for the cutover. ACLs of anybody else have no row."""

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
    #: The source had it once and has it no more.
    withdrawn: bool = False
    changed_at: datetime
    #: The person or program that brought it to this state.
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncTimeRow:
    """When a step of a flow that has an interval of its own began the last time that it succeeded."""

    flow: str
    step: str
    begun_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRow:
    """What a backfill copies, as it was resolved when it was defined. How far it is, its positions in Kafka say."""

    flow: str
    name: str
    #: As `Backfill.to_dict` gives it.
    definition: Mapping[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VerificationRow:
    """What one verification found in one partition, or why it found nothing."""

    #: Of the verification, which has a row for each of its partitions.
    id: str
    flow: str
    topic: str
    partition: int
    target_topic: str
    #: One of `VerifyMode`: `full`, `sample`, `recent`, `state`.
    mode: str
    #: One of `Verdict`: `equal`, `different`, `unverifiable`.
    verdict: str
    reason: str | None = None
    detail: str | None = None
    #: From where to where it was compared on either side; of a sample the outermost offsets. None: nowhere.
    source_first: int | None = None
    source_next: int | None = None
    target_first: int | None = None
    target_next: int | None = None
    #: Records found equal.
    records: int = 0
    #: Of the source's log, as it was read.
    bytes: int = 0
    #: See `docs/verification.md`; None where a budget ended the comparison.
    digest: str | None = None
    difference_count: int = 0
    #: The first of them, as `Difference.to_dict` gives them.
    differences: list[dict[str, Any]] | None = None
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRow:
    """Up to where a partition was found equal, and when."""

    topic: str
    partition: int
    #: The next offset to verify on either side.
    source_next: int
    target_next: int
    verified_at: datetime
