"""Reads and writes rows of the table `gap`: lost source records, and their resolutions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, Table, bindparam, func, insert, or_, select, update

from mirror_lib.errors import LedgerError
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import SOURCE_DELETED, GapRow, GapState
from mirror_lib.ledger.tables.writing import now

_GAP: Table = METADATA.tables["gap"]
_RUN: Table = METADATA.tables["run"]
_PARTITION_RUN: Table = METADATA.tables["partition_run"]
#: Well below SQLite's limit of parameters in one statement.
_AT_ONCE = 500
#: Columns of a resolution.
_DECISION = ("state", "decided_by", "decided_at", "note")


class LastCopy(NamedTuple):
    """The newest row of a partition with copied records."""

    #: Epoch milliseconds of the last record.
    last_timestamp: int
    #: When the row was stored.
    stored_at: datetime


class OpenGaps(NamedTuple):
    """The gaps of a flow with one cause that wait for a decision."""

    flow: str
    cause: str
    gaps: int
    #: When the first of them was found.
    since: datetime
    #: Their number of topics, and the first ones by name.
    topics: int
    named: tuple[str, ...]


#: Maximum number of topics that are named.
_NAMED = 3


def open_by_cause(connection: Connection) -> tuple[OpenGaps, ...]:
    """The open gaps of all flows."""
    return _by_cause(connection, _GAP.c.state == GapState.OPEN.value)


def deleted_topics(connection: Connection, since: datetime) -> tuple[OpenGaps, ...]:
    """The topics of all flows that were deleted at the source after their copy, by when that was found."""
    return _by_cause(connection, (_GAP.c.cause == SOURCE_DELETED) & (_GAP.c.found_at >= since))


def _by_cause(connection: Connection, chosen: ColumnElement[bool]) -> tuple[OpenGaps, ...]:
    group = _GAP.c.flow, _GAP.c.cause
    first = func.min(_GAP.c.found_at, type_=_GAP.c.found_at.type)
    counted = select(*group, func.count(), first, func.count(_GAP.c.topic.distinct())).where(chosen)
    found = list(connection.execute(counted.group_by(*group).order_by(*group)))
    names: dict[tuple[str, str], list[str]] = {}
    place = func.dense_rank().over(partition_by=group, order_by=_GAP.c.topic)
    ranked = select(*group, _GAP.c.topic, place.label("place")).where(chosen).distinct().subquery("ranked")
    query = select(ranked.c.flow, ranked.c.cause, ranked.c.topic).where(ranked.c.place <= _NAMED)
    for flow, cause, topic in connection.execute(query.order_by(ranked.c.topic)):
        names.setdefault((flow, cause), []).append(topic)
    return tuple(
        OpenGaps(flow, cause, gaps, since, topics, tuple(names.get((flow, cause), ())))
        for flow, cause, gaps, since, topics in found
    )


def record(connection: Connection, row: GapRow) -> GapRow:
    """Record a gap; return its row.

    A gap is the same as an open one if it has the same cause and partition, and one of its ends is unchanged. The open
    row grows to cover both: retention continues to delete, and a source may be truncated again.
    """
    columns = _GAP.c
    same = select(_GAP).where(
        columns.flow == row.flow,
        columns.topic == row.topic,
        columns.partition == row.partition,
        columns.cause == row.cause,
        columns.state == GapState.OPEN.value,
        or_(columns.first_offset == row.first_offset, columns.next_offset == row.next_offset),
    )
    known = next(iter(_rows(connection, same.order_by(columns.found_at, columns.id).limit(1))), None)
    if known is None:
        known = next(iter(_rows(connection, select(_GAP).where(columns.id == row.id))), None)
        if known is not None:
            return known
        values = asdict(row)
        connection.execute(insert(_GAP), values)
        return replace(row, detail=values["detail"], note=values["note"])
    first, end = min(known.first_offset, row.first_offset), max(known.next_offset, row.next_offset)
    if (first, end, row.topic_id) == (known.first_offset, known.next_offset, known.topic_id):
        return known
    changed: dict[str, Any] = {
        "first_offset": first,
        "next_offset": end,
        "last_time": row.last_time,
        "topic_id": row.topic_id,
        "detail": row.detail,
        "records": row.records,
    }
    connection.execute(update(_GAP).where(columns.id == known.id).values(**changed))
    return replace(known, **changed)


def add(connection: Connection, rows: Sequence[GapRow]) -> None:
    """Insert gaps of which the flow has no open row: one statement for thousands."""
    if rows:
        connection.execute(insert(_GAP), [asdict(row) for row in rows])


def of_cause(connection: Connection, flow: str, cause: str, states: Iterable[GapState]) -> tuple[GapRow, ...]:
    """A flow's gaps of one cause in some states, oldest first."""
    chosen = _GAP.c.flow == flow, _GAP.c.cause == cause, _GAP.c.state.in_([state.value for state in states])
    return _rows(connection, select(_GAP).where(*chosen).order_by(_GAP.c.found_at, _GAP.c.id))


def of_flow(connection: Connection, flow: str, *, state: GapState | None, limit: int | None) -> tuple[GapRow, ...]:
    """A flow's gaps, newest first."""
    query = select(_GAP).where(_GAP.c.flow == flow).order_by(_GAP.c.found_at.desc(), _GAP.c.id).limit(limit)
    return _rows(connection, query if state is None else query.where(_GAP.c.state == state.value))


def decide(connection: Connection, gap_id: str, state: GapState, *, by: str, note: str | None = None) -> GapRow:
    """Record the resolution of a gap, by whom and when; `OPEN` withdraws one. Return the updated row.

    Earlier resolutions stay in the note.

    Raises:
        LedgerError: there is no such gap.
    """
    found = _rows(connection, select(_GAP).where(_GAP.c.id == gap_id))
    if not found:
        raise LedgerError(f"gap {gap_id} does not exist.", action="`mirror gaps list` shows the ids of all gaps.")
    row = _decided(found[0], state, by, note)
    connection.execute(update(_GAP).where(_GAP.c.id == gap_id).values({name: getattr(row, name) for name in _DECISION}))
    return row


def decide_all(
    connection: Connection, gap_ids: Iterable[str], state: GapState, *, by: str, note: str | None = None
) -> None:
    """As `decide`, for thousands of gaps that exist."""
    ids = list(gap_ids)
    change = update(_GAP).where(_GAP.c.id == bindparam("of_id"))
    for first in range(0, len(ids), _AT_ONCE):
        found = _rows(connection, select(_GAP).where(_GAP.c.id.in_(ids[first : first + _AT_ONCE])))
        rows = [_decided(row, state, by, note) for row in found]
        values = [{"of_id": row.id} | {f"to_{name}": getattr(row, name) for name in _DECISION} for row in rows]
        connection.execute(change.values({name: bindparam(f"to_{name}") for name in _DECISION}), values)


def _decided(before: GapRow, state: GapState, by: str, note: str | None) -> GapRow:
    full_note = "; ".join(part for part in (note, _earlier(before)) if part) or None
    return replace(before, state=state.value, decided_by=by, decided_at=now(), note=full_note)


def _earlier(row: GapRow) -> str:
    if row.decided_by is None or row.decided_at is None:
        return row.note or ""
    note = f" ({row.note})" if row.note else ""
    return f"before: {row.state} by {row.decided_by} at {row.decided_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}{note}"


def stopped_partitions(connection: Connection, flow: str) -> frozenset[tuple[str, int]]:
    """Topics and partitions that are no longer replicated."""
    query = select(_GAP.c.topic, _GAP.c.partition).where(_GAP.c.flow == flow, _GAP.c.state == GapState.STOPPED.value)
    return frozenset((topic, partition) for topic, partition in connection.execute(query.distinct()))


def last_copies(connection: Connection, flow: str, topics: Iterable[str]) -> Mapping[tuple[str, int], LastCopy]:
    """The last copy of each partition of some topics, by topic and partition."""
    wanted = sorted(set(topics))
    found: dict[tuple[str, int], LastCopy] = {}
    for first in range(0, len(wanted), _AT_ONCE):
        columns = _PARTITION_RUN.c
        newest = func.row_number().over(
            partition_by=(columns.topic, columns.partition), order_by=(columns.updated_at.desc(), columns.round.desc())
        )
        ranked = (
            select(columns.topic, columns.partition, columns.last_timestamp, columns.updated_at, newest.label("place"))
            .join(_RUN, _RUN.c.id == columns.run_id)
            .where(
                _RUN.c.flow == flow,
                columns.topic.in_(wanted[first : first + _AT_ONCE]),
                columns.last_timestamp.is_not(None),
            )
            .subquery("ranked")
        )
        for row in connection.execute(select(ranked).where(ranked.c.place == 1)).mappings():
            found[row["topic"], row["partition"]] = LastCopy(row["last_timestamp"], row["updated_at"])
    return found


def _rows(connection: Connection, query: Select[Any]) -> tuple[GapRow, ...]:
    return tuple(GapRow(**row) for row in connection.execute(query).mappings())
