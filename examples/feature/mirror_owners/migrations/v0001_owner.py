"""Owners that users have named."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "mirror_owners_owner",
        sa.Column("flow", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("flow", "topic", name=op.f("pk_mirror_owners_owner")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("mirror_owners_owner")
