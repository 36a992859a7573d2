"""The ledger's tables. Migrations create them; a test holds both equal."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

# Whoever asks for the tables is to get all of them: they are registered when their module is imported.
from mirror_lib.ledger import observed_models  # noqa: F401
from mirror_lib.ledger.metadata import Base

#: All tables of the ledger, those of `observed_models` among them.
METADATA = Base.metadata


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
    """See `offset_rows.PositionRow`. The run need not be one of this ledger's: positions come from Kafka."""

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
    """See `offset_rows.SegmentRow`.

    Segments of a partition ascend on both sides and outlive the runs that wrote them.
    """

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
    """See `offset_rows.RoutedRangeRow`."""

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


class ClusterPair(Base):
    """See `rows.ClusterPairRow`."""

    __tablename__ = "cluster_pair"

    flow: Mapped[str] = mapped_column(primary_key=True)
    source_id: Mapped[str]
    target_id: Mapped[str]
    since: Mapped[datetime]
    by: Mapped[str | None]


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
