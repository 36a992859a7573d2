"""Reads and writes the tables `run` and `partition_run`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, Table, func, insert, select, update

from mirror_lib.errors import LedgerError, RunDiedError, Where
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import CopiedTopic, PartitionRunRow, RunRow, RunState
from mirror_lib.ledger.tables.writing import now, upsert

_RUN: Table = METADATA.tables["run"]
_PARTITION_RUN: Table = METADATA.tables["partition_run"]


def start(connection: Connection, *, run_id: str, flow: str, trigger: str, planned_partitions: int = 0) -> RunRow:
    """Record the start of a run; its id must be new."""
    if exists(connection, run_id):
        raise LedgerError(
            f"a run with the id {run_id} already exists.", action="Omit the id, or use a new one for every run."
        )
    began = now()
    row = RunRow(
        id=run_id,
        flow=flow,
        trigger=trigger,
        state=RunState.RUNNING.value,
        started_at=began,
        planned_partitions=planned_partitions,
        heartbeat_at=began,
    )
    values = {column.name: getattr(row, column.name) for column in _RUN.columns}
    connection.execute(insert(_RUN), values)
    return row


def exists(connection: Connection, run_id: str) -> bool:
    """Return true if the run was started with this ledger."""
    return bool(connection.scalar(select(func.count()).where(_RUN.c.id == run_id)))


def change(connection: Connection, run_id: str, values: Mapping[str, Any]) -> None:
    """Set columns of a run; None leaves a column unchanged."""
    given = {name: value for name, value in values.items() if value is not None}
    changed = connection.execute(update(_RUN).where(_RUN.c.id == run_id).values(heartbeat_at=now(), **given))
    if changed.rowcount == 0:
        raise LedgerError(f"run {run_id} does not exist.", action="Start it first.")


def finish(connection: Connection, run_id: str, values: Mapping[str, Any]) -> None:
    """Record the end of a run. Missing totals are summed up from its partitions."""
    given = {name: value for name, value in values.items() if value is not None}
    change(connection, run_id, {**_totals(connection, run_id), **given, "finished_at": now()})


def running_runs(connection: Connection, flow: str) -> tuple[RunRow, ...]:
    """The runs of a flow in state `running`."""
    return _runs(connection, select(_RUN).where(_RUN.c.flow == flow, _RUN.c.state == RunState.RUNNING.value))


def close_dead(connection: Connection, dead: Iterable[RunRow]) -> tuple[str, ...]:
    """Mark runs as dead, unless they have recorded their end in between; return their ids."""
    closed: list[str] = []
    for row in dead:
        error = RunDiedError(
            f"the run did not renew its lock after {row.heartbeat_at.isoformat(sep=' ', timespec='seconds')}.",
            where=Where(flow=row.flow),
            action="Nothing is lost: the next run continues at the last stored position. See its log, and that of "
            "Airflow's task, for the cause.",
        )
        values = {**_totals(connection, row.id), "state": RunState.FAILED.value, "error": error.attributes()}
        still = (_RUN.c.id == row.id, _RUN.c.state == RunState.RUNNING.value)
        changed = connection.execute(update(_RUN).where(*still).values(finished_at=now(), **values))
        closed += [row.id] * changed.rowcount
    return tuple(closed)


def _totals(connection: Connection, run_id: str) -> dict[str, int]:
    """Totals from the rows of partitions, for a run that failed before it could add them up."""
    partitions = _PARTITION_RUN.c
    of_run = select(
        func.max(partitions.round).label("rounds"),
        func.sum(partitions.records).label("records"),
        func.sum(partitions.bytes).label("bytes"),
    ).where(partitions.run_id == run_id)
    planned = (
        select(partitions.topic, partitions.partition).where(partitions.run_id == run_id).distinct().subquery("planned")
    )
    totals = {name: int(value) for name, value in connection.execute(of_run).mappings().one().items() if value}
    count = connection.scalar(select(func.count()).select_from(planned))
    return {**totals, "planned_partitions": count} if count else totals


def find(connection: Connection, run_id: str) -> RunRow | None:
    """One run; None if there is none with this id."""
    found = _runs(connection, select(_RUN).where(_RUN.c.id == run_id))
    return found[0] if found else None


def count(connection: Connection, flow: str) -> int:
    """Number of runs of a flow; their rows are never deleted."""
    found: int = connection.execute(select(func.count()).where(_RUN.c.flow == flow)).scalar_one()
    return found


def newest(
    connection: Connection, flow: str | None = None, limit: int = 20, *, trigger: str | None = None
) -> tuple[RunRow, ...]:
    """The latest runs, latest first: of one flow, of one trigger, or of all."""
    query = select(_RUN).order_by(_RUN.c.started_at.desc(), _RUN.c.id).limit(limit)
    if flow is not None:
        query = query.where(_RUN.c.flow == flow)
    if trigger is not None:
        query = query.where(_RUN.c.trigger == trigger)
    return _runs(connection, query)


def copied_topics(connection: Connection, flow: str, since: datetime) -> tuple[CopiedTopic, ...]:
    """Each source topic that a flow's runs copied since a moment, with its target topic."""
    columns = _PARTITION_RUN.c
    query = (
        select(columns.topic, columns.target_topic, func.max(columns.updated_at).label("last"))
        .join(_RUN, _RUN.c.id == columns.run_id)
        .where(_RUN.c.flow == flow, columns.updated_at >= since)
        .group_by(columns.topic, columns.target_topic)
        .order_by(columns.topic, columns.target_topic)
    )
    return tuple(CopiedTopic(flow, **row) for row in connection.execute(query).mappings())


def save_partitions(connection: Connection, rows: Iterable[PartitionRunRow]) -> None:
    """Insert or replace rows by run, partition and round; efficient for tens of thousands of rows."""
    upsert(connection, _PARTITION_RUN, rows)


def partitions_of(connection: Connection, run_id: str) -> tuple[PartitionRunRow, ...]:
    """A run's partitions, oldest round first."""
    columns = _PARTITION_RUN.c
    query = (
        select(_PARTITION_RUN).where(columns.run_id == run_id).order_by(columns.round, columns.topic, columns.partition)
    )
    return tuple(PartitionRunRow(**row) for row in connection.execute(query).mappings())


def _runs(connection: Connection, query: Select[Any]) -> tuple[RunRow, ...]:
    return tuple(RunRow(**row) for row in connection.execute(query).mappings())
