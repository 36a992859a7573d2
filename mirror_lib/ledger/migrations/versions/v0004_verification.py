"""Results of verifications, by partition."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _number(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=nullable)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "verification",
        _text("id"),
        _text("flow"),
        _text("topic"),
        sa.Column("partition", sa.BigInteger(), autoincrement=False, nullable=False),
        _text("target_topic"),
        _text("mode"),
        _text("verdict"),
        _text("reason", nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        _number("source_first", nullable=True),
        _number("source_next", nullable=True),
        _number("target_first", nullable=True),
        _number("target_next", nullable=True),
        _number("records"),
        _number("bytes"),
        _text("digest", nullable=True),
        _number("difference_count"),
        sa.Column("differences", sa.JSON(), nullable=True),
        _time("started_at"),
        _time("finished_at"),
        sa.CheckConstraint("mode IN ('full', 'sample', 'recent')", name=op.f("ck_verification_mode")),
        sa.CheckConstraint("verdict IN ('equal', 'different', 'unverifiable')", name=op.f("ck_verification_verdict")),
        sa.PrimaryKeyConstraint("id", "topic", "partition", name=op.f("pk_verification")),
    )
    op.create_index(
        op.f("ix_verification_flow_topic_partition_finished_at"),
        "verification",
        ["flow", "topic", "partition", "finished_at"],
        unique=False,
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_index(op.f("ix_verification_flow_topic_partition_finished_at"), table_name="verification")
    op.drop_table("verification")
