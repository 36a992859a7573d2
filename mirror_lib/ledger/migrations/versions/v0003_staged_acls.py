"""ACLs that the replicator created or keeps for the cutover, and the last times of steps with an interval."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=nullable)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False)


def upgrade() -> None:
    """To this version."""
    op.create_table(
        "replicated_acl",
        _text("flow"),
        _text("resource"),
        _text("name"),
        _text("pattern"),
        _text("principal"),
        _text("host"),
        _text("operation"),
        _text("permission"),
        _text("kind"),
        _text("state"),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        _time("changed_at"),
        _text("changed_by"),
        sa.CheckConstraint("kind IN ('copied', 'staged')", name=op.f("ck_replicated_acl_kind")),
        sa.CheckConstraint("state IN ('waiting', 'creating', 'created')", name=op.f("ck_replicated_acl_state")),
        sa.PrimaryKeyConstraint(
            "flow",
            "resource",
            "name",
            "pattern",
            "principal",
            "host",
            "operation",
            "permission",
            name=op.f("pk_replicated_acl"),
        ),
    )
    op.create_table(
        "sync_time",
        _text("flow"),
        _text("step"),
        _time("begun_at"),
        sa.PrimaryKeyConstraint("flow", "step", name=op.f("pk_sync_time")),
    )


def downgrade() -> None:
    """Back to the version before."""
    op.drop_table("sync_time")
    op.drop_table("replicated_acl")
