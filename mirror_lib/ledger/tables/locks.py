"""Reads and writes the table `run_lock`: which run of a flow holds its lock.

A holder is a run id and a text that names its process; both must match, so that two attempts of one run are two
holders. A lease starts at its last renewal by the database's clock, because the clocks of hosts differ; SQLite has no
clock of its own, and all processes that share its file are on one host.
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


def lock_name(cutover: str) -> str:
    """The name of a cutover's lock; flow names contain no blanks."""
    return f"cutover {cutover}"


def acquire(
    connection: Connection,
    *,
    flow: str,
    run_id: str,
    holder: str,
    lease_seconds: float,
    instead_of: RunLockRow | None = None,
) -> RunLockRow:
    """Take the lock if it is free, expired, or already this holder's. One write transaction.

    Args:
        connection: in a write transaction.
        flow: the flow of the lock.
        run_id: the run that wants it.
        holder: names the process that wants it.
        lease_seconds: lease time without a renewal.
        instead_of: take the lock from exactly this holder, even before its lease ends: the caller knows that it is
            dead. No effect if the lock has been renewed or has changed hands since.

    Returns:
        The lock's holder now: this one or another, see `is_held_by`.
    """
    while True:
        began = clock(connection)
        wanted = RunLockRow(
            flow=flow, run_id=run_id, holder=holder, acquired_at=began, renewed_at=began, lease_seconds=lease_seconds
        )
        if _insert(connection, wanted):
            return wanted
        # Waits for a transaction that changes the row; the row may be gone afterwards.
        present = _one(connection, select(_LOCK).where(_LOCK.c.flow == flow).with_for_update())
        if present is None:
            continue
        read_at = clock(connection)
        if not (_has_expired(present, read_at) or present == instead_of or is_held_by(present, run_id, holder)):
            return present
        acquired_at = present.acquired_at if is_held_by(present, run_id, holder) else read_at
        taken = replace(wanted, acquired_at=acquired_at, renewed_at=read_at)
        connection.execute(update(_LOCK).where(_LOCK.c.flow == flow).values(asdict(taken)))
        return taken


def renew(connection: Connection, *, flow: str, run_id: str, holder: str) -> bool:
    """Renew the lease; false if the lock is free or has another holder."""
    # The clock is read when the row is written: the statement may have waited for the row.
    renewed_at = func.clock_timestamp() if _is_postgres(connection) else now()
    statement = update(_LOCK).where(_ours(flow, run_id, holder)).values(renewed_at=renewed_at)
    return connection.execute(statement).rowcount == 1


def release(connection: Connection, *, flow: str, run_id: str, holder: str) -> None:
    """Release the lock; no effect if this holder no longer has it."""
    connection.execute(delete(_LOCK).where(_ours(flow, run_id, holder)))


def find(connection: Connection, flow: str) -> RunLockRow | None:
    """The holder of a flow's run lock; None if the lock is free or its lease has expired."""
    row = _one(connection, select(_LOCK).where(_LOCK.c.flow == flow))
    return None if row is None or _has_expired(row, clock(connection)) else row


def live_locks(connection: Connection) -> dict[str, RunLockRow]:
    """The holders of locks by flow, without free and expired ones."""
    at = clock(connection)
    rows = (RunLockRow(**row) for row in connection.execute(select(_LOCK)).mappings())
    return {row.flow: row for row in rows if not _has_expired(row, at)}


def is_held_by(row: RunLockRow, run_id: str, holder: str) -> bool:
    """True if this holder has the lock."""
    return (row.run_id, row.holder) == (run_id, holder)


def _insert(connection: Connection, row: RunLockRow) -> bool:
    insert = (postgresql if _is_postgres(connection) else sqlite).insert(_LOCK)
    # Not by the row count: drivers need not report one for INSERT.
    statement = insert.values(asdict(row)).on_conflict_do_nothing().returning(_LOCK.c.flow)
    return connection.execute(statement).one_or_none() is not None


def _ours(flow: str, run_id: str, holder: str) -> ColumnElement[bool]:
    return and_(_LOCK.c.flow == flow, _LOCK.c.run_id == run_id, _LOCK.c.holder == holder)


def _one(connection: Connection, query: Select[tuple[object, ...]]) -> RunLockRow | None:
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else RunLockRow(**row)


def _has_expired(row: RunLockRow, at: datetime) -> bool:
    # A renewal in the future by a lease: the clock was set back, and a living holder would have renewed since.
    return abs((at - row.renewed_at).total_seconds()) >= row.lease_seconds


def clock(connection: Connection) -> datetime:
    """The time by the database's clock; SQLite has none."""
    if not _is_postgres(connection):
        return now()
    # Not now(): it returns the start of the transaction, which may have waited since.
    at: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return at.astimezone(UTC)


def _is_postgres(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"
