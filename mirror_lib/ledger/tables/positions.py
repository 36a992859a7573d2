"""Reads and writes the table `position`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Table, bindparam, delete, func, or_, select, update

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import KnownPosition, PositionRow
from mirror_lib.ledger.tables.writing import Columns, upsert
from mirror_lib.topology.names import TopicPartition

_POSITION: Table = METADATA.tables["position"]


def save(connection: Connection, rows: Iterable[PositionRow]) -> None:
    """Insert or replace positions by flow and partition."""
    upsert(connection, _POSITION, rows)


def commit(connection: Connection, rows: Iterable[PositionRow]) -> None:
    """As `save`, but keep positions of later claims: a run that was frozen does not know of its successor."""
    upsert(connection, _POSITION, rows, where=_is_not_older)


def _is_not_older(present: Columns, new: Columns) -> ColumnElement[bool]:
    return or_(
        present.claim.is_(None),
        new.claim.is_(None),
        new.claim >= present.claim,
        new["copy"].is_distinct_from(present["copy"]),
    )


def save_claims(connection: Connection, claims: Iterable[PositionRow]) -> None:
    """Store claim and copy of positions that the ledger has; their last commit, and its time, stay as they are."""
    columns = _POSITION.c
    claim = update(_POSITION).where(
        columns.flow == bindparam("of_flow"),
        columns.topic == bindparam("of_topic"),
        columns.partition == bindparam("of_partition"),
    )
    values = [
        {
            "of_flow": row.flow,
            "of_topic": row.topic,
            "of_partition": row.partition,
            "to_claim": row.claim,
            "to_copy": row.copy,
            "to_state": row.state,
        }
        for row in claims
    ]
    if values:
        changed: dict[str, Any] = {name: bindparam(f"to_{name}") for name in ("claim", "copy", "state")}
        connection.execute(claim.values(changed), values)


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


class CopiedFlow(NamedTuple):
    """A flow that has positions in the ledger."""

    flow: str
    partitions: int
    #: When the newest of them was stored.
    updated_at: datetime


def copied_flows(connection: Connection) -> tuple[CopiedFlow, ...]:
    """All flows with positions, by name; without work next to a flow, and rows of former clusters."""
    columns = _POSITION.c
    newest = func.max(columns.updated_at, type_=columns.updated_at.type)
    query = select(columns.flow, func.count(), newest).group_by(columns.flow).order_by(columns.flow)
    found = (CopiedFlow(*row) for row in connection.execute(query))
    return tuple(each for each in found if "#" not in each.flow and each.flow.count("->") == 1)


def known_of_flow(connection: Connection, flow: str) -> dict[TopicPartition, KnownPosition]:
    """As `of_flow`, a third of the time: what a plan compares."""
    columns = _POSITION.c
    compared = (columns[name] for name in KnownPosition._fields)
    query = select(columns.topic, columns.partition, *compared).where(columns.flow == flow)
    return {TopicPartition(row[0], row[1]): KnownPosition(*row[2:]) for row in connection.execute(query)}


def of_flow(connection: Connection, flow: str) -> tuple[PositionRow, ...]:
    """A flow's positions by topic and partition."""
    columns = _POSITION.c
    query = select(_POSITION).where(columns.flow == flow).order_by(columns.topic, columns.partition)
    return tuple(PositionRow(**row) for row in connection.execute(query).mappings())
