"""Observations of flows, the audit log, and cutovers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _words(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text(), nullable=True)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def _real(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=True)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _json(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.JSON(), nullable=nullable)


def upgrade() -> None:
    """To this version."""
    _observations()
    op.create_table(
        "audit",
        _text("id"),
        _time("at"),
        _text("by"),
        _text("action"),
        _text("flow", nullable=True),
        _text("subject"),
        _json("detail"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_flow_at"), "audit", ["flow", "at"], unique=False)
    _cutovers()


def _observations() -> None:
    op.create_table(
        "flow_observation",
        _text("flow"),
        _time("observed_at"),
        _text("run_id", nullable=True),
        _number("partitions"),
        _number("lagging"),
        _number("stalled"),
        _number("records_behind"),
        _number("bytes_behind", nullable=True),
        _real("seconds_behind"),
        _real("catch_up_seconds"),
        _real("headroom_seconds"),
        _text("outlook"),
        _real("writes_per_second"),
        _number("groups", nullable=True),
        _number("groups_behind", nullable=True),
        _number("read_again", nullable=True),
        _number("open_gaps"),
        sa.PrimaryKeyConstraint("flow", "observed_at", name=op.f("pk_flow_observation")),
    )
    op.create_table(
        "partition_observation",
        _text("flow"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _time("observed_at"),
        _number("log_start", nullable=True),
        _number("log_end", nullable=True),
        _number("position", nullable=True),
        _number("bytes_behind", nullable=True),
        _time("behind_since", nullable=True),
        _real("catch_up_seconds"),
        _real("headroom_seconds"),
        _text("outlook"),
        _text("reason", nullable=True),
        _words("detail"),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", name=op.f("pk_partition_observation")),
    )
    op.create_table(
        "group_observation",
        _text("flow"),
        _text("group"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _time("observed_at"),
        _number("upstream", nullable=True),
        _number("goes_on_at", nullable=True),
        _number("target_committed", nullable=True),
        _number("read_again", nullable=True),
        _text("reason", nullable=True),
        _words("what"),
        sa.PrimaryKeyConstraint("flow", "group", "topic", "partition", name=op.f("pk_group_observation")),
    )
    op.create_table(
        "heartbeat_observation",
        _text("flow"),
        _text("pair"),
        _time("observed_at"),
        _time("emitted_at", nullable=True),
        _text("verdict"),
        _words("detail"),
        sa.PrimaryKeyConstraint("flow", "pair", name=op.f("pk_heartbeat_observation")),
    )
    op.create_table(
        "step_outcome",
        _text("flow"),
        _text("step"),
        _time("finished_at"),
        _number("differences"),
        _number("failed"),
        _words("skipped"),
        _json("summary"),
        sa.PrimaryKeyConstraint("flow", "step", name=op.f("pk_step_outcome")),
    )


def _cutovers() -> None:
    op.create_table(
        "cutover",
        _text("name"),
        _text("flow"),
        _text("state"),
        _text("step"),
        _json("definition"),
        _time("created_at"),
        _text("created_by"),
        _time("updated_at"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_cutover")),
    )
    op.create_index(op.f("ix_cutover_flow_created_at"), "cutover", ["flow", "created_at"], unique=False)
    op.create_table(
        "cutover_step",
        _text("cutover"),
        _text("step"),
        _number("attempt"),
        _text("state"),
        _json("gates"),
        _json("facts"),
        _text("by"),
        _time("started_at"),
        _time("finished_at", nullable=True),
        _json("error", nullable=True),
        sa.ForeignKeyConstraint(
            ["cutover"], ["cutover.name"], name=op.f("fk_cutover_step_cutover_cutover"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cutover", "step", "attempt", name=op.f("pk_cutover_step")),
    )
    op.create_table(
        "cut",
        _text("cutover"),
        _text("topic"),
        _number("partition"),
        _text("target_topic"),
        _number("source_end"),
        _number("target_end"),
        _time("cut_at"),
        sa.ForeignKeyConstraint(["cutover"], ["cutover.name"], name=op.f("fk_cut_cutover_cutover"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("cutover", "topic", "partition", name=op.f("pk_cut")),
    )
    op.create_table(
        "handed_over_topic",
        _text("flow"),
        _text("topic"),
        _text("target_topic"),
        _text("cutover"),
        _time("since"),
        _text("by"),
        sa.PrimaryKeyConstraint("flow", "topic", name=op.f("pk_handed_over_topic")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("handed_over_topic")
    op.drop_table("cut")
    op.drop_table("cutover_step")
    op.drop_index(op.f("ix_cutover_flow_created_at"), table_name="cutover")
    op.drop_table("cutover")
    op.drop_index(op.f("ix_audit_flow_at"), table_name="audit")
    op.drop_table("audit")
    for name in ("step_outcome", "heartbeat_observation", "group_observation", "partition_observation"):
        op.drop_table(name)
    op.drop_table("flow_observation")
