"""The tables of how flows stood when they were looked at, and of what people did. `models` registers them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from mirror_lib.ledger.metadata import Base


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
