"""The ledger: what every run did, in SQL, for people, reports and the offset map. Positions are true in Kafka."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from mirror_lib.ledger import positions, runs, schema, segments
from mirror_lib.ledger.database import Database
from mirror_lib.ledger.rows import PartitionRunRow, PositionRow, RunRow, SegmentRow


class Ledger:
    """One ledger. Threads may share it; every method is one transaction and raises `LedgerError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
