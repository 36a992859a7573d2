"""The running account of one source partition: what was read, what is acknowledged, how it ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.config.copy_settings import CopySettings, PoisonPolicy
from mirror_lib.copy.transfer.assembler_protocol import Assembler
from mirror_lib.errors import MirrorError, Where
from mirror_lib.offsets.runs import OffsetRun, RunBuilder
from mirror_lib.planning.model import OpenPartition, PartitionResult, Poison
from mirror_lib.records.assemble import BatchAssembler, BatchSizes
from mirror_lib.records.last_records import LastRecord, LastRecords
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.topology.names import FlowId

_NOTHING = bytearray()


class PartitionCopy:
    """State of one partition inside a task. Only reading and writing update it."""

    def __init__(
        self,
        flow: FlowId,
        opened: OpenPartition,
        settings: CopySettings,
        *,
        read_committed: bool,
        recovered: Sequence[OffsetRun] = (),
        assembler: Assembler | None = None,
    ) -> None:
        """Begin the account.

        Args:
            recovered: where records of an earlier attempt were found, before the plan's start.
            assembler: makes parts of fetches; by default, one that makes batches for the target.
        """
        plan = opened.plan
        self.flow = flow
        self.opened = opened
        self.source = plan.source
        self.target = plan.target
        self.assembler: Assembler = assembler or BatchAssembler(
            where=Where(topic=plan.source.topic, partition=plan.source.partition),
            offsets=range(plan.start, plan.end),
            sizes=BatchSizes(
                settings.batch_passthrough_min_bytes, settings.batch_max_bytes, plan.target_max_message_bytes
            ),
            read_committed=read_committed,
            rules=plan.target_rules,
            skip=settings.poison_policy is not PoisonPolicy.FAIL,
            transactions=plan.transactions,
            dense=settings.same_offsets,
        )
        self._same_offsets = settings.same_offsets
        if plan.leader_epoch is not None:
            self.assembler.leader_epoch = plan.leader_epoch
        #: The newest record with a known checksum; the copy may end before it.
        self.read_last = plan.last_record
        self._read_data: LastRecord | None = None
        self._last_batch_bytes = 0
        self.backoff = Backoff(settings.retry_max_seconds)
        self.fetching = False
        self.last_served = 0.0
        #: Number of consecutive empty fetch responses although there should be records.
        self.empty_fetches = 0
        #: The writer gets no more parts.
        self.read_done = False
        self.unacknowledged_batches = 0
        self.unacknowledged_bytes = 0
        #: Bytes in the assembler that the task's memory counts.
        self.held_bytes = 0
        self.error: MirrorError | None = None
        self._left_early = False
        self.certain = True
        self.finished = False
        self.source_next = plan.start
        self._began = time.monotonic()
        self._ended = self._began
        self._runs = RunBuilder()
        for run in recovered:
            self._runs.add(*run)
        self._recovered = sum(run.count for run in recovered)
        self._poison: list[Poison] = []
        #: Batches in an open transaction on the target: batch, target offset, bytes.
        self._uncommitted: list[tuple[ReadyBatch, int, int]] = []
        self._target_first: int | None = None
        self._target_next = opened.target_offset
        self._records = self._bytes = self._batches = 0
        self._first_timestamp: int | None = None
        self._last_timestamp: int | None = None

    def where(self, offset: int | None = None) -> Where:
        """This partition as the location of an error."""
        return Where(flow=str(self.flow), topic=self.source.topic, partition=self.source.partition, offset=offset)

    def record_acknowledged(self, batch: ReadyBatch, base_offset: int) -> None:
        """Record that the target has this batch at `base_offset`."""
        size = len(batch.payload)
        self._count(batch, base_offset, size)
        self.unacknowledged_batches -= 1
        self.unacknowledged_bytes -= size

    def record_appended(self, batch: ReadyBatch, base_offset: int) -> None:
        """Record that the target has this batch in a transaction: it counts once that is committed."""
        size = len(batch.payload)
        # Release its payload.
        self._uncommitted.append((replace(batch, payload=_NOTHING), base_offset, size))
        self.unacknowledged_batches -= 1
        self.unacknowledged_bytes -= size

    def record_committed(self, target_next: int) -> None:
        """Record that the transaction is committed, and the target's end after its marker."""
        if self._uncommitted or self._target_next == target_next - 1:
            for batch, base_offset, size in self._uncommitted:
                self._count(batch, base_offset, size)
            self._uncommitted.clear()
            self._target_next = target_next

    def not_committed(self) -> None:
        """Record that the outcome of the transaction is unknown."""
        if self._uncommitted:
            self.certain = False
            self._uncommitted.clear()

    @property
    def has_uncommitted(self) -> bool:
        """True if the target has batches in a transaction that is not known to be committed."""
        return bool(self._uncommitted)

    def _count(self, batch: ReadyBatch, base_offset: int, size: int) -> None:
        runs, target = self._runs, base_offset
        for first, count in batch.source_runs:
            # If one record became several, the offset map points to the first.
            if count > 1 or first != runs.source_next - 1:
                runs.add(first, target, count)
            target += count
        if self._target_first is None:
            self._target_first = base_offset
        self._target_next = target
        self.source_next = batch.source_next
        self._records += batch.count
        self._bytes += size
        self._batches += 1
        self._last_batch_bytes = size
        # Producers may set any timestamps, so only the batches' own minimum and maximum are known.
        if self._first_timestamp is None:
            self._first_timestamp = batch.first_timestamp
        if self._last_timestamp is None or batch.max_timestamp > self._last_timestamp:
            self._last_timestamp = batch.max_timestamp

    def ended_transaction(self, target_next: int) -> None:
        """Record that markers of transactions follow all that is acknowledged."""
        self._target_next = target_next

    def record_recovered(self, runs: Sequence[OffsetRun], source_next: int) -> None:
        """Record what an earlier attempt had written, before anything of this one: all before `source_next`."""
        for run in runs:
            self._runs.add(*run)
        self._recovered += sum(run.count for run in runs)
        self.source_next = source_next

    @property
    def run_count(self) -> int:
        """Number of runs in `runs`."""
        return len(self._runs)

    @property
    def runs(self) -> tuple[OffsetRun, ...]:
        """Target offsets of each span of records; the commit of the round stores them in the ledger."""
        return self._runs.runs()

    def leave_early(self, error: MirrorError) -> None:
        """Stop reading before the plan's end, with an error that does not concern what was read."""
        self.fail(error)
        self._left_early = self.error is error

    @property
    def omission_count(self) -> int:
        """Number of ranges in `skipped_records`."""
        return len(self._poison)

    @property
    def skipped_records(self) -> Sequence[Poison]:
        """The skipped ranges, by offset; the commit of the round stores them in the ledger."""
        return sorted(self._poison, key=lambda each: each.first_offset)

    def note_poison(self, found: Sequence[Poison]) -> None:
        """Record skipped ranges; adjacent ones with the same cause are merged."""
        for poison in found:
            last = self._poison[-1] if self._poison else None
            if last is not None and _continues(last, poison):
                self._poison[-1] = _join(last, poison)
            else:
                self._poison.append(poison)

    def fail(self, error: MirrorError, *, certain: bool = True) -> None:
        """Stop reading. The first error is reported, with this partition as its location."""
        self._left_early = False
        if self.error is None:
            where, mine = error.where, self.where()
            place = (where.topic or mine.topic, mine.partition if where.partition is None else where.partition)
            offset = where.offset if place == self.source else None
            self.error = error.located(replace(mine, cluster=where.cluster, offset=offset))
        self.certain = self.certain and certain
        self.read_done = True

    @property
    def was_taken_over(self) -> bool:
        """True if a take-over found its start in the target's log."""
        return self.opened.taken_over

    @property
    def leader_epoch(self) -> int | None:
        """The source's leader epoch of the newest batch read; None if no batch has one."""
        epoch = self.assembler.leader_epoch
        return epoch if epoch >= 0 else None

    @property
    def last_record(self) -> LastRecord | None:
        """A record before `source_next` that identifies the source's log; None if none is known."""
        known = (self.read_last, self.opened.plan.last_record)
        return next((each for each in known if each is not None and each.offset < self.source_next), None)

    def note_last(self, read: LastRecords) -> None:
        """Record the last records of a fetch."""
        self.read_last = read.of_log or self.read_last
        self._read_data = read.of_data

    @property
    def target_record(self) -> LastRecord | None:
        """A record before `target_next` that identifies the target's log; None if none is known."""
        read = self._read_data
        at = None if read is None else self._runs.target_of(read.offset)
        if read is None or at is None:
            return self.opened.plan.target_record
        return LastRecord(at, self._last_batch_bytes, read.checksum)

    @property
    def target_next(self) -> int:
        """The target's offset after everything that is acknowledged."""
        return self._target_next

    @property
    def read_to(self) -> int:
        """The source offset up to which all was read."""
        return max(self.source_next, self.assembler.next_offset)

    @property
    def lacks_end(self) -> bool:
        """True if the target lacks only the offsets without a record at the end of what was read."""
        is_complete = self.read_done and self.unacknowledged_batches == 0 and self.error is None
        return self._same_offsets and is_complete and self._target_next < self.read_to

    def finish_if_settled(self) -> bool:
        """Close the account if all that was read is acknowledged; return whether it is closed."""
        if self.lacks_end:
            return False
        if not self.finished and self.read_done and self.unacknowledged_batches == 0 and not self._uncommitted:
            self.finished = True
            self._ended = time.monotonic()
            if self.error is None or self._left_early:
                # Dropped records at the very end (markers, aborted ones) belong to no batch.
                self.source_next = self.read_to
        return self.finished

    def result(self) -> PartitionResult:
        """The account as a value."""
        before, counted = self.opened.plan.transactions, self.assembler.transactions(self.source_next)
        if counted is not None and before is None and counted.is_empty:
            counted = None
        return PartitionResult(
            source=self.source,
            target=self.target,
            start=self.opened.plan.start,
            end=self.opened.plan.end,
            source_next=self.source_next,
            target_first=self._target_next if self._target_first is None else self._target_first,
            target_next=self._target_next,
            records=self._records,
            bytes=self._bytes,
            batches=self._batches,
            first_timestamp=self._first_timestamp,
            last_timestamp=self._last_timestamp,
            seconds=self._ended - self._began,
            runs=self.runs,
            certain=self.certain,
            error=self.error,
            producer_id=self.opened.producer_id,
            epoch=self.opened.epoch,
            leader_epoch=self.leader_epoch,
            last_record=self.last_record,
            target_record=self.target_record,
            recovered=self._recovered,
            # Ranges that are copied again will be found again.
            poison=tuple(
                _before(self.source_next, poison)
                for poison in self.skipped_records
                if poison.first_offset < self.source_next
            ),
            transactions=counted,
            aborted=0 if counted is None else counted.aborted - (before.aborted if before else 0),
        )


def _before(source_next: int, poison: Poison) -> Poison:
    """The part of a range before the copy's end: adjacent ranges may have been merged across it."""
    if poison.next_offset <= source_next:
        return poison
    dense = poison.records == poison.next_offset - poison.first_offset
    return replace(poison, next_offset=source_next, records=source_next - poison.first_offset if dense else None)


def _continues(last: Poison, poison: Poison) -> bool:
    return (last.next_offset, last.cause, last.quarantined) == (poison.first_offset, poison.cause, poison.quarantined)


def _join(last: Poison, poison: Poison) -> Poison:
    known = last.records is not None and poison.records is not None
    times = [
        time for each in (last, poison) for time in (each.first_timestamp, each.last_timestamp) if time is not None
    ]
    return replace(
        last,
        next_offset=poison.next_offset,
        records=(last.records or 0) + (poison.records or 0) if known else None,
        first_timestamp=min(times, default=None),
        last_timestamp=max(times, default=None),
    )
