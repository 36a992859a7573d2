"""The table `position`."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, Table, bindparam, delete, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import PositionRow
from mirror_lib.ledger.tables.writing import upsert
from mirror_lib.topology import TopicPartition

_POSITION: Table = METADATA.tables["position"]


def save(connection: Connection, rows: Iterable[PositionRow]) -> None:
    """Insert or replace positions by flow and partition."""
    upsert(connection, _POSITION, rows)


def forget(connection: Connection, flow: str, partitions: Iterable[TopicPartition]) -> None:
    """Delete a flow's positions of some partitions, as Kafka has none of them any more."""
    columns = _POSITION.c
    chosen = delete(_POSITION).where(
        columns.flow == flow,
        columns.topic == bindparam("of_topic"),
        columns.partition == bindparam("of_partition"),
    )
    values = [{"of_topic": each.topic, "of_partition": each.partition} for each in partitions]
    if values:
        connection.execute(chosen, values)


def of_flow(connection: Connection, flow: str) -> tuple[PositionRow, ...]:
    """A flow's positions by topic and partition."""
    columns = _POSITION.c
    query = select(_POSITION).where(columns.flow == flow).order_by(columns.topic, columns.partition)
    return tuple(PositionRow(**row) for row in connection.execute(query).mappings())
