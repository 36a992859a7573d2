"""Rows of detached drivers in the ledger: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


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
