"""The table `position`."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.ledger.tables.writing import upsert

_POSITION: Table = METADATA.tables["position"]


def save(connection: Connection, rows: Iterable[PositionRow]) -> None:
    """Insert or replace positions by flow and partition."""
    upsert(connection, _POSITION, rows)


def of_flow(connection: Connection, flow: str) -> tuple[PositionRow, ...]:
    """A flow's positions by topic and partition."""
    columns = _POSITION.c
    query = select(_POSITION).where(columns.flow == flow).order_by(columns.topic, columns.partition)
    return tuple(PositionRow(**row) for row in connection.execute(query).mappings())
