"""Reads and writes the tables of the latest observations of flows, partitions, groups and heartbeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection, Table, delete, func, select

from mirror_lib.ledger.database import Database
from mirror_lib.ledger.metadata import selected
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.observed_rows import (
    FlowObservationRow,
    GroupObservationRow,
    HeartbeatObservationRow,
    PartitionObservationRow,
    StepOutcomeRow,
)
from mirror_lib.ledger.tables.writing import upsert

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_FLOWS: Table = METADATA.tables["flow_observation"]
_PARTITIONS: Table = METADATA.tables["partition_observation"]
_GROUPS: Table = METADATA.tables["group_observation"]
_HEARTBEATS: Table = METADATA.tables["heartbeat_observation"]
_STEPS: Table = METADATA.tables["step_outcome"]

#: How long the history of a flow's lag is kept.
HISTORY = timedelta(days=30)

_Row = TypeVar("_Row", bound="DataclassInstance")


class Observations:
    """Observations. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save_flow(self, row: FlowObservationRow, partitions: Sequence[PartitionObservationRow]) -> None:
        """Add a row to a flow's history, and replace all its partitions."""
        with self._database.write() as connection:
            upsert(connection, _FLOWS, [row])
            old = _FLOWS.c.observed_at < row.observed_at - HISTORY
            connection.execute(delete(_FLOWS).where(_FLOWS.c.flow == row.flow, old))
            _replace(connection, _PARTITIONS, row.flow, partitions)

    def save_groups(self, flow: str, rows: Sequence[GroupObservationRow]) -> None:
        """Replace all groups of a flow."""
        with self._database.write() as connection:
            _replace(connection, _GROUPS, flow, rows)

    def save_heartbeats(self, flow: str, rows: Sequence[HeartbeatObservationRow]) -> None:
        """Replace all heartbeats of a flow."""
        with self._database.write() as connection:
            _replace(connection, _HEARTBEATS, flow, rows)

    def save_step(self, row: StepOutcomeRow) -> None:
        """Insert or replace the last outcome of a step."""
        with self._database.write() as connection:
            upsert(connection, _STEPS, [row])

    def history(self, flow: str, since: datetime) -> tuple[FlowObservationRow, ...]:
        """A flow's observations since a moment, oldest first."""
        query = select(*selected(_FLOWS)).where(_FLOWS.c.flow == flow, _FLOWS.c.observed_at >= since)
        with self._database.read() as connection:
            found = connection.execute(query.order_by(_FLOWS.c.observed_at)).mappings()
            return tuple(FlowObservationRow(**row) for row in found)

    def newest(self, flow: str) -> FlowObservationRow | None:
        """A flow's latest observation; None if it was never observed."""
        query = select(*selected(_FLOWS)).where(_FLOWS.c.flow == flow).order_by(_FLOWS.c.observed_at.desc()).limit(1)
        with self._database.read() as connection:
            found = connection.execute(query).mappings().one_or_none()
            return None if found is None else FlowObservationRow(**found)

    def partitions(self, flow: str) -> tuple[PartitionObservationRow, ...]:
        """A flow's partitions, by topic and partition."""
        return self._of_flow(_PARTITIONS, PartitionObservationRow, flow)

    def groups(self, flow: str) -> tuple[GroupObservationRow, ...]:
        """A flow's groups, by group, topic and partition."""
        return self._of_flow(_GROUPS, GroupObservationRow, flow)

    def heartbeats(self, flow: str | None = None) -> tuple[HeartbeatObservationRow, ...]:
        """The heartbeats of a flow, or of all."""
        return self._of_flow(_HEARTBEATS, HeartbeatObservationRow, flow)

    def steps(self, flow: str | None = None) -> tuple[StepOutcomeRow, ...]:
        """The last outcome of every step of a flow, or of all flows."""
        return self._of_flow(_STEPS, StepOutcomeRow, flow)

    def reasons(self) -> Mapping[str, Mapping[str, int]]:
        """The number of stalled partitions of each flow, by flow and reason."""
        query = (
            select(_PARTITIONS.c.flow, _PARTITIONS.c.reason, func.count())
            .where(_PARTITIONS.c.reason.is_not(None))
            .group_by(_PARTITIONS.c.flow, _PARTITIONS.c.reason)
        )
        found: dict[str, dict[str, int]] = {}
        with self._database.read() as connection:
            for flow, reason, partitions in connection.execute(query):
                found.setdefault(flow, {})[reason] = partitions
        return found

    def _of_flow(self, table: Table, kind: type[_Row], flow: str | None) -> tuple[_Row, ...]:
        query = select(*selected(table)).order_by(*table.primary_key.columns)
        if flow is not None:
            query = query.where(table.c.flow == flow)
        with self._database.read() as connection:
            return tuple(kind(**row) for row in connection.execute(query).mappings())


def _replace(connection: Connection, table: Table, flow: str, rows: Sequence[DataclassInstance]) -> None:
    connection.execute(delete(table).where(table.c.flow == flow))
    upsert(connection, table, rows)
