"""The table `backfill`: what each backfill copies. Rows are written once and never changed."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from mirror_lib.ledger.models import Backfill
from mirror_lib.ledger.rows import BackfillRow

_BACKFILL: Table = Backfill.metadata.tables["backfill"]


def define(connection: Connection, row: BackfillRow) -> BackfillRow:
    """Insert a backfill unless its name is taken; returns the row that has the name then."""
    insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(_BACKFILL)
    connection.execute(insert.values(asdict(row)).on_conflict_do_nothing())
    return find(connection, row.flow, row.name) or row


def find(connection: Connection, flow: str, name: str) -> BackfillRow | None:
    """One backfill."""
    query = select(_BACKFILL).where(_BACKFILL.c.flow == flow, _BACKFILL.c.name == name)
    found = connection.execute(query).mappings().one_or_none()
    return None if found is None else BackfillRow(**found)


def of_flow(connection: Connection, flow: str) -> tuple[BackfillRow, ...]:
    """A flow's backfills, newest first."""
    columns = _BACKFILL.c
    query = select(_BACKFILL).where(columns.flow == flow).order_by(columns.created_at.desc(), columns.name)
    return tuple(BackfillRow(**row) for row in connection.execute(query).mappings())
