"""Records that consumer groups would skip on failover, next to their duplicates on failover."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_TABLES = ("flow_observation", "group_observation")


def upgrade() -> None:
    """To this version."""
    for table in _TABLES:
        op.add_column(table, sa.Column("skipped", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Back to the version before."""
    for table in _TABLES:
        with op.batch_alter_table(table) as altered:
            altered.drop_column("skipped")
