"""The ledger: a SQL record of every run, and the offset map. Kafka is the source of truth for positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sqlalchemy import Connection

from mirror_lib.ledger import schema
from mirror_lib.ledger.database import Database
from mirror_lib.ledger.feature_tables import Migrations, features_with_tables
from mirror_lib.ledger.queries import copy_rounds
from mirror_lib.ledger.rows import GapRow, GapState, RunRow, RunState, SyncTimeRow
from mirror_lib.ledger.tables import acls as acl_table
from mirror_lib.ledger.tables import gaps as gap_table
from mirror_lib.ledger.tables import known_topics as known_topic_table
from mirror_lib.ledger.tables import locks as lock_table
from mirror_lib.ledger.tables import positions as position_table
from mirror_lib.ledger.tables import rate_claims as rate_table
from mirror_lib.ledger.tables import rounds as round_table
from mirror_lib.ledger.tables import runs as run_table
from mirror_lib.ledger.tables import segments as segment_table
from mirror_lib.ledger.tables import transaction_counts as transaction_count_table
from mirror_lib.ledger.tables.audits import Audits
from mirror_lib.ledger.tables.cluster_pairs import ClusterPairs
from mirror_lib.ledger.tables.handovers import HandoverRecords
from mirror_lib.ledger.tables.history import History
from mirror_lib.ledger.tables.observations import Observations
from mirror_lib.topology.names import TopicPartition

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def _reads(query: Callable[Concatenate[Connection, _Given], _Result]) -> Callable[Concatenate[Ledger, _Given], _Result]:
    """Return a query as a method of the ledger."""

    @wraps(query)
    def method(ledger: Ledger, /, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        with ledger.database.read() as connection:
            return query(connection, *given, **named)

    return method


def _writes(
    change: Callable[Concatenate[Connection, _Given], _Result],
) -> Callable[Concatenate[Ledger, _Given], _Result]:
    """Return a change of tables as a method of the ledger: one transaction."""

    @wraps(change)
    def method(ledger: Ledger, /, *given: _Given.args, **named: _Given.kwargs) -> _Result:
        with ledger.database.write() as connection:
            return change(connection, *given, **named)

    return method


class Ledger:
    """A ledger. Thread-safe; every method is one transaction and raises `LedgerError`.

    Most methods are functions of the modules of tables: their docstrings say more.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        #: The latest observations of flows.
        self.observations = Observations(database)
        #: Deletes old rows of runs.
        self.history = History(database)
        #: The audit log.
        self.audits = Audits(database)
        #: What runs read of cutovers.
        self.handovers = HandoverRecords(database)
        #: The cluster ids that a flow's rows belong to.
        self.cluster_pairs = ClusterPairs(database)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open a ledger at a SQLAlchemy URL of SQLite or PostgreSQL. Connects at the first use.

        Raises:
            LedgerError: the URL names no usable database.
        """
        return cls(Database.open(url))

    def migrate(self, of_feature: Migrations | None = None) -> None:
        """Create the tables, or those of a feature, or migrate them to this version; fast if they are up to date."""
        schema.upgrade(self.database, of_feature)

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    features_with_tables = _reads(features_with_tables)

    start_run = _writes(run_table.start)
    run = _reads(run_table.find)
    count_runs = _reads(run_table.count)
    knows_run = _reads(run_table.exists)
    runs = _reads(run_table.newest)
    save_partition_runs = _writes(run_table.save_partitions)
    partition_runs = _reads(run_table.partitions_of)
    copied_topics = _reads(run_table.copied_topics)
    newest_rounds = _reads(copy_rounds.newest_rounds)
    flow_lags = _reads(copy_rounds.flow_lags)
    save_round = _writes(round_table.save)
    rounds = _reads(round_table.newest)
    measured_rounds = _reads(round_table.newest_and_largest)

    save_known_topics = _writes(known_topic_table.save)
    known_topics = _reads(known_topic_table.of_flow)

    save_positions = _writes(position_table.save)
    commit_positions = _writes(position_table.commit)
    save_claims = _writes(position_table.save_claims)
    forget_positions = _writes(position_table.forget)
    positions = _reads(position_table.of_flow)
    copied_flows = _reads(position_table.copied_flows)
    known_positions = _reads(position_table.known_of_flow)
    append_segments = _writes(segment_table.append)
    segments = _reads(segment_table.of_partition)
    replace_segments = _writes(segment_table.replace_partition)
    cut_segments = _writes(segment_table.cut_partition)
    compact_segments = _writes(segment_table.compact)
    map_sizes = _reads(segment_table.sizes_of_flow)
    save_transaction_counts = _writes(transaction_count_table.save)
    transaction_counts = _reads(transaction_count_table.of_flow)
    forget_routes = _writes(segment_table.forget_routes)

    record_gap = _writes(gap_table.record)
    add_gaps = _writes(gap_table.add)
    open_gaps_by_cause = _reads(gap_table.open_by_cause)
    deleted_topics = _reads(gap_table.deleted_topics)
    gaps_of_cause = _reads(gap_table.of_cause)
    decide_gap = _writes(gap_table.decide)
    decide_gaps = _writes(gap_table.decide_all)
    last_copies = _reads(gap_table.last_copies)

    acquire_lock = _writes(lock_table.acquire)
    renew_lock = _writes(lock_table.renew)
    release_lock = _writes(lock_table.release)
    lock_holder = _reads(lock_table.find)
    lock_holders = _reads(lock_table.live_locks)
    claim_rate = _writes(rate_table.claim)
    release_rate = _writes(rate_table.release)
    rate_claims = _reads(rate_table.live_claims)

    save_acls = _writes(acl_table.save)
    forget_acls = _writes(acl_table.forget)
    acls = _reads(acl_table.of_flow)
    last_sync = _reads(acl_table.time_of)

    def heartbeat(
        self,
        run_id: str,
        *,
        rounds: int | None = None,
        planned_partitions: int | None = None,
        records: int | None = None,
        bytes: int | None = None,
    ) -> None:
        """Record that a run is alive and, if given, its progress."""
        values = {"rounds": rounds, "planned_partitions": planned_partitions, "records": records, "bytes": bytes}
        with self.database.write() as connection:
            run_table.change(connection, run_id, values)

    def close_dead_runs(self, flow: str, *, living: str | None = None) -> tuple[str, ...]:
        """Mark runs as dead that are `running` without holding their flow's lock.

        Args:
            living: the run that holds the lock, if the caller knows it; else it is read.

        Returns:
            The ids of the marked runs.
        """
        with self.database.write() as connection:
            # Running runs first, lock second: a run that starts in between is not among them.
            running = run_table.running_runs(connection, flow)
            if living is None and running:
                lock = lock_table.find(connection, flow)
                living = None if lock is None else lock.run_id
            return run_table.close_dead(connection, [row for row in running if row.id != living])

    def finish_run(
        self,
        run_id: str,
        *,
        state: str,
        rounds: int | None = None,
        planned_partitions: int | None = None,
        records: int | None = None,
        bytes: int | None = None,
        error: Mapping[str, Any] | None = None,
    ) -> None:
        """Record the end of a run.

        Args:
            run_id: as given to `start_run`.
            state: one of `rows.RunState`.
            rounds: if not given, this and the next three are summed up from the run's partitions.
            planned_partitions: partitions with something to copy.
            records: records copied.
            bytes: bytes of record batches written.
            error: `MirrorError.attributes()` of the first error.
        """
        values = {
            "state": state,
            "rounds": rounds,
            "planned_partitions": planned_partitions,
            "records": records,
            "bytes": bytes,
            "error": None if error is None else dict(error),
        }
        with self.database.write() as connection:
            run_table.finish(connection, run_id, values)

    def gaps(self, flow: str, limit: int | None = 100) -> tuple[GapRow, ...]:
        """A flow's latest gaps, latest first; all of them without a limit."""
        with self.database.read() as connection:
            return gap_table.of_flow(connection, flow, state=None, limit=limit)

    def open_gaps(self, flow: str) -> tuple[GapRow, ...]:
        """A flow's gaps without a resolution, latest first."""
        with self.database.read() as connection:
            return gap_table.of_flow(connection, flow, state=GapState.OPEN, limit=None)

    def stopped_gaps(self, flow: str) -> tuple[GapRow, ...]:
        """A flow's gaps of partitions that an operator has excluded from replication, latest first."""
        with self.database.read() as connection:
            return gap_table.of_flow(connection, flow, state=GapState.STOPPED, limit=None)

    def stopped_partitions(self, flow: str) -> frozenset[TopicPartition]:
        """Source partitions that an operator has excluded from replication."""
        with self.database.read() as connection:
            return frozenset(TopicPartition(*place) for place in gap_table.stopped_partitions(connection, flow))

    def dead_runs(self, rows: Iterable[RunRow]) -> frozenset[str]:
        """Ids of the given runs that died without recording their end. Detected when the lease of their lock expires.

        Args:
            rows: runs that were read before.
        """
        running = [row for row in rows if row.state == RunState.RUNNING]
        if not running:
            return frozenset()
        with self.database.read() as connection:
            held = lock_table.live_locks(connection)
            suspects = [row.id for row in running if row.has_died(held.get(row.flow))]
            # A run records its end before it releases its lock.
            found = [run_table.find(connection, run_id) for run_id in suspects]
        return frozenset(row.id for row in found if row is not None and row.state == RunState.RUNNING)

    def note_sync(self, flow: str, step: str, begun_at: datetime) -> None:
        """Record when a step with its own interval began, after it succeeded."""
        with self.database.write() as connection:
            acl_table.note_time(connection, SyncTimeRow(flow=flow, step=step, begun_at=begun_at))
