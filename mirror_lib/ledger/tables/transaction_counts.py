"""Reads and writes the table `transaction_count`: without a row, no run has counted records of open transactions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, Table, and_, func, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import TransactionCountRow
from mirror_lib.ledger.tables.writing import upsert
from mirror_lib.topology.names import TopicPartition

_COUNTS: Table = METADATA.tables["transaction_count"]
_POSITION: Table = METADATA.tables["position"]
_SAME_COPY = and_(
    _COUNTS.c.flow == _POSITION.c.flow,
    _COUNTS.c.topic == _POSITION.c.topic,
    _COUNTS.c.partition == _POSITION.c.partition,
    _COUNTS.c.copy.is_not_distinct_from(_POSITION.c.copy),
)


def save(
    connection: Connection, rows: Collection[TransactionCountRow], *, claims: Mapping[TopicPartition, int] | None = None
) -> None:
    """Insert or replace counts by flow and partition.

    Args:
        claims: those of the run that has counted. Partitions with a later claim, or another copy, keep their row: a run
            that was frozen does not know of its successor.
    """
    if claims is not None:
        outdated = _outdated(connection, rows, claims)
        rows = [row for row in rows if row not in outdated]
    upsert(connection, _COUNTS, rows)


def _outdated(
    connection: Connection, rows: Collection[TransactionCountRow], claims: Mapping[TopicPartition, int]
) -> list[TransactionCountRow]:
    columns = _POSITION.c
    query = select(columns.flow, columns.topic, columns.partition, columns.claim, columns.copy)
    known = {
        (flow, TopicPartition(topic, partition)): (claim or 0, copy)
        for flow, topic, partition, claim, copy in connection.execute(
            query.where(columns.flow.in_({row.flow for row in rows}))
        )
    }
    places = ((row, TopicPartition(row.topic, row.partition)) for row in rows)
    return [
        row
        for row, place in places
        if (found := known.get((row.flow, place))) is not None and (found[0] > claims[place] or found[1] != row.copy)
    ]


def of_flow(connection: Connection, flow: str) -> tuple[TransactionCountRow, ...]:
    """A flow's counts by topic and partition, of the copies that its positions continue."""
    columns = _COUNTS.c
    query = select(_COUNTS).join(_POSITION, _SAME_COPY).where(columns.flow == flow)
    rows = connection.execute(query.order_by(columns.topic, columns.partition)).mappings()
    return tuple(TransactionCountRow(**row) for row in rows)


def transaction_totals(connection: Connection, flows: Collection[str]) -> dict[str, tuple[int, int]]:
    """Records of aborted and of open transactions, by flow; without flows that have none."""
    columns = _COUNTS.c
    sums = (func.sum(columns.aborted), func.sum(columns.undecided))
    query = select(columns.flow, *sums).join(_POSITION, _SAME_COPY).where(columns.flow.in_(flows))
    return {
        flow: (int(aborted), int(undecided))
        for flow, aborted, undecided in connection.execute(query.group_by(columns.flow))
    }
