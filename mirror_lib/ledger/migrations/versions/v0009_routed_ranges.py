"""Target ranges of records that transforms route to other partitions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "routed_range",
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("target_topic", sa.String(), nullable=False),
        sa.Column("target_partition", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stretch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("own", sa.Boolean(), nullable=False),
        sa.Column("source_first", sa.BigInteger(), nullable=False),
        sa.Column("source_next", sa.BigInteger(), nullable=False),
        sa.Column("target_first", sa.BigInteger(), nullable=False),
        sa.Column("target_next", sa.BigInteger(), nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint(
            "flow",
            "target_topic",
            "target_partition",
            "stretch",
            "topic",
            "partition",
            name=op.f("pk_routed_range"),
        ),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("routed_range")
