"""The share of a cluster's limits that each current run has."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "rate_claim",
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("side", sa.String(), nullable=False),
        sa.Column("cluster", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=True),
        sa.Column("bytes_per_second", sa.BigInteger(), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("side IN ('read', 'write')", name=op.f("ck_rate_claim_side")),
        sa.PrimaryKeyConstraint("flow", "side", name=op.f("pk_rate_claim")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("rate_claim")
