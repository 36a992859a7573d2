"""The questions that cutovers ask, with their answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_TABLE = "cutover_question"


def upgrade() -> None:
    """To this version."""
    op.create_table(
        _TABLE,
        sa.Column("cutover", sa.String(), nullable=False),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("attempt", sa.BigInteger(), nullable=False),
        sa.Column("carrier", sa.String(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("waits_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answer", sa.String(), nullable=True),
        sa.Column("answered_by", sa.String(), nullable=True),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_as", sa.String(), nullable=True),
        sa.CheckConstraint("answer IN ('yes', 'no')", name=op.f("ck_cutover_question_answer")),
        sa.ForeignKeyConstraint(
            ["cutover"], ["cutover.name"], name=op.f("fk_cutover_question_cutover_cutover"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cutover", "step", "attempt", name=op.f("pk_cutover_question")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table(_TABLE)
