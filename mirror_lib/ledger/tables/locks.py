"""The table `run_lock`: who may run a flow now.

A holder is a run and the text that names its process; both together must be the holder's own, so that two attempts of
one run are two holders. A lease counts from its last renewal by the database's clock, because hosts' clocks differ;
SQLite has none, and all who share its file are on one host.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import RunLockRow
from mirror_lib.ledger.tables.writing import now

_LOCK: Table = METADATA.tables["run_lock"]


def acquire(
    connection: Connection,
    *,
    flow: str,
    run_id: str,
    holder: str,
    lease_seconds: float,
    instead_of: RunLockRow | None = None,
) -> RunLockRow:
    """Take the lock if it is free, if its lease has ended, or if it is ours already. One write transaction.

    Args:
        connection: in a transaction that writes.
        flow: whose lock.
        run_id: the run that wants it.
        holder: names the process that wants it.
        lease_seconds: how long it holds without a renewal.
        instead_of: take it from this very holder, whose lease need not have ended: who asks knows that it is dead.
            No effect when the lock has been renewed or has changed hands since.

    Returns:
        Who has the lock now: ourselves or another, see `is_held_by`.
    """
    while True:
        began = _clock(connection)
        wanted = RunLockRow(
            flow=flow, run_id=run_id, holder=holder, acquired_at=began, renewed_at=began, lease_seconds=lease_seconds
        )
        if _insert(connection, wanted):
            return wanted
        # Waits for others who are just changing the row; it may be gone by then.
        present = _one(connection, select(_LOCK).where(_LOCK.c.flow == flow).with_for_update())
        if present is None:
            continue
        read_at = _clock(connection)
        if not (_ended(present, read_at) or present == instead_of or is_held_by(present, run_id, holder)):
            return present
        acquired_at = present.acquired_at if is_held_by(present, run_id, holder) else read_at
        taken = replace(wanted, acquired_at=acquired_at, renewed_at=read_at)
        connection.execute(update(_LOCK).where(_LOCK.c.flow == flow).values(asdict(taken)))
        return taken


def renew(connection: Connection, *, flow: str, run_id: str, holder: str) -> bool:
    """Let the lease begin anew; False when the lock is another's now, or nobody's."""
    # The clock is read when the row is written: it may have been waited for.
    renewed_at = func.clock_timestamp() if _is_postgres(connection) else now()
    statement = update(_LOCK).where(_ours(flow, run_id, holder)).values(renewed_at=renewed_at)
    return connection.execute(statement).rowcount == 1


def release(connection: Connection, *, flow: str, run_id: str, holder: str) -> None:
    """Give the lock up; no effect when it is not ours any more."""
    connection.execute(delete(_LOCK).where(_ours(flow, run_id, holder)))


def find(connection: Connection, flow: str) -> RunLockRow | None:
    """Who has the lock, None when it is free or its lease has ended."""
    row = _one(connection, select(_LOCK).where(_LOCK.c.flow == flow))
    return None if row is None or _ended(row, _clock(connection)) else row


def living(connection: Connection) -> dict[str, RunLockRow]:
    """Who has the lock of each flow, by flow; none where it is free or its lease has ended."""
    at = _clock(connection)
    rows = (RunLockRow(**row) for row in connection.execute(select(_LOCK)).mappings())
    return {row.flow: row for row in rows if not _ended(row, at)}


def is_held_by(row: RunLockRow, run_id: str, holder: str) -> bool:
    """Whether the lock is this holder's."""
    return (row.run_id, row.holder) == (run_id, holder)


def _insert(connection: Connection, row: RunLockRow) -> bool:
    insert = (postgresql if _is_postgres(connection) else sqlite).insert(_LOCK)
    # Not by the row count, which drivers need not tell of an INSERT.
    statement = insert.values(asdict(row)).on_conflict_do_nothing().returning(_LOCK.c.flow)
    return connection.execute(statement).one_or_none() is not None


def _ours(flow: str, run_id: str, holder: str) -> ColumnElement[bool]:
    return and_(_LOCK.c.flow == flow, _LOCK.c.run_id == run_id, _LOCK.c.holder == holder)


def _one(connection: Connection, query: Select[tuple[object, ...]]) -> RunLockRow | None:
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else RunLockRow(**row)


def _ended(row: RunLockRow, at: datetime) -> bool:
    # A renewal later than now by a lease: the clock was set back, and a holder that lives would have renewed it since.
    return abs((at - row.renewed_at).total_seconds()) >= row.lease_seconds


def _clock(connection: Connection) -> datetime:
    if not _is_postgres(connection):
        return now()
    # Not now(): that is when the transaction began, which may have waited since.
    at: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return at.astimezone(UTC)


def _is_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"
