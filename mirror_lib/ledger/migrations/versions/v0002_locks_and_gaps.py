"""The run lock and the gap ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
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
        "run_lock",
        _text("flow"),
        _text("run_id"),
        _text("holder"),
        _time("acquired_at"),
        _time("renewed_at"),
        sa.Column("lease_seconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("flow", name=op.f("pk_run_lock")),
    )
    op.create_table(
        "gap",
        _text("id"),
        _text("flow"),
        _text("topic"),
        _offset("partition"),
        _text("cause"),
        _offset("first_offset"),
        _offset("next_offset"),
        _offset("records", nullable=True),
        _time("first_time", nullable=True),
        _time("last_time", nullable=True),
        _text("topic_id", nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        _text("run_id", nullable=True),
        _time("found_at"),
        _text("state"),
        _text("decided_by", nullable=True),
        _time("decided_at", nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint("state IN ('open', 'accepted', 'recopied', 'stopped')", name=op.f("ck_gap_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gap")),
    )
    op.create_index(op.f("ix_gap_flow_state"), "gap", ["flow", "state"])


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("gap")
    op.drop_table("run_lock")
