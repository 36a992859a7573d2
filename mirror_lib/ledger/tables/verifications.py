"""The table `verification`: comparisons, and up to where each partition was found equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, bindparam, delete, func, or_, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import VerificationRow, VerifiedRow
from mirror_lib.ledger.tables.writing import upsert

_POSITION: Table = METADATA.tables["position"]
_VERIFICATION: Table = METADATA.tables["verification"]
#: Modes that compare every record from one offset to another, as `VerifyMode` names them.
WHOLE_RECORDS = ("full", "recent")


def save(connection: Connection, rows: Iterable[VerificationRow]) -> None:
    """Insert or replace rows.

    A row without compared records, which only confirms that a partition still ends where it was equal, replaces the
    previous such row: an idle flow would otherwise add one per partition every time.
    """
    rows = list(rows)
    _forget_confirmations(connection, [row for row in rows if _confirms(row)])
    upsert(
        connection,
        _VERIFICATION,
        rows,
    )


def _confirms(row: VerificationRow) -> bool:
    return (
        row.verdict == "equal"
        and row.source_next is not None
        and (row.source_first, row.target_first) == (row.source_next, row.target_next)
    )


def _forget_confirmations(connection: Connection, rows: Sequence[VerificationRow]) -> None:
    columns = _VERIFICATION.c
    former = delete(_VERIFICATION).where(
        columns.flow == bindparam("of_flow"),
        columns.topic == bindparam("of_topic"),
        columns.partition == bindparam("of_partition"),
        columns.verdict == "equal",
        columns.source_first == columns.source_next,
        columns.target_first == columns.target_next,
    )
    if rows:
        values = [{"of_flow": row.flow, "of_topic": row.topic, "of_partition": row.partition} for row in rows]
        connection.execute(former, values)


def newest(connection: Connection, flow: str, limit: int = 100) -> tuple[VerificationRow, ...]:
    """The latest rows of a flow, latest first, those of one verification by partition."""
    columns = _VERIFICATION.c
    query = (
        select(_VERIFICATION)
        .where(columns.flow == flow)
        .order_by(columns.started_at.desc(), columns.id, columns.topic, columns.partition)
        .limit(limit)
    )
    return _rows(connection, query)


def of_id(connection: Connection, verification_id: str) -> tuple[VerificationRow, ...]:
    """All rows of one verification, by partition."""
    columns = _VERIFICATION.c
    return _rows(
        connection,
        select(_VERIFICATION).where(columns.id == verification_id).order_by(columns.topic, columns.partition),
    )


def is_of_position() -> ColumnElement[bool]:
    """The condition that joins a verification with the position of its partition."""
    columns, positions = _VERIFICATION.c, _POSITION.c
    return and_(
        positions.flow == columns.flow,
        positions.topic == columns.topic,
        positions.partition == columns.partition,
    )


def is_of_present_copy() -> ColumnElement[bool]:
    """The condition that a verification is about the copy of the joined position, if there is one."""
    columns, positions = _VERIFICATION.c, _POSITION.c
    return or_(positions.flow.is_(None), columns.copy.is_not_distinct_from(positions.copy))


def verified_up_to(connection: Connection, flow: str) -> tuple[VerifiedRow, ...]:
    """Up to where each partition was found equal since its last difference, in the copy of its present position.

    Samples do not count, since they skip the records in between, nor do comparisons by state, which compare only the
    latest record of each key. Partitions without a result are missing.
    """
    columns = _VERIFICATION.c
    last_difference = (
        select(columns.topic, columns.partition, func.max(columns.finished_at).label("at"))
        .where(columns.flow == flow, columns.verdict == "different", columns.mode != "state")
        .group_by(columns.topic, columns.partition)
        .subquery("last_difference")
    )
    same_partition = and_(last_difference.c.topic == columns.topic, last_difference.c.partition == columns.partition)
    rank = func.row_number().over(
        partition_by=(columns.topic, columns.partition),
        order_by=(columns.source_next.desc(), columns.finished_at.desc()),
    )
    equal = (
        select(
            columns.topic,
            columns.partition,
            columns.source_next,
            columns.target_next,
            columns.finished_at,
            rank.label("place"),
        )
        .outerjoin(last_difference, same_partition)
        .outerjoin(_POSITION, is_of_position())
        .where(
            columns.flow == flow,
            is_of_present_copy(),
            columns.verdict == "equal",
            columns.mode.in_(WHOLE_RECORDS),
            columns.source_next.is_not(None),
            or_(last_difference.c.at.is_(None), columns.finished_at > last_difference.c.at),
        )
        .subquery("equal")
    )
    found = select(equal).where(equal.c.place == 1).order_by(equal.c.topic, equal.c.partition)
    return tuple(
        VerifiedRow(
            topic=row["topic"],
            partition=row["partition"],
            source_next=row["source_next"],
            target_next=row["target_next"],
            verified_at=row["finished_at"],
        )
        for row in connection.execute(found).mappings()
    )


def _rows(connection: Connection, query: Select[Any]) -> tuple[VerificationRow, ...]:
    return tuple(VerificationRow(**row) for row in connection.execute(query).mappings())
