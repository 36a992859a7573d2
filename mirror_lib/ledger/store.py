"""The ledger: what every run did, in SQL, for people, reports and the offset map. Positions are true in Kafka."""

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
    """One ledger. Threads may share it; every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        #: Where flows stood when they were looked at last.
        self.observations = Observations(database)
        #: How long what runs did is kept.
        self.history = History(database)
        #: What people did.
        self.audits = Audits(database)
        self.cutovers = Cutovers(database)
        self.carriers = CutoverCarriers(database)
        self.backfills = Backfills(database)
        #: Which clusters a flow's rows are about.
        self.cluster_pairs = ClusterPairs(database)
        #: What metrics are made of.
        self.metrics = MetricsQueries(database)
        #: What pages about many flows ask.
        self.pages = PageQueries(database)

    @classmethod
    def open(cls, url: str) -> Self:
        """A ledger at an SQLAlchemy URL of SQLite or PostgreSQL. Connects at the first use.

        Raises:
            LedgerError: the URL names no usable database.
        """
        return cls(Database.open(url))

    @property
    def shown(self) -> str:
        """Where the ledger is, for people: its URL without secrets."""
        return self._database.shown

    def migrate(self) -> None:
        """Create the tables or bring them up to date; quick when they are."""
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
        """Note that a run begins; its id must be new."""
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
        """Say that a run lives, and how far it is where that is given."""
        values = {"rounds": rounds, "planned_partitions": planned_partitions, "records": records, "bytes": bytes}
        with self._database.write() as connection:
            runs.change(connection, run_id, values)

    def close_dead_runs(self, flow: str, *, living: str | None = None) -> tuple[str, ...]:
        """Note of runs that are still `running`, and do not hold their flow's lock, that they have died.

        Args:
            living: the run that holds the lock, where the caller knows; else it is looked at.

        Returns:
            The ids of those that are closed.
        """
        with self._database.write() as connection:
            # Which there are before who lives: one that begins in between is not among them.
            running = runs.running(connection, flow)
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
        """Note that a run has ended.

        Args:
            run_id: as given to `start_run`.
            state: one of `rows.RunState`.
            rounds: this and the next three are added up from the run's partitions where they are not given.
            planned_partitions: partitions that had something to copy.
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
        """One run, None when there is no such."""
        with self._database.read() as connection:
            return runs.find(connection, run_id)

    def runs(self, flow: str | None = None, limit: int = 20, *, trigger: str | None = None) -> tuple[RunRow, ...]:
        """The newest runs, newest first: of one flow, or of one starter, or all."""
        with self._database.read() as connection:
            return runs.newest(connection, flow=flow, trigger=trigger, limit=limit)

    def latest_runs(self) -> dict[str, RunRow]:
        """The newest run of every flow, by flow."""
        with self._database.read() as connection:
            return runs.latest_per_flow(connection)

    def save_partition_runs(self, rows: Sequence[PartitionRunRow]) -> None:
        """Insert or replace what is known of partitions in rounds of runs; made for tens of thousands of rows."""
        with self._database.write() as connection:
            runs.save_partitions(connection, rows)

    def partition_runs(self, run_id: str) -> tuple[PartitionRunRow, ...]:
        """A run's partitions, oldest round first."""
        with self._database.read() as connection:
            return runs.partitions_of(connection, run_id)

    def newest_rounds(self, flow: str, runs: int = 10) -> tuple[CopiedRound, ...]:
        """What the rounds of a flow's newest runs copied in which time, newest run first; idle runs do not count."""
        with self._database.read() as connection:
            return copy_rounds.newest_rounds(connection, flow, runs)

    def left_over(self) -> dict[str, LeftOver]:
        """What the newest run of every flow had to copy and has not copied yet, by flow."""
        with self._database.read() as connection:
            return copy_rounds.left_over(connection)

    def save_round(self, row: RoundRow) -> None:
        """Insert or replace what is known of a round; its run must be known."""
        with self._database.write() as connection:
            rounds.save(connection, row)

    def rounds(self, flow: str | None = None, limit: int = 20, *, run_id: str | None = None) -> tuple[RoundRow, ...]:
        """The newest rounds, newest first: of a flow, of a run, or of all."""
        with self._database.read() as connection:
            return rounds.newest(connection, flow=flow, run_id=run_id, limit=limit)

    def measured_rounds(self, flow: str, newest: int = 20, largest: int = LARGEST) -> tuple[RoundRow, ...]:
        """Committed rounds of a flow that copied something: the newest and the largest, newest first, each once."""
        with self._database.read() as connection:
            return rounds.measured(connection, flow, newest=newest, largest=largest)

    def save_positions(self, rows: Sequence[PositionRow]) -> None:
        """Insert or replace positions."""
        with self._database.write() as connection:
            positions.save(connection, rows)

    def positions(self, flow: str) -> tuple[PositionRow, ...]:
        """A flow's positions by topic and partition."""
        with self._database.read() as connection:
            return positions.of_flow(connection, flow)

    def append_segments(self, rows: Sequence[SegmentRow]) -> None:
        """Add to the offset map; appending the same again changes nothing. See `segments.append`."""
        with self._database.write() as connection:
            segments.append(connection, rows)

    def segments(self, flow: str, topic: str, partition: int) -> tuple[SegmentRow, ...]:
        """A partition's offset map in ascending order."""
        with self._database.read() as connection:
            return segments.of_partition(connection, flow, topic, partition)

    def replace_segments(self, flow: str, topic: str, partition: int, rows: Sequence[SegmentRow]) -> None:
        """Put another offset map in the place of a partition's; the rows ascend on both sides."""
        with self._database.write() as connection:
            segments.replace_partition(connection, flow, topic, partition, rows)

    def append_routed(self, rows: Sequence[RoutedRangeRow], *, resumed: Iterable[TopicPartition] = ()) -> None:
        """Note where runs have written what transforms send to other partitions; see `routed.append`."""
        with self._database.write() as connection:
            routed.append(connection, rows, resumed=frozenset((each.topic, each.partition) for each in resumed))

    def routed(self, flow: str) -> tuple[RoutedRangeRow, ...]:
        """Where a flow's transforms have sent records, by target partition and stretch."""
        with self._database.read() as connection:
            return routed.of_flow(connection, flow)

    def routed_by_others(self, flow: str) -> frozenset[tuple[str, TopicPartition]]:
        """The flows beside this one whose transforms have sent records to partitions of other topics, and to which."""
        with self._database.read() as connection:
            return frozenset(
                (name, TopicPartition(topic, partition))
                for name, topic, partition in routed.of_others(connection, flow)
            )

    def compact_segments(self, flow: str, topic: str, partition: int) -> int:
        """Store a partition's offset map in fewer rows; returns how many fewer. `append_segments` does it when due."""
        with self._database.write() as connection:
            return segments.compact(connection, flow, topic, partition)

    def map_sizes(self, flow: str) -> tuple[MapSize, ...]:
        """What is stored of a flow's offset map, by topic and partition; quick, since no map is read."""
        with self._database.read() as connection:
            return segments.sizes_of_flow(connection, flow)

    def record_gap(self, row: GapRow) -> GapRow:
        """Note a gap; returns its row, which is an older one when the same gap is open already."""
        with self._database.write() as connection:
            return gaps.record(connection, row)

    def gaps(self, flow: str, limit: int | None = 100) -> tuple[GapRow, ...]:
        """A flow's newest gaps, newest first; all of them without a limit."""
        with self._database.read() as connection:
            return gaps.of_flow(connection, flow, state=None, limit=limit)

    def open_gaps(self, flow: str) -> tuple[GapRow, ...]:
        """A flow's gaps that nobody has decided about, newest first."""
        with self._database.read() as connection:
            return gaps.of_flow(connection, flow, state=GapState.OPEN, limit=None)

    def decide_gap(self, gap_id: str, state: GapState, *, by: str, note: str | None = None) -> GapRow:
        """Note who decided what about a gap, and when; `OPEN` takes a decision back. Returns the row as it is then.

        What was decided before stays readable in the note.

        Raises:
            LedgerError: there is no such gap.
        """
        with self._database.write() as connection:
            return gaps.decide(connection, gap_id, state, by=by, note=note)

    def stopped_partitions(self, flow: str) -> frozenset[TopicPartition]:
        """The source partitions that somebody decided not to replicate any more."""
        with self._database.read() as connection:
            return frozenset(TopicPartition(*place) for place in gaps.stopped(connection, flow))

    def last_copies(self, flow: str, topics: Iterable[str]) -> Mapping[tuple[str, int], LastCopy]:
        """When the partitions of some topics were copied last, by topic and partition."""
        with self._database.read() as connection:
            return gaps.last_copies(connection, flow, topics)

    def copied_topics(self, flow: str, since: datetime) -> tuple[CopiedTopic, ...]:
        """The topics that runs of a flow have taken since a moment, and where they went."""
        with self._database.read() as connection:
            return runs.copied_topics(connection, flow, since)

    def acquire_lock(
        self, *, flow: str, run_id: str, holder: str, lease_seconds: float, instead_of: RunLockRow | None = None
    ) -> RunLockRow:
        """Take a flow's run lock if it can be had; returns who has it now. See `locks.acquire`."""
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
        """Let the lease of a run lock begin anew; False when the lock is not this holder's any more."""
        with self._database.write() as connection:
            return locks.renew(connection, flow=flow, run_id=run_id, holder=holder)

    def release_lock(self, *, flow: str, run_id: str, holder: str) -> None:
        """Give a run lock up; no effect when it is not this holder's any more."""
        with self._database.write() as connection:
            locks.release(connection, flow=flow, run_id=run_id, holder=holder)

    def claim_rate(
        self, *, flow: str, run_id: str, wanted: int | None, asks: Sequence[RateAsk]
    ) -> tuple[RateClaimRow, ...]:
        """Take a run's share of the limits that it has to keep; see `rate_claims.claim`."""
        with self._database.write() as connection:
            return rate_claims.claim(connection, flow=flow, run_id=run_id, wanted=wanted, asks=asks)

    def release_rate(self, *, flow: str, run_id: str) -> None:
        """Give a run's shares back; no effect when it has none."""
        with self._database.write() as connection:
            rate_claims.release(connection, flow=flow, run_id=run_id)

    def rate_claims(self) -> tuple[RateClaimRow, ...]:
        """What the runs that copy now may take of the limits of clusters."""
        with self._database.read() as connection:
            return rate_claims.living(connection)

    def lock_holder(self, flow: str) -> RunLockRow | None:
        """Who may run a flow now, None when its lock is free or has not been renewed in time."""
        with self._database.read() as connection:
            return locks.find(connection, flow)

    def lock_holders(self) -> dict[str, RunLockRow]:
        """Who may run now, by flow: as `lock_holder` of every one."""
        with self._database.read() as connection:
            return locks.living(connection)

    def dead_runs(self, rows: Iterable[RunRow]) -> frozenset[str]:
        """The ids of runs among these that have ended without a word: within their lease, their locks tell.

        Args:
            rows: as they were read before.
        """
        running = [row for row in rows if row.state == RunState.RUNNING]
        if not running:
            return frozenset()
        with self._database.read() as connection:
            held = locks.living(connection)
            suspects = [row.id for row in running if row.has_died(held.get(row.flow))]
            # A run says how it ended before it gives its lock up.
            found = [runs.find(connection, run_id) for run_id in suspects]
        return frozenset(row.id for row in found if row is not None and row.state == RunState.RUNNING)

    def save_acls(self, rows: Iterable[ReplicatedAclRow]) -> None:
        """Insert or replace what is known of ACLs on the target."""
        with self._database.write() as connection:
            acls.save(connection, rows)

    def forget_acls(self, rows: Iterable[ReplicatedAclRow]) -> None:
        """Remove rows of ACLs that neither stand on the target because of us nor wait for the cutover."""
        with self._database.write() as connection:
            acls.forget(connection, rows)

    def acls(self, flow: str) -> tuple[ReplicatedAclRow, ...]:
        """The ACLs that a flow created on its target or keeps for the cutover."""
        with self._database.read() as connection:
            return acls.of_flow(connection, flow)

    def note_sync(self, flow: str, step: str, begun_at: datetime) -> None:
        """Note when a step with an interval of its own began, after it succeeded."""
        with self._database.write() as connection:
            acls.note_time(connection, SyncTimeRow(flow=flow, step=step, begun_at=begun_at))

    def last_sync(self, flow: str, step: str) -> datetime | None:
        """When a step began the last time that it succeeded."""
        with self._database.read() as connection:
            return acls.time_of(connection, flow, step)

    def save_verifications(self, rows: Iterable[VerificationRow]) -> None:
        """Insert or replace what a verification found."""
        with self._database.write() as connection:
            verifications.save(connection, rows)

    def verifications(self, flow: str, limit: int = 100) -> tuple[VerificationRow, ...]:
        """The newest rows of a flow's verifications, newest first."""
        with self._database.read() as connection:
            return verifications.newest(connection, flow, limit=limit)

    def verification(self, verification_id: str) -> tuple[VerificationRow, ...]:
        """What one verification found, by partition."""
        with self._database.read() as connection:
            return verifications.of_id(connection, verification_id)

    def verified_up_to(self, flow: str) -> tuple[VerifiedRow, ...]:
        """Up to where each partition was found equal since a difference was found there last, and when."""
        with self._database.read() as connection:
            return verifications.verified_up_to(connection, flow)
