"""Runs, positions and the offset map."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _offset(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable, autoincrement=False)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _time(name: str, *, nullable: bool = False) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "run",
        _text("id"),
        _text("flow"),
        _text("trigger"),
        _text("state"),
        _time("started_at"),
        _time("finished_at", nullable=True),
        _offset("rounds"),
        _offset("planned_partitions"),
        _offset("records"),
        _offset("bytes"),
        sa.Column("error", sa.JSON(), nullable=True),
        _time("heartbeat_at"),
        sa.CheckConstraint("state IN ('running', 'succeeded', 'partial', 'failed')", name=op.f("ck_run_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    op.create_index(op.f("ix_run_flow_started_at"), "run", ["flow", "started_at"])
    op.create_index(op.f("ix_run_trigger"), "run", ["trigger"])
    op.create_table(
        "partition_run",
        _text("run_id"),
        _text("topic"),
        _offset("partition"),
        _offset("round"),
        _text("target_topic"),
        _offset("start_offset"),
        _offset("end_offset"),
        _offset("source_next"),
        _offset("target_first"),
        _offset("target_next"),
        _offset("records"),
        _offset("bytes"),
        _offset("batches"),
        _offset("first_timestamp", nullable=True),
        _offset("last_timestamp", nullable=True),
        sa.Column("seconds", sa.Double(), nullable=False),
        _text("state"),
        _text("reason", nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        _time("updated_at"),
        sa.CheckConstraint("state IN ('planned', 'copying', 'done', 'failed')", name=op.f("ck_partition_run_state")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_partition_run_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "topic", "partition", "round", name=op.f("pk_partition_run")),
    )
    op.create_table(
        "position",
        _text("flow"),
        _text("topic"),
        _offset("partition"),
        _offset("offset"),
        _offset("target_offset", nullable=True),
        _text("state"),
        _offset("producer_id", nullable=True),
        _offset("epoch", nullable=True),
        _text("run_id", nullable=True),
        _text("topic_id", nullable=True),
        _time("updated_at"),
        sa.CheckConstraint("state IN ('open', 'closed')", name=op.f("ck_position_state")),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", name=op.f("pk_position")),
    )
    op.create_table(
        "offset_segment",
        _text("flow"),
        _text("topic"),
        _offset("partition"),
        _offset("source_first"),
        _offset("source_next"),
        _offset("target_first"),
        _offset("target_next"),
        _offset("records"),
        sa.Column("runs", sa.LargeBinary(), nullable=True),
        _text("run_id"),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", "source_first", name=op.f("pk_offset_segment")),
    )


def downgrade() -> None:
    """Back to an empty database."""
    op.drop_table("offset_segment")
    op.drop_table("position")
    op.drop_table("partition_run")
    op.drop_table("run")
