"""Retention of the rows of old runs: with a run every minute these tables would grow without limit.

The rows of the runs themselves stay, one for each: they contain the totals since the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import Connection, Delete, Table, and_, delete, select, tuple_

from mirror_lib.ledger.database import Database
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import SyncTimeRow
from mirror_lib.ledger.tables import acls, rounds

_RUNS: Table = METADATA.tables["run"]
_PARTITION_RUNS: Table = METADATA.tables["partition_run"]
_ROUNDS: Table = METADATA.tables["round"]
_POSITIONS: Table = METADATA.tables["position"]
#: The name of this step among the steps with an interval.
_STEP = "forget_history"
_INTERVAL = timedelta(days=1)
#: Limits the length of a transaction: other writers wait for it, with SQLite all of them.
_RUNS_AT_ONCE = 100


class Forgotten(NamedTuple):
    """Numbers of deleted rows."""

    partition_runs: int
    rounds: int


class History:
    """Retention of runs. Raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def forget(self, flow: str, *, keep: timedelta, now: datetime) -> Forgotten:
        """Delete rows of partitions and rounds of runs that began before `keep`; at most once a day.

        For each partition, the rows of its latest committed run and of later attempts stay. Of the rounds, the largest
        stay.

        Args:
            keep: how long all rows are kept.
        """
        before = now - keep
        with self._database.read() as connection:
            done_before = acls.time_of(connection, flow, _STEP)
            if done_before is not None and before - done_before < _INTERVAL:
                return Forgotten(0, 0)
            old = _old_runs(connection, flow, since=done_before, before=before)
            largest = [(row.run_id, row.number) for row in rounds.largest_of(connection, flow)]
        partition_runs = of_rounds = 0
        for first in range(0, len(old), _RUNS_AT_ONCE):
            ids = old[first : first + _RUNS_AT_ONCE]
            with self._database.write() as connection:
                partition_runs += connection.execute(_delete_superseded(ids)).rowcount
                of_rounds += connection.execute(_delete_rounds(ids, largest)).rowcount
        with self._database.write() as connection:
            acls.note_time(connection, SyncTimeRow(flow=flow, step=_STEP, begun_at=before))
        return Forgotten(partition_runs, of_rounds)


def _old_runs(connection: Connection, flow: str, *, since: datetime | None, before: datetime) -> list[str]:
    columns = _RUNS.c
    query = select(columns.id).where(columns.flow == flow, columns.started_at < before).order_by(columns.started_at)
    if since is not None:
        query = query.where(columns.started_at >= since)
    return list(connection.scalars(query))


def _delete_superseded(run_ids: Sequence[str]) -> Delete:
    """Delete the rows of partitions whose positions were committed by later runs."""
    mine, later = _RUNS.alias("mine"), _RUNS.alias("later")
    row, position = _PARTITION_RUNS.c, _POSITIONS.c
    committed_later = (
        select(position.run_id)
        .join(later, later.c.id == position.run_id)
        .join(mine, and_(mine.c.id == row.run_id, mine.c.flow == position.flow))
        .where(position.topic == row.topic, position.partition == row.partition)
        .where(later.c.started_at > mine.c.started_at)
        .correlate(_PARTITION_RUNS)
        .exists()
    )
    return delete(_PARTITION_RUNS).where(row.run_id.in_(run_ids), committed_later)


def _delete_rounds(run_ids: Sequence[str], kept: Sequence[tuple[str, int]]) -> Delete:
    columns = _ROUNDS.c
    statement = delete(_ROUNDS).where(columns.run_id.in_(run_ids))
    return statement.where(tuple_(columns.run_id, columns.number).not_in(kept)) if kept else statement
