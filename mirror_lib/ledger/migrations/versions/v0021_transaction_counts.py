"""Records of transactions that a flow of all records has copied."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_TABLE = "transaction_count"


def upgrade() -> None:
    """To this version."""
    op.create_table(
        _TABLE,
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.BigInteger(), nullable=False),
        sa.Column("copy", sa.String(), nullable=True),
        sa.Column("counted_to", sa.BigInteger(), nullable=False),
        sa.Column("aborted", sa.BigInteger(), nullable=False),
        sa.Column("undecided", sa.BigInteger(), nullable=False),
        sa.Column("uncounted", sa.BigInteger(), nullable=False),
        sa.Column("open", sa.JSON(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("flow", "topic", "partition", name=op.f("pk_transaction_count")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table(_TABLE)
