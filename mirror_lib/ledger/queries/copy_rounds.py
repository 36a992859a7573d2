"""Copy speed and remaining lag of earlier runs, aggregated by the database."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Table, case, func, select

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import PartitionRunState

_RUN: Table = METADATA.tables["run"]
_PARTITION_RUN: Table = METADATA.tables["partition_run"]
#: Rows of partitions that are still being copied have no seconds yet.
_ENDED = (PartitionRunState.DONE.value, PartitionRunState.FAILED.value)


class CopiedRound(NamedTuple):
    """One round of a run over all its partitions."""

    run_id: str
    started_at: datetime
    records: int
    bytes: int
    #: Of the slowest partition.
    seconds: float
    #: The fastest partition's.
    partition_bytes_per_second: float
    partition_records_per_second: float


class FlowLag(NamedTuple):
    """The planned lag of a flow's latest run that is not copied yet, in source offsets."""

    flow: str
    run_id: str
    partitions: int
    planned: int
    lag_offsets: int
    #: Partitions that still have lag.
    lagging_partitions: int
    #: When the latest row was stored.
    updated_at: datetime


def newest_rounds(connection: Connection, flow: str, runs: int = 10) -> tuple[CopiedRound, ...]:
    """Rounds of a flow's latest runs with their speed, latest run first; idle runs do not count."""
    columns = _PARTITION_RUN.c
    newest = (
        select(_RUN.c.id, _RUN.c.started_at)
        .where(_RUN.c.flow == flow, _RUN.c.records > 0)
        .order_by(_RUN.c.started_at.desc(), _RUN.c.id)
        .limit(runs)
        .subquery("newest")
    )
    query = (
        select(
            newest.c.id,
            newest.c.started_at,
            func.sum(columns.records),
            func.sum(columns.bytes),
            func.max(columns.seconds),
            func.max(columns.bytes / columns.seconds),
            func.max(columns.records / columns.seconds),
        )
        .join(newest, newest.c.id == columns.run_id)
        .where(columns.state.in_(_ENDED), columns.seconds > 0)
        .group_by(newest.c.id, newest.c.started_at, columns.round)
        .order_by(newest.c.started_at.desc(), newest.c.id, columns.round)
    )
    return tuple(
        CopiedRound(run, started, int(records), int(size), seconds, float(fastest), float(most))
        for run, started, records, size, seconds, fastest, most in connection.execute(query)
    )


def flow_lags(connection: Connection) -> dict[str, FlowLag]:
    """The remaining lag of each flow's latest run with partitions, by flow."""
    columns = _PARTITION_RUN.c
    with_rows = select(columns.run_id).where(columns.run_id == _RUN.c.id).exists()
    age = func.row_number().over(partition_by=_RUN.c.flow, order_by=(_RUN.c.started_at.desc(), _RUN.c.id))
    ranked = select(_RUN.c.id, _RUN.c.flow, age.label("age")).where(with_rows).subquery("ranked")
    newest_round = func.row_number().over(
        partition_by=(columns.run_id, columns.topic, columns.partition), order_by=columns.round.desc()
    )
    # During a round, only the target's log end shows the progress.
    reached = columns.start_offset + columns.target_next - columns.target_first
    next_offset = case((columns.state.in_(_ENDED), columns.source_next), else_=reached)
    rows = (
        select(
            ranked.c.flow,
            columns.run_id,
            (columns.end_offset - columns.start_offset).label("planned"),
            case((next_offset < columns.end_offset, columns.end_offset - next_offset), else_=0).label("remaining"),
            columns.updated_at,
            newest_round.label("place"),
        )
        .join(ranked, ranked.c.id == columns.run_id)
        .where(ranked.c.age == 1)
        .subquery("rows")
    )
    query = (
        select(
            rows.c.flow,
            rows.c.run_id,
            func.count().label("partitions"),
            func.sum(rows.c.planned).label("planned"),
            func.sum(rows.c.remaining).label("remaining"),
            func.sum(case((rows.c.remaining > 0, 1), else_=0)).label("lagging"),
            func.max(rows.c.updated_at).label("updated_at"),
        )
        .where(rows.c.place == 1)
        .group_by(rows.c.flow, rows.c.run_id)
        .order_by(rows.c.flow)
    )
    return {
        flow: FlowLag(flow, run_id, partitions, int(planned), int(lag), int(lagging), updated_at)
        for flow, run_id, partitions, planned, lag, lagging, updated_at in connection.execute(query)
    }
