"""Reads and writes the table `round`: estimate and result of each round of a run."""

from __future__ import annotations

from sqlalchemy import Connection, Select, Table, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import RoundRow
from mirror_lib.ledger.tables.writing import upsert

_ROUND: Table = METADATA.tables["round"]
#: How many of the largest rounds are used to estimate the speed of large copies.
LARGEST = 3
_NEWEST_FIRST = (_ROUND.c.began_at.desc(), _ROUND.c.number.desc(), _ROUND.c.run_id)


def save(connection: Connection, row: RoundRow) -> None:
    """Insert or replace a round; its run must exist."""
    upsert(connection, _ROUND, [row])


def newest(
    connection: Connection, flow: str | None = None, limit: int = 20, *, run_id: str | None = None
) -> tuple[RoundRow, ...]:
    """The latest rounds, latest first: of a flow, of a run, or of all."""
    query = select(_ROUND).order_by(*_NEWEST_FIRST).limit(limit)
    if flow is not None:
        query = query.where(_ROUND.c.flow == flow)
    if run_id is not None:
        query = query.where(_ROUND.c.run_id == run_id)
    return _rows(connection, query)


def newest_and_largest(
    connection: Connection, flow: str, newest: int = 20, largest: int = LARGEST
) -> tuple[RoundRow, ...]:
    """Committed rounds of a flow with records: the newest and the largest, newest first, without duplicates.

    A flow that keeps up has only small rounds, which do not show its speed for large copies.
    """
    newest_rows = _rows(connection, _select_copied(flow).order_by(*_NEWEST_FIRST).limit(newest))
    found = {(row.run_id, row.number): row for row in (*newest_rows, *largest_of(connection, flow, largest))}
    return tuple(sorted(found.values(), key=lambda row: (row.began_at, row.number), reverse=True))


def largest_of(connection: Connection, flow: str, count: int = LARGEST) -> tuple[RoundRow, ...]:
    """The committed rounds with the most bytes for one task, largest first."""
    return _rows(connection, _select_copied(flow).order_by(_ROUND.c.heaviest_bytes.desc(), *_NEWEST_FIRST).limit(count))


def _select_copied(flow: str) -> Select[tuple[object, ...]]:
    return select(_ROUND).where(_ROUND.c.flow == flow, _ROUND.c.bytes > 0, _ROUND.c.committed_at.is_not(None))


def _rows(connection: Connection, query: Select[tuple[object, ...]]) -> tuple[RoundRow, ...]:
    return tuple(RoundRow(**row) for row in connection.execute(query).mappings())
