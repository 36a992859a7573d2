"""Reads and writes the tables `replicated_acl` and `sync_time`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, Table, bindparam, delete, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import ReplicatedAclRow, SyncTimeRow
from mirror_lib.ledger.tables.writing import upsert

_ACL: Table = METADATA.tables["replicated_acl"]
_TIME: Table = METADATA.tables["sync_time"]


def save(connection: Connection, rows: Iterable[ReplicatedAclRow]) -> None:
    """Insert or replace rows of ACLs on the target."""
    upsert(connection, _ACL, rows)


def forget(connection: Connection, rows: Iterable[ReplicatedAclRow]) -> None:
    """Remove rows of ACLs that the replicator has not created on the target and that no cutover waits for."""
    keys = [column.name for column in _ACL.primary_key.columns]
    values = [{f"key_{name}": getattr(row, name) for name in keys} for row in rows]
    if values:
        connection.execute(delete(_ACL).where(*(_ACL.c[name] == bindparam(f"key_{name}") for name in keys)), values)


def of_flow(connection: Connection, flow: str) -> tuple[ReplicatedAclRow, ...]:
    """The ACLs that a flow created on its target or keeps for the cutover, sorted by key."""
    query = select(_ACL).where(_ACL.c.flow == flow).order_by(*_ACL.primary_key.columns)
    return tuple(ReplicatedAclRow(**row) for row in connection.execute(query).mappings())


def note_time(connection: Connection, row: SyncTimeRow) -> None:
    """Insert or replace the time of a step."""
    upsert(connection, _TIME, [row])


def time_of(connection: Connection, flow: str, step: str) -> datetime | None:
    """When the last successful run of a step began."""
    found: datetime | None = connection.scalar(
        select(_TIME.c.begun_at).where(_TIME.c.flow == flow, _TIME.c.step == step)
    )
    return found
