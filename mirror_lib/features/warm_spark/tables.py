"""The table of detached drivers: drivers report to it, triggers and tasks of Airflow read from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Table, and_, delete, select, update

from mirror_lib.ledger.metadata import StoredJson, StoredText, column, key, optional
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.locks import clock

# See `DriverRow`.
_DRIVERS = Table(
    "detached_driver",
    METADATA,
    key("id", str),
    column("flow", str),
    column("trigger", str),
    column("request", StoredText()),
    column("host", str),
    column("folder", str),
    column("started_at", datetime),
    column("seen_at", datetime),
    column("lease_seconds", float),
    optional("waiter", str),
    optional("cancelled_at", datetime),
    optional("ended_at", datetime),
    optional("exit_code", int),
    optional("report", StoredJson(none_as_null=True)),
)
#: Rows have done their work when the task has read them.
_KEPT = timedelta(days=7)


class DriverState(StrEnum):
    """The state of a detached driver."""

    RUNNING = "running"
    ENDED = "ended"
    #: It has not renewed its row in time.
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRow:
    """One driver that runs without the task that started it, so that the task needs no worker slot while it waits."""

    #: Also the id of its run.
    id: str
    flow: str
    #: The DAG run that started it, as in `RunRow.trigger`.
    trigger: str
    #: The choices of that run: another attempt with the same ones may take the report of this driver.
    request: str
    #: The machine and the folder there with the driver's log.
    host: str
    folder: str
    started_at: datetime
    #: When the driver last renewed this row, by the database's clock.
    seen_at: datetime
    #: A driver that has not renewed its row for this time has died.
    lease_seconds: float
    #: The attempt that waits for it: the id of Airflow's task instance; None before the first deferral.
    waiter: str | None = None
    #: When its cancellation was requested.
    cancelled_at: datetime | None = None
    ended_at: datetime | None = None
    #: None if it has not ended by itself.
    exit_code: int | None = None
    #: The job's report, without rows of partitions that were copied without problems; None if it wrote none.
    report: Mapping[str, Any] | None = None


class DetachedDrivers:
    """Detached drivers. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def begin(
        self, *, id: str, flow: str, trigger: str, request: str, host: str, folder: str, lease_seconds: float
    ) -> DriverRow:
        """Record a driver that is about to start; old rows of the flow are deleted."""
        with self._database.write() as connection:
            at = clock(connection)
            row = DriverRow(
                id=id,
                flow=flow,
                trigger=trigger,
                request=request,
                host=host,
                folder=folder,
                started_at=at,
                seen_at=at,
                lease_seconds=lease_seconds,
            )
            connection.execute(delete(_DRIVERS).where(_DRIVERS.c.flow == flow, _DRIVERS.c.seen_at < at - _KEPT))
            connection.execute(_DRIVERS.insert().values(asdict(row)))
        return row

    def renew(self, id: str) -> bool:
        """Record that a driver is alive; return True if it has to end."""
        with self._database.write() as connection:
            connection.execute(update(_DRIVERS).where(_open(id)).values(seen_at=clock(connection)))
            query = select(_DRIVERS.c.cancelled_at).where(_DRIVERS.c.id == id)
            return connection.execute(query).scalar_one_or_none() is not None

    def wait(self, id: str, waiter: str) -> None:
        """Record the attempt that waits for a driver, instead of an earlier one."""
        with self._database.write() as connection:
            connection.execute(update(_DRIVERS).where(_DRIVERS.c.id == id).values(waiter=waiter))

    def cancel(self, id: str) -> bool:
        """Request the cancellation of a driver; return False if it has ended."""
        with self._database.write() as connection:
            values = {"cancelled_at": clock(connection)}
            return connection.execute(update(_DRIVERS).where(_open(id)).values(values)).rowcount == 1

    def end(self, id: str, *, exit_code: int, report: Mapping[str, Any] | None) -> None:
        """Record the end of a driver; a second end has no effect."""
        with self._database.write() as connection:
            values = {"ended_at": clock(connection), "exit_code": exit_code, "report": report}
            connection.execute(update(_DRIVERS).where(_open(id)).values(values))

    def find(self, id: str) -> DriverRow | None:
        """The row of a driver."""
        with self._database.read() as connection:
            found = connection.execute(select(_DRIVERS).where(_DRIVERS.c.id == id)).mappings().one_or_none()
            return None if found is None else DriverRow(**found)

    def running(self, flow: str) -> DriverRow | None:
        """The newest driver of a flow that runs."""
        columns = _DRIVERS.c
        query = select(_DRIVERS).where(columns.flow == flow, columns.ended_at.is_(None))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(columns.started_at.desc())).mappings().all()
            at = clock(connection)
        return next((DriverRow(**row) for row in rows if _state(row, at) is DriverState.RUNNING), None)

    def states(self, ids: Collection[str]) -> dict[str, DriverState]:
        """The states of drivers, with one query; a driver without a row is missing."""
        columns = _DRIVERS.c
        query = select(columns.id, columns.seen_at, columns.lease_seconds, columns.ended_at).where(columns.id.in_(ids))
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
            at = clock(connection)
        return {row["id"]: _state(row, at) for row in rows}


def _open(id: str) -> ColumnElement[bool]:
    return and_(_DRIVERS.c.id == id, _DRIVERS.c.ended_at.is_(None))


def _state(row: RowMapping, at: datetime) -> DriverState:
    if row["ended_at"] is not None:
        return DriverState.ENDED
    # As for run locks, a renewal far in the future is none: the clock was set back.
    silent = abs((at - row["seen_at"]).total_seconds()) >= row["lease_seconds"]
    return DriverState.SILENT if silent else DriverState.RUNNING
