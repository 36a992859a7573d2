"""The cluster ids that the rows of a flow belong to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "cluster_pair",
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("target_id", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("flow", name=op.f("pk_cluster_pair")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("cluster_pair")
