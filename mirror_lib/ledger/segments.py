"""The table `offset_segment`: what is appended continues the last row of its partition whenever it can.

So a partition without holes has one row for ever. Rows of a partition always ascend on both sides.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, Table, and_, delete, func, or_, select, text

from mirror_lib.ledger.models import OffsetSegment
from mirror_lib.ledger.rows import SegmentRow
from mirror_lib.ledger.writing import upsert

_log = logging.getLogger(__name__)
_SEGMENT: Table = OffsetSegment.metadata.tables["offset_segment"]
_TOPICS_PER_QUERY = 500
#: Stands for runs that were not read; only whether there are any matters for the last row of a partition.
_SOME_RUNS = b""

#: Flow, topic, partition.
_Key = tuple[str, str, int]


def append(connection: Connection, rows: Sequence[SegmentRow]) -> None:
    """Add segments in their order.

    Rows that are there already, alone or as part of a longer one, change nothing. A row that begins before the end of
    its partition's map on either side tells that the topic was created anew, or copied again from an earlier position:
    the newest copy counts, as in MM2's `OffsetSyncStore`, and what it contradicts is removed.
    """
    rows = [row for row in rows if row.records]
    _lock_flows(connection, {row.flow for row in rows})
    tails = _tails(connection, {_key(row) for row in rows})
    changed: dict[tuple[_Key, int], SegmentRow] = {}
    for row in rows:
        key = _key(row)
        tail = tails.get(key)
        if tail is not None and (row.source_first < tail.source_next or row.target_first < tail.target_next):
            upsert(connection, _SEGMENT, changed.values())
            changed.clear()
            if _is_known_else_cut(connection, row):
                continue
            tail = _tails(connection, {key}).get(key)
        stored = row if tail is None else _joined(tail, row)
        tails[key] = changed[key, stored.source_first] = stored
    upsert(connection, _SEGMENT, changed.values())


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
    """Two runs that append to one flow take turns: each reads the last rows before it writes. SQLite has one writer."""
    if connection.dialect.name == "postgresql":
        for flow in sorted(flows):
            lock = text("SELECT pg_advisory_xact_lock(hashtext('mirror offset_segment'), hashtext(:flow))")
            connection.execute(lock, {"flow": flow})


def _tails(connection: Connection, keys: Set[_Key]) -> dict[_Key, SegmentRow]:
    """The last row of each partition, with `_SOME_RUNS` in place of its runs."""
    topics: dict[str, set[str]] = {}
    for flow, topic, _partition in keys:
        topics.setdefault(flow, set()).add(topic)
    tails: dict[_Key, SegmentRow] = {}
    for flow, wanted in topics.items():
        ordered = sorted(wanted)
        for start in range(0, len(ordered), _TOPICS_PER_QUERY):
            found = _tails_of_topics(connection, flow, ordered[start : start + _TOPICS_PER_QUERY])
            tails.update((key, row) for row in found if (key := _key(row)) in keys)
    return tails


def _tails_of_topics(connection: Connection, flow: str, topics: Sequence[str]) -> Iterable[SegmentRow]:
    # Whole topics: PostgreSQL looks up one column in a long list quickly, and pairs of columns one by one.
    columns = _SEGMENT.c
    last = (
        select(columns.topic, columns.partition, func.max(columns.source_first).label("source_first"))
        .where(columns.flow == flow, columns.topic.in_(topics))
        .group_by(columns.topic, columns.partition)
        .subquery("last")
    )
    others = [column for column in columns if column.name != "runs"]
    query = (
        select(*others, columns.runs.is_(None).label("dense"))
        .join(last, and_(*(columns[name] == last.c[name] for name in ("topic", "partition", "source_first"))))
        .where(columns.flow == flow)
    )
    for row in connection.execute(query).mappings():
        values = dict(row)
        dense = values.pop("dense")
        yield SegmentRow(**values, runs=None if dense else _SOME_RUNS)


def _joined(tail: SegmentRow, row: SegmentRow) -> SegmentRow:
    """The row, as part of the one before it where it continues that without a hole."""
    dense = tail.runs is None and row.runs is None
    if not dense or row.source_first != tail.source_next or row.target_first != tail.target_next:
        return row
    records = tail.records + row.records
    return replace(row, source_first=tail.source_first, target_first=tail.target_first, records=records)


def _is_known_else_cut(connection: Connection, row: SegmentRow) -> bool:
    """Whether the map holds the row already; if not, what stands in its way is removed."""
    columns = _SEGMENT.c
    in_the_way = and_(
        _is_of(_key(row)), or_(columns.source_next > row.source_first, columns.target_next > row.target_first)
    )
    query = select(_SEGMENT).where(in_the_way).order_by(columns.source_first)
    found = [SegmentRow(**each) for each in connection.execute(query).mappings()]
    if any(_holds(each, row) for each in found):
        return True
    _log.warning(
        "flow %s: %s-%d was copied again from source offset %d on, to target offset %d: the older map ends before that",
        row.flow,
        row.topic,
        row.partition,
        row.source_first,
        row.target_first,
    )
    connection.execute(delete(_SEGMENT).where(in_the_way))
    # Rows ascend on both sides, so only the first can begin before the new one on both.
    upsert(connection, _SEGMENT, [cut for each in found[:1] if (cut := _cut(each, row)) is not None])
    return False


def _holds(old: SegmentRow, row: SegmentRow) -> bool:
    if old.runs is not None or row.runs is not None:
        return old == replace(row, run_id=old.run_id)
    within = old.source_first <= row.source_first and row.source_next <= old.source_next
    return within and old.target_first - old.source_first == row.target_first - row.source_first


def _cut(old: SegmentRow, row: SegmentRow) -> SegmentRow | None:
    """What of an older row comes before the new one; a row with holes goes as a whole."""
    count = min(row.source_first - old.source_first, row.target_first - old.target_first)
    if count <= 0 or old.runs is not None:
        return None
    return replace(old, source_next=old.source_first + count, target_next=old.target_first + count, records=count)
