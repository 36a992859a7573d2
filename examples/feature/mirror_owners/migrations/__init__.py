"""Revisions of this feature's tables, for Alembic."""
