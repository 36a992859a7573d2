"""The ledger's tables. Migrations create them; a test holds both equal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """Timezone-aware UTC in Python, whatever the database keeps: SQLite has no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse naive times: nobody knows which instant they mean."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Say of what comes back that it is UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Root of the tables; constraint names are fixed so that later migrations can name them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012  # SQLAlchemy reads it from the class
        int: BigInteger(),
        float: Double(),
        str: String(),
        bytes: LargeBinary(),
        datetime: UtcDateTime(),
    }


class Run(Base):
    """See `rows.RunRow`."""

    __tablename__ = "run"
    __table_args__ = (
        CheckConstraint("state IN ('running', 'succeeded', 'partial', 'failed')", name="state"),
        Index(None, "flow", "started_at"),
        Index(None, "trigger"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    flow: Mapped[str]
    trigger: Mapped[str]
    state: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    rounds: Mapped[int]
    planned_partitions: Mapped[int]
    records: Mapped[int]
    bytes: Mapped[int]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    heartbeat_at: Mapped[datetime]


class PartitionRun(Base):
    """See `rows.PartitionRunRow`."""

    __tablename__ = "partition_run"
    __table_args__ = (CheckConstraint("state IN ('planned', 'copying', 'done', 'failed')", name="state"),)

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    round: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    target_topic: Mapped[str]
    start_offset: Mapped[int]
    end_offset: Mapped[int]
    source_next: Mapped[int]
    target_first: Mapped[int]
    target_next: Mapped[int]
    records: Mapped[int]
    bytes: Mapped[int]
    batches: Mapped[int]
    first_timestamp: Mapped[int | None]
    last_timestamp: Mapped[int | None]
    seconds: Mapped[float]
    state: Mapped[str]
    reason: Mapped[str | None]
    detail: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[datetime]


class Round(Base):
    """See `rows.RoundRow`."""

    __tablename__ = "round"
    __table_args__ = (Index(None, "flow", "began_at"), Index(None, "flow", "heaviest_bytes"))

    run_id: Mapped[str] = mapped_column(ForeignKey("run.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    flow: Mapped[str]
    began_at: Mapped[datetime]
    planning_seconds: Mapped[float]
    opening_seconds: Mapped[float]
    copying_seconds: Mapped[float]
    committing_seconds: Mapped[float]
    tasks: Mapped[int]
    partitions: Mapped[int]
    records: Mapped[int]
    bytes: Mapped[int]
    heaviest_bytes: Mapped[int]
    lag_records: Mapped[int]
    lag_bytes: Mapped[int | None]
    planned_records: Mapped[int]
    planned_bytes: Mapped[int | None]
    expected_bytes: Mapped[int | None]
    expected_seconds: Mapped[float | None]
    oldest_age_ms: Mapped[int | None]
    newest_age_ms: Mapped[int | None]
    committed_at: Mapped[datetime | None]


class Position(Base):
    """See `rows.PositionRow`. The run need not be one of this ledger's: positions come from Kafka."""

    __tablename__ = "position"
    __table_args__ = (CheckConstraint("state IN ('open', 'closed')", name="state"),)

    flow: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    offset: Mapped[int]
    target_offset: Mapped[int | None]
    state: Mapped[str]
    producer_id: Mapped[int | None]
    epoch: Mapped[int | None]
    run_id: Mapped[str | None]
    topic_id: Mapped[str | None]
    updated_at: Mapped[datetime]


class OffsetSegment(Base):
    """See `rows.SegmentRow`. Segments of a partition ascend on both sides and outlive the runs that wrote them."""

    __tablename__ = "offset_segment"

    flow: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    source_first: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    source_next: Mapped[int]
    target_first: Mapped[int]
    target_next: Mapped[int]
    records: Mapped[int]
    runs: Mapped[bytes | None]
    run_id: Mapped[str]


class RoutedRange(Base):
    """See `rows.RoutedRangeRow`."""

    __tablename__ = "routed_range"

    flow: Mapped[str] = mapped_column(primary_key=True)
    target_topic: Mapped[str] = mapped_column(primary_key=True)
    target_partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    stretch: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    own: Mapped[bool]
    source_first: Mapped[int]
    source_next: Mapped[int]
    target_first: Mapped[int]
    target_next: Mapped[int]
    records: Mapped[int]
    run_id: Mapped[str]


class RunLock(Base):
    """See `rows.RunLockRow`. A flow without a row is free."""

    __tablename__ = "run_lock"

    flow: Mapped[str] = mapped_column(primary_key=True)
    run_id: Mapped[str]
    holder: Mapped[str]
    acquired_at: Mapped[datetime]
    renewed_at: Mapped[datetime]
    lease_seconds: Mapped[float]


class RateClaim(Base):
    """See `rows.RateClaimRow`."""

    __tablename__ = "rate_claim"
    __table_args__ = (CheckConstraint("side IN ('read', 'write')", name="side"),)

    flow: Mapped[str] = mapped_column(primary_key=True)
    side: Mapped[str] = mapped_column(primary_key=True)
    cluster: Mapped[str]
    run_id: Mapped[str]
    wanted: Mapped[int | None]
    bytes_per_second: Mapped[int]
    claimed_at: Mapped[datetime]


class Gap(Base):
    """See `rows.GapRow`."""

    __tablename__ = "gap"
    __table_args__ = (
        CheckConstraint("state IN ('open', 'accepted', 'recopied', 'stopped')", name="state"),
        Index(None, "flow", "state"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    flow: Mapped[str]
    topic: Mapped[str]
    partition: Mapped[int]
    cause: Mapped[str]
    first_offset: Mapped[int]
    next_offset: Mapped[int]
    records: Mapped[int | None]
    first_time: Mapped[datetime | None]
    last_time: Mapped[datetime | None]
    topic_id: Mapped[str | None]
    detail: Mapped[str] = mapped_column(Text)
    run_id: Mapped[str | None]
    found_at: Mapped[datetime]
    state: Mapped[str]
    decided_by: Mapped[str | None]
    decided_at: Mapped[datetime | None]
    note: Mapped[str | None] = mapped_column(Text)


class ReplicatedAcl(Base):
    """See `rows.ReplicatedAclRow`."""

    __tablename__ = "replicated_acl"
    __table_args__ = (
        CheckConstraint("kind IN ('copied', 'staged')", name="kind"),
        CheckConstraint("state IN ('waiting', 'creating', 'created')", name="state"),
    )

    flow: Mapped[str] = mapped_column(primary_key=True)
    resource: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    pattern: Mapped[str] = mapped_column(primary_key=True)
    principal: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(primary_key=True)
    operation: Mapped[str] = mapped_column(primary_key=True)
    permission: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    state: Mapped[str]
    withdrawn: Mapped[bool]
    changed_at: Mapped[datetime]
    changed_by: Mapped[str]


class SyncTime(Base):
    """When a step with an interval of its own began the last time that it succeeded."""

    __tablename__ = "sync_time"

    flow: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[str] = mapped_column(primary_key=True)
    begun_at: Mapped[datetime]


class Backfill(Base):
    """See `rows.BackfillRow`."""

    __tablename__ = "backfill"

    flow: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    definition: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]


class Verification(Base):
    """See `rows.VerificationRow`."""

    __tablename__ = "verification"
    __table_args__ = (
        CheckConstraint("mode IN ('full', 'sample', 'recent')", name="mode"),
        CheckConstraint("verdict IN ('equal', 'different', 'unverifiable')", name="verdict"),
        Index(None, "flow", "topic", "partition", "finished_at"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    flow: Mapped[str]
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    target_topic: Mapped[str]
    mode: Mapped[str]
    verdict: Mapped[str]
    reason: Mapped[str | None]
    detail: Mapped[str | None] = mapped_column(Text)
    source_first: Mapped[int | None]
    source_next: Mapped[int | None]
    target_first: Mapped[int | None]
    target_next: Mapped[int | None]
    records: Mapped[int]
    bytes: Mapped[int]
    digest: Mapped[str | None]
    difference_count: Mapped[int]
    differences: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime]


class FlowObservation(Base):
    """See `observed_rows.FlowObservationRow`: the history of a flow's lag."""

    __tablename__ = "flow_observation"

    flow: Mapped[str] = mapped_column(primary_key=True)
    observed_at: Mapped[datetime] = mapped_column(primary_key=True)
    run_id: Mapped[str | None]
    partitions: Mapped[int]
    lagging: Mapped[int]
    stalled: Mapped[int]
    records_behind: Mapped[int]
    bytes_behind: Mapped[int | None]
    seconds_behind: Mapped[float | None]
    catch_up_seconds: Mapped[float | None]
    headroom_seconds: Mapped[float | None]
    outlook: Mapped[str]
    writes_per_second: Mapped[float | None]
    groups: Mapped[int | None]
    groups_behind: Mapped[int | None]
    read_again: Mapped[int | None]
    open_gaps: Mapped[int]


class PartitionObservation(Base):
    """See `observed_rows.PartitionObservationRow`."""

    __tablename__ = "partition_observation"

    flow: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    target_topic: Mapped[str]
    observed_at: Mapped[datetime]
    log_start: Mapped[int | None]
    log_end: Mapped[int | None]
    position: Mapped[int | None]
    bytes_behind: Mapped[int | None]
    behind_since: Mapped[datetime | None]
    catch_up_seconds: Mapped[float | None]
    headroom_seconds: Mapped[float | None]
    outlook: Mapped[str]
    reason: Mapped[str | None]
    detail: Mapped[str | None] = mapped_column(Text)


class GroupObservation(Base):
    """See `observed_rows.GroupObservationRow`."""

    __tablename__ = "group_observation"

    flow: Mapped[str] = mapped_column(primary_key=True)
    group: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    target_topic: Mapped[str]
    observed_at: Mapped[datetime]
    upstream: Mapped[int | None]
    goes_on_at: Mapped[int | None]
    target_committed: Mapped[int | None]
    read_again: Mapped[int | None]
    reason: Mapped[str | None]
    what: Mapped[str | None] = mapped_column(Text)


class HeartbeatObservation(Base):
    """See `observed_rows.HeartbeatObservationRow`."""

    __tablename__ = "heartbeat_observation"

    flow: Mapped[str] = mapped_column(primary_key=True)
    pair: Mapped[str] = mapped_column(primary_key=True)
    observed_at: Mapped[datetime]
    emitted_at: Mapped[datetime | None]
    verdict: Mapped[str]
    detail: Mapped[str | None] = mapped_column(Text)


class StepOutcome(Base):
    """See `observed_rows.StepOutcomeRow`."""

    __tablename__ = "step_outcome"

    flow: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[str] = mapped_column(primary_key=True)
    finished_at: Mapped[datetime]
    differences: Mapped[int]
    failed: Mapped[int]
    skipped: Mapped[str | None] = mapped_column(Text)
    summary: Mapped[dict[str, Any]] = mapped_column(JSON)


class Audit(Base):
    """See `observed_rows.AuditRow`."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "flow", "at"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    by: Mapped[str]
    action: Mapped[str]
    flow: Mapped[str | None]
    subject: Mapped[str]
    detail: Mapped[dict[str, Any]] = mapped_column(JSON)


class Cutover(Base):
    """See `cutover_rows.CutoverRow`."""

    __tablename__ = "cutover"
    __table_args__ = (Index(None, "flow", "created_at"),)

    name: Mapped[str] = mapped_column(primary_key=True)
    flow: Mapped[str]
    state: Mapped[str]
    step: Mapped[str]
    definition: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[datetime]
    created_by: Mapped[str]
    updated_at: Mapped[datetime]


class CutoverStep(Base):
    """See `cutover_rows.CutoverStepRow`."""

    __tablename__ = "cutover_step"

    cutover: Mapped[str] = mapped_column(ForeignKey("cutover.name", ondelete="CASCADE"), primary_key=True)
    step: Mapped[str] = mapped_column(primary_key=True)
    attempt: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[str]
    gates: Mapped[list[dict[str, Any]]] = mapped_column(JSON)
    facts: Mapped[dict[str, Any]] = mapped_column(JSON)
    by: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class Cut(Base):
    """See `cutover_rows.CutRow`."""

    __tablename__ = "cut"

    cutover: Mapped[str] = mapped_column(ForeignKey("cutover.name", ondelete="CASCADE"), primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partition: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    target_topic: Mapped[str]
    source_end: Mapped[int]
    target_end: Mapped[int]
    cut_at: Mapped[datetime]


class HandedOverTopic(Base):
    """See `cutover_rows.HandedOverRow`."""

    __tablename__ = "handed_over_topic"

    flow: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    target_topic: Mapped[str]
    cutover: Mapped[str]
    since: Mapped[datetime]
    by: Mapped[str]
