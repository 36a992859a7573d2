"""Alembic's environment; `mirror_lib.ledger.migration` runs it."""
