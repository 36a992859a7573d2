"""The table `transaction_count`: in a partition without a row, no run has counted records of open transactions."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, Table, and_, func, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import TransactionCountRow
from mirror_lib.ledger.tables.writing import upsert

_COUNTS: Table = METADATA.tables["transaction_count"]
_POSITION: Table = METADATA.tables["position"]
_SAME_COPY = and_(
    _COUNTS.c.flow == _POSITION.c.flow,
    _COUNTS.c.topic == _POSITION.c.topic,
    _COUNTS.c.partition == _POSITION.c.partition,
    _COUNTS.c.copy.is_not_distinct_from(_POSITION.c.copy),
)


def save(connection: Connection, rows: Iterable[TransactionCountRow]) -> None:
    """Insert or replace counts by flow and partition."""
    upsert(connection, _COUNTS, rows)


def of_flow(connection: Connection, flow: str) -> tuple[TransactionCountRow, ...]:
    """A flow's counts by topic and partition, of the copies that its positions continue."""
    columns = _COUNTS.c
    query = select(_COUNTS).join(_POSITION, _SAME_COPY).where(columns.flow == flow)
    rows = connection.execute(query.order_by(columns.topic, columns.partition)).mappings()
    return tuple(TransactionCountRow(**row) for row in rows)


def totals(connection: Connection, flows: Collection[str]) -> dict[str, tuple[int, int]]:
    """Records of aborted and of open transactions, by flow; without flows that have none."""
    columns = _COUNTS.c
    sums = (func.sum(columns.aborted), func.sum(columns.undecided))
    query = select(columns.flow, *sums).join(_POSITION, _SAME_COPY).where(columns.flow.in_(flows))
    return {
        flow: (int(aborted), int(undecided))
        for flow, aborted, undecided in connection.execute(query.group_by(columns.flow))
    }
