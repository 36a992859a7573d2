"""Reads and writes the table `offset_segment`: new segments continue the last row of their partition if possible.

A partition without holes has a single row. With holes, every run adds a row; when there are many small ones, neighbours
are merged. Rows of a partition always ascend on both sides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Table,
    and_,
    case,
    column,
    delete,
    func,
    or_,
    select,
    table,
    text,
)

from mirror_lib.errors import OffsetMapError
from mirror_lib.ledger.directions import is_by_opposite
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.offset_rows import MapSize, SegmentRow
from mirror_lib.ledger.tables.segment_runs import FULL_BYTES, FULL_RECORDS, RowSize, cut, groups_to_merge, holds, merge
from mirror_lib.ledger.tables.writing import upsert
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_SEGMENT: Table = METADATA.tables["offset_segment"]
#: The feature `transforms` has its other columns.
_ROUTED = table("routed_range", column("flow"), column("topic"), column("partition"))
_TOPICS_PER_QUERY = 500
#: Placeholder for runs that were not read; for the last row of a partition only their existence matters.
_SOME_RUNS = b""
#: Maximum number of small rows of a partition: the last rows are rewritten once for this many runs of the flow.
SMALL_ROWS_AT_MOST = 32
#: Maximum number of partitions compacted in one call, so that many due partitions do not delay a flow.
_COMPACTED_AT_ONCE = 200
#: The size of a row's integer columns, in bytes.
_FIXED_BYTES = 6 * 8

#: Flow, topic, partition.
_Key = tuple[str, str, int]


def append(connection: Connection, rows: Sequence[SegmentRow]) -> None:
    """Append segments in their order.

    Rows that exist already, alone or as part of a longer one, change nothing. A row that begins before the end of its
    partition's map on either side means that the topic was recreated, or copied again from an earlier position: the
    latest copy counts, as in MM2's `OffsetSyncStore`, and contradicting rows are removed.
    """
    rows = [row for row in rows if row.records]
    _lock_flows(connection, {row.flow for row in rows})
    tails, small_rows = _tails(connection, {_key(row) for row in rows})
    changed: dict[tuple[_Key, int], SegmentRow] = {}
    for row in rows:
        key = _key(row)
        tail = tails.get(key)
        if tail is not None and (row.source_first < tail.source_next or row.target_first < tail.target_next):
            upsert(connection, _SEGMENT, changed.values())
            changed.clear()
            if _is_known_else_cut(connection, row):
                continue
            tail = _tails(connection, {key})[0].get(key)
        stored = row if tail is None else _join(tail, row)
        tails[key] = changed[key, stored.source_first] = stored
    upsert(connection, _SEGMENT, changed.values())
    crowded = sorted(key for key, count in small_rows.items() if count >= SMALL_ROWS_AT_MOST)
    for key in crowded[:_COMPACTED_AT_ONCE]:
        try:
            compact(connection, *key)
        except OffsetMapError as error:
            # New segments are stored all the same; a look-up in the damaged row reports the error.
            _log.warning("flow %s: the map of %s-%d is unchanged: %s", *key, error)


def compact(connection: Connection, flow: str, topic: str, partition: int) -> int:
    """Merge small neighbours; the map stays the same. Return by how many rows it shrank.

    Raises:
        OffsetMapError: a row is damaged.
    """
    _lock_flows(connection, {flow})
    key, columns = (flow, topic, partition), _SEGMENT.c
    length = func.coalesce(func.length(columns.runs), 0).label("bytes")
    sizes = select(columns.source_first, columns.records, length, columns.run_id)
    found = connection.execute(sizes.where(_is_of(key)).order_by(columns.source_first))
    fewer = 0
    rows_found = (RowSize(first, count, size, is_by_opposite(run_id)) for first, count, size, run_id in found)
    for group in groups_to_merge(rows_found):
        within = and_(_is_of(key), columns.source_first.between(group[0].source_first, group[-1].source_first))
        query = select(_SEGMENT).where(within).order_by(columns.source_first)
        rows = [SegmentRow(**row) for row in connection.execute(query).mappings()]
        row = merge(rows)
        connection.execute(delete(_SEGMENT).where(within))
        upsert(connection, _SEGMENT, [row])
        fewer += len(rows) - 1
    return fewer


def replace_partition(
    connection: Connection, flow: str, topic: str, partition: int, rows: Sequence[SegmentRow]
) -> None:
    """Replace a partition's map; the rows ascend on both sides, and rows without records are dropped."""
    _lock_flows(connection, {flow})
    connection.execute(delete(_SEGMENT).where(_is_of((flow, topic, partition))))
    upsert(connection, _SEGMENT, [row for row in rows if row.records])


def cut_partition(connection: Connection, flow: str, topic: str, partition: int, source_next: int) -> None:
    """End a partition's map before a source offset."""
    _lock_flows(connection, {flow})
    beyond = and_(_is_of((flow, topic, partition)), _SEGMENT.c.source_next > source_next)
    found = _rows_of(connection, beyond)
    _cut(connection, beyond, found, source=source_next, target=max((each.target_next for each in found), default=0))


def sizes_of_flow(connection: Connection, flow: str) -> tuple[MapSize, ...]:
    """Stored size of each partition of a flow, by topic and partition."""
    columns = _SEGMENT.c
    names = func.length(columns.flow) + func.length(columns.topic) + func.length(columns.run_id)
    stored = func.coalesce(func.length(columns.runs), 0) + names + _FIXED_BYTES
    query = (
        select(
            columns.flow,
            columns.topic,
            columns.partition,
            func.count().label("segments"),
            _sum(columns.records).label("records"),
            func.min(columns.source_first).label("source_first"),
            func.max(columns.source_next).label("source_next"),
            func.min(columns.target_first).label("target_first"),
            func.max(columns.target_next).label("target_next"),
            _sum(stored).label("bytes"),
        )
        .where(columns.flow == flow)
        .group_by(columns.flow, columns.topic, columns.partition)
        .order_by(columns.topic, columns.partition)
    )
    return tuple(MapSize(**row) for row in connection.execute(query).mappings())


def _sum(values: ColumnElement[int]) -> ColumnElement[int]:
    # PostgreSQL returns the sum of big integers as a decimal.
    return func.sum(values).cast(BigInteger)


def of_partition(connection: Connection, flow: str, topic: str, partition: int) -> tuple[SegmentRow, ...]:
    """A partition's map in ascending order."""
    columns = _SEGMENT.c
    query = select(_SEGMENT).where(_is_of((flow, topic, partition))).order_by(columns.source_first)
    return tuple(SegmentRow(**row) for row in connection.execute(query).mappings())


def _key(row: SegmentRow) -> _Key:
    return row.flow, row.topic, row.partition


def _is_of(key: _Key) -> ColumnElement[bool]:
    flow, topic, partition = key
    return and_(_SEGMENT.c.flow == flow, _SEGMENT.c.topic == topic, _SEGMENT.c.partition == partition)


def _lock_flows(connection: Connection, flows: Iterable[str]) -> None:
    """Serialize runs that append to one flow: each reads the last rows before it writes. SQLite has a single writer."""
    if connection.dialect.name == "postgresql":
        for flow in sorted(flows):
            lock = text("SELECT pg_advisory_xact_lock(hashtext('mirror offset_segment'), hashtext(:flow))")
            connection.execute(lock, {"flow": flow})


def _tails(connection: Connection, keys: Set[_Key]) -> tuple[dict[_Key, SegmentRow], dict[_Key, int]]:
    """The last row of each partition, with `_SOME_RUNS` in place of its runs, and the number of small rows."""
    topics: dict[str, set[str]] = {}
    for flow, topic, _partition in keys:
        topics.setdefault(flow, set()).add(topic)
    tails: dict[_Key, SegmentRow] = {}
    small_rows: dict[_Key, int] = {}
    for flow, wanted in topics.items():
        ordered = sorted(wanted)
        for start in range(0, len(ordered), _TOPICS_PER_QUERY):
            found = _tails_of_topics(connection, flow, ordered[start : start + _TOPICS_PER_QUERY])
            for row, small in found:
                key = _key(row)
                if key in keys:
                    tails[key], small_rows[key] = row, small
    return tails, small_rows


def _tails_of_topics(connection: Connection, flow: str, topics: Sequence[str]) -> Iterable[tuple[SegmentRow, int]]:
    # Whole topics: PostgreSQL searches one column in a long list quickly, but pairs of columns one by one.
    columns = _SEGMENT.c
    is_small = and_(columns.records < FULL_RECORDS, func.coalesce(func.length(columns.runs), 0) < FULL_BYTES)
    last = (
        select(
            columns.topic,
            columns.partition,
            func.max(columns.source_first).label("source_first"),
            func.sum(case((is_small, 1), else_=0)).label("small"),
        )
        .where(columns.flow == flow, columns.topic.in_(topics))
        .group_by(columns.topic, columns.partition)
        .subquery("last")
    )
    others = [column for column in columns if column.name != "runs"]
    query = (
        select(*others, columns.runs.is_(None).label("dense"), last.c.small)
        .join(last, and_(*(columns[name] == last.c[name] for name in ("topic", "partition", "source_first"))))
        .where(columns.flow == flow)
    )
    for row in connection.execute(query).mappings():
        values = dict(row)
        dense, small = values.pop("dense"), int(values.pop("small"))
        yield SegmentRow(**values, runs=None if dense else _SOME_RUNS), small


def _join(tail: SegmentRow, row: SegmentRow) -> SegmentRow:
    """The new row merged with the row before it if it continues that without a hole, in the same direction."""
    dense = tail.runs is None and row.runs is None
    if is_by_opposite(tail.run_id) != is_by_opposite(row.run_id):
        return row
    if not dense or row.source_first != tail.source_next or row.target_first != tail.target_next:
        return row
    records = tail.records + row.records
    return replace(row, source_first=tail.source_first, target_first=tail.target_first, records=records)


def _is_known_else_cut(connection: Connection, row: SegmentRow) -> bool:
    """Return true if the map contains the row already; otherwise remove what contradicts it."""
    columns = _SEGMENT.c
    in_the_way = and_(
        _is_of(_key(row)), or_(columns.source_next > row.source_first, columns.target_next > row.target_first)
    )
    found = _rows_of(connection, in_the_way)
    if any(holds(each, row) for each in found):
        return True
    _log.warning(
        "flow %s: %s-%d was copied again from source offset %d, to target offset %d: the older map ends before that "
        "offset",
        row.flow,
        row.topic,
        row.partition,
        row.source_first,
        row.target_first,
    )
    _cut(connection, in_the_way, found, source=row.source_first, target=row.target_first)
    return False


def _rows_of(connection: Connection, where: ColumnElement[bool]) -> list[SegmentRow]:
    query = select(_SEGMENT).where(where).order_by(_SEGMENT.c.source_first)
    return [SegmentRow(**each) for each in connection.execute(query).mappings()]


def _cut(
    connection: Connection, where: ColumnElement[bool], found: Sequence[SegmentRow], *, source: int, target: int
) -> None:
    """Remove rows of a partition, except what they have before both offsets."""
    connection.execute(delete(_SEGMENT).where(where))
    # Rows ascend on both sides, so only the first can start before both.
    kept = [cut(each, source=source, target=target) for each in found[:1]]
    upsert(connection, _SEGMENT, [each for each in kept if each is not None])


def forget_routes(connection: Connection, flow: str, source: TopicPartition) -> None:
    """Delete where transforms have sent the records of a source partition."""
    columns = _ROUTED.c
    is_source = and_(columns.topic == source.topic, columns.partition == source.partition)
    connection.execute(delete(_ROUTED).where(columns.flow == flow, is_source))
