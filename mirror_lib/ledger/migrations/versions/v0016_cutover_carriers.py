"""The processes that run cutovers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0012"
branch_labels = None
depends_on = None

_TABLE = "cutover_carrier"


def upgrade() -> None:
    """To this version."""
    op.create_table(
        _TABLE,
        sa.Column("cutover", sa.String(), nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("step", sa.String(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_as", sa.String(), nullable=True),
        sa.CheckConstraint("kind IN ('run', 'rollback')", name=op.f("ck_cutover_carrier_kind")),
        sa.ForeignKeyConstraint(
            ["cutover"], ["cutover.name"], name=op.f("fk_cutover_carrier_cutover_cutover"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cutover", "id", name=op.f("pk_cutover_carrier")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table(_TABLE)
