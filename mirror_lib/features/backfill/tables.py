"""The table `backfill`: what each backfill copies. Rows are written once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Table, select

from mirror_lib.ledger.metadata import StoredJson, column, key
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.writing import insert_new

# See `BackfillRow`.
_BACKFILL = Table(
    "backfill",
    METADATA,
    key("flow", str),
    key("name", str),
    column("definition", StoredJson()),
    column("created_at", datetime),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillRow:
    """What a backfill copies, resolved when it was defined. Its progress is in its positions in Kafka."""

    flow: str
    name: str
    #: As `Backfill.to_dict` returns it.
    definition: Mapping[str, Any]
    created_at: datetime


class Backfills:
    """Definitions of backfills. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def define(self, row: BackfillRow) -> BackfillRow:
        """Store a backfill's definition; return the stored row, which is an older one if the name exists."""
        with self._database.write() as connection:
            insert_new(connection, _BACKFILL, row)
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
