"""The page's queries over many flows: sums and single pages of rows, never one query per flow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import floor
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    RowMapping,
    String,
    Table,
    and_,
    case,
    cast,
    column,
    extract,
    func,
    select,
    values,
)
from sqlalchemy.sql.selectable import CTE

from mirror_lib.ledger.metadata import selected
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.observed_rows import FlowObservationRow, GroupObservationRow, PartitionObservationRow
from mirror_lib.ledger.queries.group_columns import is_behind, is_own
from mirror_lib.ledger.rows import GapRow, RunRow
from mirror_lib.ledger.store import Ledger

_TABLES = METADATA.tables
_RUNS: Table = _TABLES["run"]
_FLOWS: Table = _TABLES["flow_observation"]
_PARTITIONS: Table = _TABLES["partition_observation"]
_GROUPS: Table = _TABLES["group_observation"]
_STEPS: Table = _TABLES["step_outcome"]
_GAPS: Table = _TABLES["gap"]

_COPIED_UP_TO = func.coalesce(_PARTITIONS.c.position, _PARTITIONS.c.log_start, 0)
#: `PartitionObservationRow.records_behind` in SQL.
_BEHIND = case(
    (_PARTITIONS.c.log_end.is_(None), 0),
    (_PARTITIONS.c.log_end < _COPIED_UP_TO, 0),
    else_=_PARTITIONS.c.log_end - _COPIED_UP_TO,
)
#: The columns that partitions can be sorted by.
PARTITION_ORDERS: Mapping[str, ColumnElement[Any]] = {
    "topic": _PARTITIONS.c.topic,
    "behind": _BEHIND,
    "bytes": _PARTITIONS.c.bytes_behind,
    "since": _PARTITIONS.c.behind_since,
    "catch-up": _PARTITIONS.c.catch_up_seconds,
    "headroom": _PARTITIONS.c.headroom_seconds,
    "outlook": _PARTITIONS.c.outlook,
    "reason": _PARTITIONS.c.reason,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFilter:
    """A filter of a flow's partitions; None or False does not restrict."""

    #: A part of the topic's name, case-insensitive.
    topic: str | None = None
    reason: str | None = None
    outlook: str | None = None
    lagging: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """One consumer group across all partitions that it reads."""

    group: str
    #: Partitions whose topic the flow replicates.
    partitions: int
    #: Partitions where the group is not in sync.
    behind: int
    duplicates: int
    skipped: int
    observed_at: datetime


class PageQueries:
    """Queries of pages. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def newest_observations(self, flows: Collection[str]) -> dict[str, FlowObservationRow]:
        """The latest observation of each of these flows, by flow."""
        wanted = _flow_table(flows)
        newest = (
            select(func.max(_FLOWS.c.observed_at))
            .where(_FLOWS.c.flow == wanted.c.flow)
            .correlate(wanted)
            .scalar_subquery()
        )
        query = select(*selected(_FLOWS)).join(
            wanted, and_(_FLOWS.c.flow == wanted.c.flow, _FLOWS.c.observed_at == newest)
        )
        with self._database.read() as connection:
            return {row["flow"]: FlowObservationRow(**row) for row in _read(connection, flows, query)}

    def newest_runs(self, flows: Collection[str]) -> dict[str, RunRow]:
        """The latest run of each of these flows, by flow."""
        wanted = _flow_table(flows)
        newest = (
            select(_RUNS.c.id)
            .where(_RUNS.c.flow == wanted.c.flow)
            .order_by(_RUNS.c.started_at.desc(), _RUNS.c.id)
            .limit(1)
            .correlate(wanted)
            .scalar_subquery()
        )
        query = select(_RUNS).join(wanted, _RUNS.c.id == newest)
        with self._database.read() as connection:
            return {row["flow"]: RunRow(**row) for row in _read(connection, flows, query)}

    def lag_since(self, flows: Collection[str], since: datetime, step: timedelta) -> dict[str, dict[int, int]]:
        """Maximum lag (records) of each flow per time step since a moment, by flow and step.

        Steps without an observation are omitted.
        """
        wanted = _flow_table(flows)
        # Aggregated in the database: there is a row for every run of every flow, and timestamps are slow to read.
        seconds = extract("epoch", _FLOWS.c.observed_at) - floor(since.timestamp())
        place = cast(func.floor(seconds / int(step.total_seconds())), Integer).label("place")
        query = (
            select(_FLOWS.c.flow, place, func.max(_FLOWS.c.records_behind))
            .join(wanted, and_(_FLOWS.c.flow == wanted.c.flow, _FLOWS.c.observed_at >= since))
            .group_by(_FLOWS.c.flow, place)
        )
        found: dict[str, dict[int, int]] = {}
        with self._database.read() as connection:
            for flow, at, behind in connection.execute(query) if flows else ():
                found.setdefault(flow, {})[int(at)] = behind
        return found

    def find_gap(self, gap_id: str) -> GapRow | None:
        """One gap; None if there is none with this id."""
        with self._database.read() as connection:
            found = connection.execute(select(_GAPS).where(_GAPS.c.id == gap_id)).mappings().one_or_none()
            return None if found is None else GapRow(**found)

    def failed_steps(self) -> dict[str, int]:
        """The number of sync steps whose last outcome has rejected changes, by flow."""
        query = select(_STEPS.c.flow, func.count()).where(_STEPS.c.failed > 0).group_by(_STEPS.c.flow)
        with self._database.read() as connection:
            return _counts(connection, query)

    def partitions(
        self, flow: str, wanted: PartitionFilter, *, order: str, descending: bool, offset: int, limit: int
    ) -> tuple[int, tuple[PartitionObservationRow, ...]]:
        """One page of a flow's partitions, and the number of all that match.

        Args:
            flow: as configured.
            wanted: the filter.
            order: one of `PARTITION_ORDERS`; rows without the value come last in both directions.
            descending: greatest first.
            offset: rows to skip.
            limit: maximum number of rows.
        """
        chosen = _conditions(flow, wanted)
        by = PARTITION_ORDERS[order]
        names = (_PARTITIONS.c.topic, _PARTITIONS.c.partition)
        ordering: list[ColumnElement[Any]]
        if order == "topic":
            ordering = [each.desc() if descending else each.asc() for each in names]
        else:
            ordering = [by.is_(None), by.desc() if descending else by.asc(), *names]
        query = select(_PARTITIONS).where(*chosen).order_by(*ordering).offset(offset).limit(limit)
        with self._database.read() as connection:
            total = connection.scalar(select(func.count()).select_from(_PARTITIONS).where(*chosen)) or 0
            rows = tuple(PartitionObservationRow(**row) for row in connection.execute(query).mappings())
        return total, rows

    def partition_counts(self, flow: str) -> tuple[dict[str, int], dict[str, int]]:
        """The number of a flow's partitions by outlook, and of its stalled partitions by reason."""
        outlooks = select(_PARTITIONS.c.outlook, func.count()).where(_PARTITIONS.c.flow == flow)
        reasons = select(_PARTITIONS.c.reason, func.count()).where(
            _PARTITIONS.c.flow == flow, _PARTITIONS.c.reason.is_not(None)
        )
        with self._database.read() as connection:
            return (
                _counts(connection, outlooks.group_by(_PARTITIONS.c.outlook)),
                _counts(connection, reasons.group_by(_PARTITIONS.c.reason)),
            )

    def groups(
        self, flow: str, *, name: str | None, behind_only: bool, offset: int, limit: int
    ) -> tuple[int, tuple[GroupSummary, ...]]:
        """One page of a flow's consumer groups, most skipped records or duplicates on failover first, and the total."""
        columns = _GROUPS.c
        behind = func.sum(case((is_behind(columns.reason), 1), else_=0))
        again = func.sum(func.coalesce(columns.duplicates, 0))
        skipped = func.sum(func.coalesce(columns.skipped, 0))
        query = (
            select(
                columns.group,
                func.sum(case((is_own(columns.reason), 1), else_=0)).label("partitions"),
                behind.label("behind"),
                again.label("duplicates"),
                skipped.label("skipped"),
                func.max(columns.observed_at, type_=columns.observed_at.type).label("observed_at"),
            )
            .where(columns.flow == flow)
            .group_by(columns.group)
        )
        if name:
            query = query.where(_contains(columns.group, name))
        if behind_only:
            query = query.having(behind > 0)
        total_of = select(func.count()).select_from(query.subquery("found"))
        page = query.order_by(skipped.desc(), again.desc(), behind.desc(), columns.group).offset(offset).limit(limit)
        numbers = ("partitions", "behind", "duplicates", "skipped")
        with self._database.read() as connection:
            total = connection.scalar(total_of) or 0
            rows = tuple(
                GroupSummary(**{**row, **{each: int(row[each]) for each in numbers}})
                for row in connection.execute(page).mappings()
            )
        return total, rows

    def group_reasons(self, flow: str, groups: Sequence[str]) -> dict[str, dict[str, int]]:
        """The number of partitions where each of these groups is not in sync, by group and reason."""
        columns = _GROUPS.c
        query = (
            select(columns.group, columns.reason, func.count())
            .where(columns.flow == flow, columns.group.in_(groups), columns.reason.is_not(None))
            .group_by(columns.group, columns.reason)
        )
        found: dict[str, dict[str, int]] = {}
        with self._database.read() as connection:
            for group, reason, count in connection.execute(query):
                found.setdefault(group, {})[reason] = count
        return found

    def group_partitions(self, flow: str, group: str, limit: int) -> tuple[GroupObservationRow, ...]:
        """The position of one group by partition; most skipped records or duplicates on failover first."""
        columns = _GROUPS.c
        again, skipped = func.coalesce(columns.duplicates, 0), func.coalesce(columns.skipped, 0)
        query = (
            select(*selected(_GROUPS))
            .where(columns.flow == flow, columns.group == group)
            .order_by(skipped.desc(), again.desc(), columns.topic, columns.partition)
            .limit(limit)
        )
        with self._database.read() as connection:
            return tuple(GroupObservationRow(**row) for row in connection.execute(query).mappings())


def _flow_table(flows: Collection[str]) -> CTE:
    """The flows as a table: with a look-up per flow, an index finds the latest row without reading the history."""
    rows = [(flow,) for flow in sorted(flows)] or [("",)]
    return values(column("flow", String), name="wanted_flow").data(rows).cte("wanted")


def _read(connection: Connection, flows: Collection[str], query: Any) -> Sequence[RowMapping]:
    return connection.execute(query).mappings().all() if flows else []


def _counts(connection: Connection, query: Any) -> dict[str, int]:
    return {name: int(count) for name, count in connection.execute(query)}


def _conditions(flow: str, wanted: PartitionFilter) -> list[ColumnElement[bool]]:
    chosen: list[ColumnElement[bool]] = [_PARTITIONS.c.flow == flow]
    if wanted.topic:
        chosen.append(_contains(_PARTITIONS.c.topic, wanted.topic))
    if wanted.reason:
        chosen.append(_PARTITIONS.c.reason == wanted.reason)
    if wanted.outlook:
        chosen.append(_PARTITIONS.c.outlook == wanted.outlook)
    if wanted.lagging:
        chosen.append(_BEHIND.is_distinct_from(0))
    return chosen


def _contains(name: ColumnElement[str], part: str) -> ColumnElement[bool]:
    return func.lower(name).contains(part.lower(), autoescape=True)
