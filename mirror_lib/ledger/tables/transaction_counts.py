"""The table `transaction_count`: in a partition without a row, no run has counted records of open transactions."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, and_, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import TransactionCountRow
from mirror_lib.ledger.tables.writing import upsert

_COUNTS: Table = METADATA.tables["transaction_count"]
_POSITION: Table = METADATA.tables["position"]


def save(connection: Connection, rows: Iterable[TransactionCountRow]) -> None:
    """Insert or replace counts by flow and partition."""
    upsert(connection, _COUNTS, rows)


def of_flow(connection: Connection, flow: str) -> tuple[TransactionCountRow, ...]:
    """A flow's counts by topic and partition, of the copies that its positions continue."""
    columns, position = _COUNTS.c, _POSITION.c
    same_copy = and_(
        columns.flow == position.flow,
        columns.topic == position.topic,
        columns.partition == position.partition,
        columns.copy.is_not_distinct_from(position.copy),
    )
    query = select(_COUNTS).join(_POSITION, same_copy).where(columns.flow == flow)
    rows = connection.execute(query.order_by(columns.topic, columns.partition)).mappings()
    return tuple(TransactionCountRow(**row) for row in rows)
