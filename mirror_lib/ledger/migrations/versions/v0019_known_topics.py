"""The topics that a flow's source had at its last run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_TABLE = "known_topics"


def upgrade() -> None:
    """To this version."""
    op.create_table(
        _TABLE,
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("topics", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("flow", name=op.f("pk_known_topics")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table(_TABLE)
