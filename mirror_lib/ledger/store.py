"""The ledger: a SQL record of every run, and the offset map. Kafka is the source of truth for positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from mirror_lib.ledger import schema
from mirror_lib.ledger.database import Database
from mirror_lib.ledger.offset_rows import MapSize, PositionRow, RoutedRangeRow, SegmentRow
from mirror_lib.ledger.queries import CopiedRound, LeftOver, MetricsQueries, PageQueries, copy_rounds
from mirror_lib.ledger.rows import (
    CopiedTopic,
    GapRow,
    GapState,
    PartitionRunRow,
    RateClaimRow,
    ReplicatedAclRow,
    RoundRow,
    RunLockRow,
    RunRow,
    RunState,
    SyncTimeRow,
    VerificationRow,
    VerifiedRow,
)
from mirror_lib.ledger.tables import (
    LARGEST,
    Audits,
    Backfills,
    ClusterPairs,
    CutoverCarriers,
    Cutovers,
    DetachedDrivers,
    History,
    LastCopy,
    Observations,
    RateAsk,
    acls,
    gaps,
    locks,
    positions,
    rate_claims,
    rounds,
    routed,
    runs,
    segments,
    verifications,
)
from mirror_lib.topology import TopicPartition


class Ledger:
    """A ledger. Thread-safe; every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: The latest observations of flows.
        self.observations = Observations(database)
        #: Deletes old rows of runs.
        self.history = History(database)
        #: The audit log.
        self.audits = Audits(database)
        self.cutovers = Cutovers(database)
        self.carriers = CutoverCarriers(database)
        self.backfills = Backfills(database)
        #: Drivers for which no task waits in a worker slot.
        self.drivers = DetachedDrivers(database)
        #: The cluster ids that a flow's rows belong to.
        self.cluster_pairs = ClusterPairs(database)
        #: Queries of metrics.
        self.metrics = MetricsQueries(database)
        #: Queries of pages about many flows.
        self.pages = PageQueries(database)

    @classmethod
    def open(cls, url: str) -> Self:
        """Open a ledger at a SQLAlchemy URL of SQLite or PostgreSQL. Connects at the first use.

        Raises:
            LedgerError: the URL names no usable database.
        """
        return cls(Database.open(url))

    def migrate(self) -> None:
        """Create the tables or migrate them to this version; fast if they are up to date."""
        schema.upgrade(self._database)

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start_run(self, *, run_id: str, flow: str, trigger: str, planned_partitions: int = 0) -> RunRow:
        """Record the start of a run; its id must be new."""
        with self._database.write() as connection:
            return runs.start(
                connection, run_id=run_id, flow=flow, trigger=trigger, planned_partitions=planned_partitions
            )

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
        with self._database.write() as connection:
            runs.change(connection, run_id, values)

    def close_dead_runs(self, flow: str, *, living: str | None = None) -> tuple[str, ...]:
        """Mark runs as dead that are `running` without holding their flow's lock.

        Args:
            living: the run that holds the lock, if the caller knows it; else it is read.

        Returns:
            The ids of the marked runs.
        """
        with self._database.write() as connection:
            # Running runs first, lock second: a run that starts in between is not among them.
            running = runs.running_runs(connection, flow)
            if living is None and running:
                lock = locks.find(connection, flow)
                living = None if lock is None else lock.run_id
            return runs.close_dead(connection, [row for row in running if row.id != living])

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
        with self._database.write() as connection:
            runs.finish(connection, run_id, values)

    def run(self, run_id: str) -> RunRow | None:
        """One run; None if there is none with this id."""
        with self._database.read() as connection:
            return runs.find(connection, run_id)

    def runs(self, flow: str | None = None, limit: int = 20, *, trigger: str | None = None) -> tuple[RunRow, ...]:
        """The latest runs, latest first: of one flow, of one trigger, or of all."""
        with self._database.read() as connection:
            return runs.newest(connection, flow=flow, trigger=trigger, limit=limit)

    def save_partition_runs(self, rows: Sequence[PartitionRunRow]) -> None:
        """Insert or replace rows of partitions in rounds; efficient for tens of thousands of rows."""
        with self._database.write() as connection:
            runs.save_partitions(connection, rows)

    def partition_runs(self, run_id: str) -> tuple[PartitionRunRow, ...]:
        """A run's partitions, oldest round first."""
        with self._database.read() as connection:
            return runs.partitions_of(connection, run_id)

    def newest_rounds(self, flow: str, runs: int = 10) -> tuple[CopiedRound, ...]:
        """Rounds of a flow's latest runs with their speed, latest run first; idle runs do not count."""
        with self._database.read() as connection:
            return copy_rounds.newest_rounds(connection, flow, runs)

    def left_over(self) -> dict[str, LeftOver]:
        """The remaining lag of each flow's latest run with partitions, by flow."""
        with self._database.read() as connection:
            return copy_rounds.left_over(connection)

    def save_round(self, row: RoundRow) -> None:
        """Insert or replace a round; its run must exist."""
        with self._database.write() as connection:
            rounds.save(connection, row)

    def rounds(self, flow: str | None = None, limit: int = 20, *, run_id: str | None = None) -> tuple[RoundRow, ...]:
        """The latest rounds, latest first: of a flow, of a run, or of all."""
        with self._database.read() as connection:
            return rounds.newest(connection, flow=flow, run_id=run_id, limit=limit)

    def measured_rounds(self, flow: str, newest: int = 20, largest: int = LARGEST) -> tuple[RoundRow, ...]:
        """Committed rounds of a flow with records: the newest and the largest, newest first, without duplicates."""
        with self._database.read() as connection:
            return rounds.newest_and_largest(connection, flow, newest=newest, largest=largest)

    def save_positions(self, rows: Sequence[PositionRow]) -> None:
        """Insert or replace positions."""
        with self._database.write() as connection:
            positions.save(connection, rows)

    def positions(self, flow: str) -> tuple[PositionRow, ...]:
        """A flow's positions by topic and partition."""
        with self._database.read() as connection:
            return positions.of_flow(connection, flow)

    def append_segments(self, rows: Sequence[SegmentRow]) -> None:
        """Append to the offset map; appending the same rows again has no effect. See `segments.append`."""
        with self._database.write() as connection:
            segments.append(connection, rows)

    def segments(self, flow: str, topic: str, partition: int) -> tuple[SegmentRow, ...]:
        """A partition's offset map in ascending order."""
        with self._database.read() as connection:
            return segments.of_partition(connection, flow, topic, partition)

    def replace_segments(self, flow: str, topic: str, partition: int, rows: Sequence[SegmentRow]) -> None:
        """Replace a partition's offset map; the rows ascend on both sides."""
        with self._database.write() as connection:
            segments.replace_partition(connection, flow, topic, partition, rows)

    def append_routed(self, rows: Sequence[RoutedRangeRow], *, resumed: Iterable[TopicPartition] = ()) -> None:
        """Record where runs have written the records that transforms route; see `routed.append`."""
        with self._database.write() as connection:
            routed.append(connection, rows, resumed=frozenset((each.topic, each.partition) for each in resumed))

    def routed_ranges(self, flow: str) -> tuple[RoutedRangeRow, ...]:
        """The target ranges to which a flow's transforms sent records, by target partition and stretch."""
        with self._database.read() as connection:
            return routed.of_flow(connection, flow)

    def routed_by_others(self, flow: str) -> frozenset[tuple[str, TopicPartition]]:
        """Other flows whose transforms have sent records to partitions of other topics, each with those partitions."""
        with self._database.read() as connection:
            return frozenset(
                (name, TopicPartition(topic, partition))
                for name, topic, partition in routed.of_others(connection, flow)
            )

    def cut_segments(self, flow: str, topic: str, partition: int, source_next: int) -> None:
        """End a partition's offset map before a source offset."""
        with self._database.write() as connection:
            segments.cut_partition(connection, flow, topic, partition, source_next)

    def compact_segments(self, flow: str, topic: str, partition: int) -> int:
        """Merge the rows of a partition's offset map; return how many fewer. `append_segments` does so when needed."""
        with self._database.write() as connection:
            return segments.compact(connection, flow, topic, partition)

    def map_sizes(self, flow: str) -> tuple[MapSize, ...]:
        """Stored size of a flow's offset map by topic and partition; fast, since no map is read."""
        with self._database.read() as connection:
            return segments.sizes_of_flow(connection, flow)

    def record_gap(self, row: GapRow) -> GapRow:
        """Record a gap; return its row, which is an older one if the same gap is already open."""
        with self._database.write() as connection:
            return gaps.record(connection, row)

    def gaps(self, flow: str, limit: int | None = 100) -> tuple[GapRow, ...]:
        """A flow's latest gaps, latest first; all of them without a limit."""
        with self._database.read() as connection:
            return gaps.of_flow(connection, flow, state=None, limit=limit)

    def open_gaps(self, flow: str) -> tuple[GapRow, ...]:
        """A flow's gaps without a resolution, latest first."""
        with self._database.read() as connection:
            return gaps.of_flow(connection, flow, state=GapState.OPEN, limit=None)

    def decide_gap(self, gap_id: str, state: GapState, *, by: str, note: str | None = None) -> GapRow:
        """Record the resolution of a gap, by whom and when; `OPEN` withdraws one. Return the updated row.

        Earlier resolutions stay in the note.

        Raises:
            LedgerError: there is no such gap.
        """
        with self._database.write() as connection:
            return gaps.decide(connection, gap_id, state, by=by, note=note)

    def stopped_partitions(self, flow: str) -> frozenset[TopicPartition]:
        """Source partitions that an operator has excluded from replication."""
        with self._database.read() as connection:
            return frozenset(TopicPartition(*place) for place in gaps.stopped_partitions(connection, flow))

    def last_copies(self, flow: str, topics: Iterable[str]) -> Mapping[tuple[str, int], LastCopy]:
        """The last copy of each partition of some topics, by topic and partition."""
        with self._database.read() as connection:
            return gaps.last_copies(connection, flow, topics)

    def copied_topics(self, flow: str, since: datetime) -> tuple[CopiedTopic, ...]:
        """Topics that a flow's runs have copied since a moment, with their target topics."""
        with self._database.read() as connection:
            return runs.copied_topics(connection, flow, since)

    def acquire_lock(
        self, *, flow: str, run_id: str, holder: str, lease_seconds: float, instead_of: RunLockRow | None = None
    ) -> RunLockRow:
        """Acquire a flow's run lock if it is available; return its holder. See `locks.acquire`."""
        with self._database.write() as connection:
            return locks.acquire(
                connection,
                flow=flow,
                run_id=run_id,
                holder=holder,
                lease_seconds=lease_seconds,
                instead_of=instead_of,
            )

    def renew_lock(self, *, flow: str, run_id: str, holder: str) -> bool:
        """Renew the lease of a run lock; false if this holder no longer has the lock."""
        with self._database.write() as connection:
            return locks.renew(connection, flow=flow, run_id=run_id, holder=holder)

    def release_lock(self, *, flow: str, run_id: str, holder: str) -> None:
        """Release a run lock; no effect if this holder no longer has it."""
        with self._database.write() as connection:
            locks.release(connection, flow=flow, run_id=run_id, holder=holder)

    def claim_rate(
        self, *, flow: str, run_id: str, wanted: int | None, asks: Sequence[RateAsk]
    ) -> tuple[RateClaimRow, ...]:
        """Claim a run's share of the limits that it must keep; see `rate_claims.claim`."""
        with self._database.write() as connection:
            return rate_claims.claim(connection, flow=flow, run_id=run_id, wanted=wanted, asks=asks)

    def release_rate(self, *, flow: str, run_id: str) -> None:
        """Release a run's shares; no effect if it has none."""
        with self._database.write() as connection:
            rate_claims.release(connection, flow=flow, run_id=run_id)

    def rate_claims(self) -> tuple[RateClaimRow, ...]:
        """The shares of cluster limits that current runs hold."""
        with self._database.read() as connection:
            return rate_claims.live_claims(connection)

    def lock_holder(self, flow: str) -> RunLockRow | None:
        """The holder of a flow's run lock; None if the lock is free or its lease has expired."""
        with self._database.read() as connection:
            return locks.find(connection, flow)

    def lock_holders(self) -> dict[str, RunLockRow]:
        """The holder of the run lock of each flow, by flow, as `lock_holder`."""
        with self._database.read() as connection:
            return locks.live_locks(connection)

    def dead_runs(self, rows: Iterable[RunRow]) -> frozenset[str]:
        """Ids of the given runs that died without recording their end. Detected when the lease of their lock expires.

        Args:
            rows: runs that were read before.
        """
        running = [row for row in rows if row.state == RunState.RUNNING]
        if not running:
            return frozenset()
        with self._database.read() as connection:
            held = locks.live_locks(connection)
            suspects = [row.id for row in running if row.has_died(held.get(row.flow))]
            # A run records its end before it releases its lock.
            found = [runs.find(connection, run_id) for run_id in suspects]
        return frozenset(row.id for row in found if row is not None and row.state == RunState.RUNNING)

    def save_acls(self, rows: Iterable[ReplicatedAclRow]) -> None:
        """Insert or replace rows of ACLs on the target."""
        with self._database.write() as connection:
            acls.save(connection, rows)

    def forget_acls(self, rows: Iterable[ReplicatedAclRow]) -> None:
        """Remove rows of ACLs that the replicator has not created on the target and that no cutover waits for."""
        with self._database.write() as connection:
            acls.forget(connection, rows)

    def acls(self, flow: str) -> tuple[ReplicatedAclRow, ...]:
        """The ACLs that a flow created on its target or keeps for the cutover."""
        with self._database.read() as connection:
            return acls.of_flow(connection, flow)

    def note_sync(self, flow: str, step: str, begun_at: datetime) -> None:
        """Record when a step with its own interval began, after it succeeded."""
        with self._database.write() as connection:
            acls.note_time(connection, SyncTimeRow(flow=flow, step=step, begun_at=begun_at))

    def last_sync(self, flow: str, step: str) -> datetime | None:
        """When the last successful run of a step began."""
        with self._database.read() as connection:
            return acls.time_of(connection, flow, step)

    def save_verifications(self, rows: Iterable[VerificationRow]) -> None:
        """Insert or replace results of a verification."""
        with self._database.write() as connection:
            verifications.save(connection, rows)

    def verifications(self, flow: str, limit: int = 100) -> tuple[VerificationRow, ...]:
        """The latest rows of a flow's verifications, latest first."""
        with self._database.read() as connection:
            return verifications.newest(connection, flow, limit=limit)

    def verification(self, verification_id: str) -> tuple[VerificationRow, ...]:
        """The results of one verification, by partition."""
        with self._database.read() as connection:
            return verifications.of_id(connection, verification_id)

    def verified_up_to(self, flow: str) -> tuple[VerifiedRow, ...]:
        """Up to where each partition was found equal since its last difference, and when."""
        with self._database.read() as connection:
            return verifications.verified_up_to(connection, flow)
