"""Verifications that compare the latest record of each key."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_BEFORE = "mode IN ('full', 'sample', 'recent')"
_NOW = "mode IN ('full', 'sample', 'recent', 'state')"


def _set_modes(condition: str) -> None:
    name = op.f("ck_verification_mode")
    # SQLite cannot change a constraint: the table is recreated there.
    with op.batch_alter_table("verification") as table:
        table.drop_constraint(name, type_="check")
        table.create_check_constraint(name, condition)


def upgrade() -> None:
    """To this version."""
    _set_modes(_NOW)


def downgrade() -> None:
    """Back to the version before."""
    op.execute("DELETE FROM verification WHERE mode = 'state'")
    _set_modes(_BEFORE)
