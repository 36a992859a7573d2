"""Estimate and result of each round of a run, and the age of its records."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), autoincrement=False, nullable=nullable)


def _real(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), nullable=nullable)


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "round",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("flow", sa.String(), nullable=False),
        _number("number"),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        _real("planning_seconds"),
        _real("opening_seconds"),
        _real("copying_seconds"),
        _real("committing_seconds"),
        _number("tasks"),
        _number("partitions"),
        _number("records"),
        _number("bytes"),
        _number("heaviest_bytes"),
        _number("lag_records"),
        _number("lag_bytes", nullable=True),
        _number("planned_records"),
        _number("planned_bytes", nullable=True),
        _number("expected_bytes", nullable=True),
        _real("expected_seconds", nullable=True),
        _number("oldest_age_ms", nullable=True),
        _number("newest_age_ms", nullable=True),
        sa.Column("committed_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_round_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "number", name=op.f("pk_round")),
    )
    op.create_index(op.f("ix_round_flow_began_at"), "round", ["flow", "began_at"], unique=False)
    # The largest rounds are queried before each round, and a flow may run one every second.
    op.create_index(op.f("ix_round_flow_heaviest_bytes"), "round", ["flow", "heaviest_bytes"], unique=False)


def downgrade() -> None:
    """Back to the version before."""
    op.drop_index(op.f("ix_round_flow_heaviest_bytes"), table_name="round")
    op.drop_index(op.f("ix_round_flow_began_at"), table_name="round")
    op.drop_table("round")
