"""The claim and the copy of a position, and the copy that was verified."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this version."""
    op.add_column("position", sa.Column("claim", sa.BigInteger(), nullable=True))
    op.add_column("position", sa.Column("copy", sa.String(), nullable=True))
    op.add_column("verification", sa.Column("copy", sa.String(), nullable=True))


def downgrade() -> None:
    """Back to the version before."""
    for table, names in (("verification", ("copy",)), ("position", ("copy", "claim"))):
        with op.batch_alter_table(table) as altered:
            for name in names:
                altered.drop_column(name)
