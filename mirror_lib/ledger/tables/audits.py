"""Reads and writes the table `audit`: the audit log."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table, insert, select

from mirror_lib.ledger.database import Database
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.observed_rows import AuditRow
from mirror_lib.ledger.tables.writing import now

_AUDIT: Table = METADATA.tables["audit"]


class Audits:
    """The audit log. Rows are added and never changed. Every method raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(
        self, *, by: str, action: str, subject: str, flow: str | None = None, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Record an operator's action, with the current time."""
        values = {
            "id": str(uuid.uuid4()),
            "at": now(),
            "by": by,
            "action": action,
            "flow": flow,
            "subject": subject,
            "detail": dict(detail or {}),
        }
        with self._database.write() as connection:
            connection.execute(insert(_AUDIT).values(values))

    def newest(self, flow: str | None = None, limit: int = 100) -> tuple[AuditRow, ...]:
        """The latest entries, latest first: of a flow, or of all."""
        query = select(_AUDIT).order_by(_AUDIT.c.at.desc(), _AUDIT.c.id).limit(limit)
        if flow is not None:
            query = query.where(_AUDIT.c.flow == flow)
        with self._database.read() as connection:
            return tuple(AuditRow(**row) for row in connection.execute(query).mappings())
