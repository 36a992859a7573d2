"""The table `backfill`: what each backfill copies. Rows are written once and never changed."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from mirror_lib.ledger.database import Database
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import BackfillRow

_BACKFILL: Table = METADATA.tables["backfill"]


class Backfills:
    """Definitions of backfills. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def define(self, row: BackfillRow) -> BackfillRow:
        """Store a backfill's definition; return the stored row, which is an older one if the name exists."""
        with self._database.write() as connection:
            insert = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(_BACKFILL)
            connection.execute(insert.values(asdict(row)).on_conflict_do_nothing())
            return _find(connection, row.flow, row.name) or row

    def find(self, flow: str, name: str) -> BackfillRow | None:
        """One backfill of a flow; None if there is none with this name."""
        with self._database.read() as connection:
            return _find(connection, flow, name)

    def of_flow(self, flow: str) -> tuple[BackfillRow, ...]:
        """A flow's backfills, newest first."""
        columns = _BACKFILL.c
        query = select(_BACKFILL).where(columns.flow == flow).order_by(columns.created_at.desc(), columns.name)
        with self._database.read() as connection:
            return tuple(BackfillRow(**row) for row in connection.execute(query).mappings())


def _find(connection: Connection, flow: str, name: str) -> BackfillRow | None:
    query = select(_BACKFILL).where(_BACKFILL.c.flow == flow, _BACKFILL.c.name == name)
    found = connection.execute(query).mappings().one_or_none()
    return None if found is None else BackfillRow(**found)
