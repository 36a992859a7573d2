"""Alembic's environment; `mirror_lib.ledger.schema` runs it."""
