"""The table `routed_range`: ranges of a target partition that hold routed records, and their source partitions.

The ranges of several source partitions overlap on the target, since transforms mix their records. Only the output of
different runs can be distinguished, in ranges. A range includes further runs while it is small: otherwise a flow
that runs every minute would add rows without limit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, select, text

from mirror_lib.ledger.metadata import selected, table_of
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.writing import upsert
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_RUN: Table = METADATA.tables["run"]
_PARTITION_RUN: Table = METADATA.tables["partition_run"]
#: Target offsets after which a range includes no more runs. If retention deletes a part of a range, none of it can
#: be verified.
FULL_OFFSETS = 100_000

#: Topic and partition, of the target or of the source.
_Place = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedRangeRow:
    """The output of transforms from source [source_first, source_next) for one target partition lies within
    [target_first, target_next), possibly mixed with the output from other source partitions.

    A source partition whose transforms choose the target has rows for every target partition that it wrote to, and
    always for its own target: up to the end of those rows, its output to other targets is complete.
    """

    flow: str
    target_topic: str
    target_partition: int
    #: Rows of one target partition with the same number were written by the same runs; set by the ledger.
    range_number: int = 0
    topic: str
    partition: int
    #: True if this is the target partition that records go to when no transform chooses another.
    own: bool
    source_first: int
    source_next: int
    target_first: int
    target_next: int
    #: Records written there, as the runs counted them.
    records: int
    #: The run that wrote the newest part.
    run_id: str


_RANGE = table_of(
    RoutedRangeRow,
    "routed_range",
    keys=("flow", "target_topic", "target_partition", "range_number", "topic", "partition"),
    stored={"range_number": "stretch"},
)


class RoutedRanges:
    """Ranges with routed records. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def append(self, rows: Sequence[RoutedRangeRow], *, resumed: Iterable[TopicPartition] = ()) -> None:
        """Add the output of a round; `range_number` is assigned here.

        A repeated copy from an earlier offset replaces the rows from there on: the latest copy counts, as in the offset
        map. Adding the same rows again has no effect.

        Args:
            rows: of one round: for each source partition its own target and every other target.
            resumed: source partitions that were taken over from interrupted runs. Transactions that those runs
                committed belong to the rows too, although this run started after them.
        """
        places = {(each.topic, each.partition) for each in resumed}
        with self._database.write() as connection:
            _append(connection, rows, places)

    def of_flow(self, flow: str) -> tuple[RoutedRangeRow, ...]:
        """All rows of a flow, by target partition, range and source partition."""
        columns = _RANGE.c
        order = (columns.target_topic, columns.target_partition, columns.range_number, columns.topic, columns.partition)
        query = select(*selected(_RANGE)).where(columns.flow == flow).order_by(*order)
        with self._database.read() as connection:
            return tuple(RoutedRangeRow(**row) for row in connection.execute(query).mappings())

    def of_others(self, flow: str) -> frozenset[tuple[str, TopicPartition]]:
        """Other flows whose transforms have sent records to partitions of other topics, each with those partitions."""
        columns = _RANGE.c
        query = (
            select(columns.flow, columns.target_topic, columns.target_partition)
            .where(columns.flow != flow, columns.own.is_(False))
            .distinct()
        )
        with self._database.read() as connection:
            return frozenset(
                (row.flow, TopicPartition(row.target_topic, row.target_partition)) for row in connection.execute(query)
            )


def _append(connection: Connection, rows: Sequence[RoutedRangeRow], resumed: set[_Place]) -> None:
    _lock_flows(connection, {row.flow for row in rows})
    starts = {
        (row.flow, _source(row)): _first_source_offset(connection, row)
        for row in rows
        if row.own and _source(row) in resumed
    }
    rows = [replace(row, source_first=starts.get((row.flow, _source(row)), row.source_first)) for row in rows]
    covered = _append_own(connection, [row for row in rows if row.own])
    by_target: dict[tuple[str, _Place], list[RoutedRangeRow]] = {}
    for row in rows:
        if not row.own:
            by_target.setdefault((row.flow, _target(row)), []).append(row)
    for (flow, target), added in by_target.items():
        _append_to(connection, flow, target, added, covered)


def _first_source_offset(connection: Connection, row: RoutedRangeRow) -> int:
    """The source offset where the first of the consecutive interrupted runs before this one started."""
    columns, runs, parts = _RANGE.c, _RUN.c, _PARTITION_RUN.c
    of_source = and_(columns.flow == row.flow, columns.topic == row.topic, columns.partition == row.partition)
    known = connection.execute(select(func.max(columns.source_next)).where(of_source, columns.own)).scalar()
    if known is not None and known >= row.source_first:
        return row.source_first
    query = (
        select(parts.state, parts.start_offset)
        .join(_RUN, runs.id == parts.run_id)
        .where(runs.flow == row.flow, parts.topic == row.topic, parts.partition == row.partition)
        .where(parts.run_id != row.run_id)
        .order_by(runs.started_at.desc(), parts.round.desc())
    )
    first = row.source_first
    for state, start in connection.execute(query):
        if state == "done" or (known is not None and first <= known):
            break
        first = min(first, start)
    return first if known is None else max(first, known)


def _append_own(connection: Connection, rows: Sequence[RoutedRangeRow]) -> dict[tuple[str, _Place], RoutedRangeRow]:
    """Add the ranges in the partitions' own targets; return the last row of each source partition."""
    by_target: dict[tuple[str, _Place], list[RoutedRangeRow]] = {}
    for row in rows:
        by_target.setdefault((row.flow, _target(row)), []).append(row)
    last: dict[tuple[str, _Place], RoutedRangeRow] = {}
    for (flow, target), added in by_target.items():
        for stored in _append_to(connection, flow, target, added, None):
            last[flow, _source(stored)] = stored
    return last


def _append_to(
    connection: Connection,
    flow: str,
    target: _Place,
    rows: Sequence[RoutedRangeRow],
    covered: dict[tuple[str, _Place], RoutedRangeRow] | None,
) -> list[RoutedRangeRow]:
    """Add rows of one target partition, as a new range or to the last one; return them as stored.

    Args:
        covered: last rows of the source partitions' own targets; None when those rows are being added.
    """
    known = _near(connection, flow, target, rows)
    if all(any(_holds(each, row) for each in known) for row in rows):
        return [next(each for each in reversed(known) if _holds(each, row)) for row in rows]
    number = max((each.range_number for each in known), default=-1)
    contradicted = False
    for row in rows:
        for each in [each for each in known if _source(each) == _source(row) and each.source_next > row.source_first]:
            contradicted = True
            known.remove(each)
            known += _remainder(connection, each, row)
    last = {_source(each): each for each in known if each.range_number == number}
    width = max((each.target_next for each in last.values()), default=0) - min(
        (each.target_first for each in last.values()), default=0
    )
    joins = (
        number >= 0
        and not contradicted
        and width < FULL_OFFSETS
        and all(_source(row) not in last or _follows(last[_source(row)], row, covered) for row in rows)
    )
    if joins:
        stored = [_join(last[_source(row)], row) if _source(row) in last else row for row in rows]
    else:
        stored, number = list(rows), number + 1
    stored = [replace(row, range_number=number) for row in stored]
    upsert(connection, _RANGE, stored)
    return stored


def _near(connection: Connection, flow: str, target: _Place, rows: Sequence[RoutedRangeRow]) -> list[RoutedRangeRow]:
    """The rows of the last range, and rows that end after the start of the new ones."""
    columns = _RANGE.c
    newest = select(func.max(columns.range_number)).where(_is_of(flow, target)).scalar_subquery()
    first = min(row.source_first for row in rows)
    reaching = (columns.range_number == newest) | (columns.source_next > first)
    query = select(*selected(_RANGE)).where(_is_of(flow, target), reaching).order_by(columns.range_number)
    return [RoutedRangeRow(**row) for row in connection.execute(query).mappings()]


def _remainder(connection: Connection, each: RoutedRangeRow, row: RoutedRangeRow) -> list[RoutedRangeRow]:
    """The remainder of a row that a newer one replaces before its end."""
    _log.warning(
        "flow %s: %s-%d was copied again from source offset %d; its stored routes to %s-%d end before that offset",
        row.flow,
        row.topic,
        row.partition,
        row.source_first,
        row.target_topic,
        row.target_partition,
    )
    if each.source_first >= row.source_first:
        connection.execute(delete(_RANGE).where(_is_of(each.flow, _target(each)), _is_row(each)))
        return []
    kept = replace(each, source_next=row.source_first)
    upsert(connection, _RANGE, [kept])
    return [kept]


def _follows(
    last: RoutedRangeRow, row: RoutedRangeRow, covered: dict[tuple[str, _Place], RoutedRangeRow] | None
) -> bool:
    """True if it is certain that the source partition sent nothing there between the two rows."""
    if last.source_next == row.source_first:
        return True
    known = (covered or {}).get((row.flow, _source(row)))
    return known is not None and known.source_first <= last.source_next and row.source_next <= known.source_next


def _join(last: RoutedRangeRow, row: RoutedRangeRow) -> RoutedRangeRow:
    return replace(
        row,
        source_first=last.source_first,
        target_first=min(last.target_first, row.target_first),
        target_next=max(last.target_next, row.target_next),
        records=last.records + row.records,
    )


def _holds(known: RoutedRangeRow, row: RoutedRangeRow) -> bool:
    return (
        _source(known) == _source(row)
        and known.run_id == row.run_id
        and known.source_first <= row.source_first
        and row.source_next <= known.source_next
        and known.target_first <= row.target_first
        and row.target_next <= known.target_next
    )


def _target(row: RoutedRangeRow) -> _Place:
    return row.target_topic, row.target_partition


def _source(row: RoutedRangeRow) -> _Place:
    return row.topic, row.partition


def _is_of(flow: str, target: _Place) -> ColumnElement[bool]:
    columns = _RANGE.c
    return and_(columns.flow == flow, columns.target_topic == target[0], columns.target_partition == target[1])


def _is_row(row: RoutedRangeRow) -> ColumnElement[bool]:
    columns = _RANGE.c
    return and_(
        columns.range_number == row.range_number, columns.topic == row.topic, columns.partition == row.partition
    )


def _lock_flows(connection: Connection, flows: Iterable[str]) -> None:
    """Serialize runs that append to one flow, as for the offset map. SQLite has a single writer."""
    if connection.dialect.name == "postgresql":
        for flow in sorted(flows):
            lock = text("SELECT pg_advisory_xact_lock(hashtext('mirror routed_range'), hashtext(:flow))")
            connection.execute(lock, {"flow": flow})
