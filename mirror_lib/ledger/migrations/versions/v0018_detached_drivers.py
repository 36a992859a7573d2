"""The drivers for which no task waits in a worker slot."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_TABLE = "detached_driver"


def upgrade() -> None:
    """To this version."""
    op.create_table(
        _TABLE,
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("trigger", sa.String(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("folder", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("lease_seconds", sa.Double(), nullable=False),
        sa.Column("waiter", sa.String(), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("exit_code", sa.BigInteger(), nullable=True),
        sa.Column("report", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_detached_driver")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table(_TABLE)
