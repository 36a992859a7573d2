"""One copy task: all partitions of a bin, copied by one event loop. It runs on a Spark executor."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.copy.takeover.recovery import Recovered, take_over_all
from mirror_lib.copy.transfer.assembler_protocol import Part
from mirror_lib.copy.transfer.fetcher import Memory, SourceReader
from mirror_lib.copy.transfer.open_copies import OpenCopies
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.copy.transfer.position_flush import PositionFlush
from mirror_lib.copy.transfer.producer import TargetWriter
from mirror_lib.copy.transfer.task_group import Background, internal_error, run_loop
from mirror_lib.errors import MirrorError
from mirror_lib.planning.model import CopyJob, OpenPartition, PartitionResult, Takeover
from mirror_lib.records.ready import ReadyBatch

_log = logging.getLogger(__name__)
_WHO = "the copy task"
_REPORT_SECONDS = 10.0
#: Number of new container objects between collections; Python's default is 700.
_COLLECT_AFTER = 10_000


def copy_bin(job: CopyJob, number: int) -> list[PartitionResult]:
    """Copy every partition of bin `number` from start to end; never raise for an error of a partition.

    Each partition has its own result: complete, or with an error and the exact offsets that it reached.
    """
    with _rarely_collected():
        return run_loop(_copy(job, job.bins[number]))


@contextmanager
def _rarely_collected() -> Iterator[None]:
    """Keep Python's cycle collector from scanning all imported objects many times a second.

    A copy's objects are freed by reference counts; the few cycles that errors leave are still collected, later.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def copy_attempt(job: CopyJob, number: int, attempt: int) -> list[PartitionResult]:
    """As `copy_bin`, for a task that Spark may retry.

    An earlier attempt may have appended, and may still be alive: a later one takes every partition over from it.
    """
    return copy_bin(for_attempt(job, number, attempt), number)


def for_attempt(job: CopyJob, number: int, attempt: int) -> CopyJob:
    """The job as a later attempt of one of its tasks must start it."""
    if attempt == 0:
        return job
    bins = list(job.bins)
    bins[number] = tuple(from_earlier_attempt(opened) for opened in job.bins[number])
    return replace(job, bins=tuple(bins))


def from_earlier_attempt(opened: OpenPartition) -> OpenPartition:
    """The partition, to be taken over from the earlier attempt that started with this state."""
    in_transactions = opened.transactions is not None
    if opened.takeover is not None:
        kept = opened.takeover.in_transactions and in_transactions
        return replace(opened, takeover=replace(opened.takeover, in_transactions=kept))
    takeover = Takeover(
        opened.plan.start,
        opened.target_offset,
        producer_id=opened.producer_id,
        epoch=opened.epoch,
        in_transactions=in_transactions,
        hole_writers=() if opened.hole_writer is None else (opened.hole_writer.number,),
    )
    return replace(opened, takeover=takeover)


async def _copy(job: CopyJob, partitions: Sequence[OpenPartition]) -> list[PartitionResult]:
    clean = [opened for opened in partitions if opened.takeover is None]
    unclean = [opened for opened in partitions if opened.takeover is not None]
    # A take-over may have to wait for leaders or for the end of a lease: the other partitions do not wait with it.
    return [result for each in (clean, unclean) if each for result in await _copy_together(job, each)]


async def _copy_together(job: CopyJob, partitions: Sequence[OpenPartition]) -> list[PartitionResult]:
    ready = [Recovered(opened) for opened in partitions if opened.takeover is None]
    pending = [opened for opened in partitions if opened.takeover is not None]
    failed: list[PartitionCopy] = []
    copies: list[PartitionCopy] = []
    backoff = Backoff(job.settings.retry_max_seconds)
    while True:
        try:
            async with open_clients(job.source, job.target) as (source, target):
                for opened, outcome in await take_over_all(job, pending, source, target):
                    if isinstance(outcome, Recovered):
                        ready.append(outcome)
                    else:
                        failed.append(_failed_copy(job, opened, outcome))
                pending = []
                copies = [_new_copy(job, each) for each in ready]
                crash = await _run(job, copies, source, target)
        except MirrorError as error:
            # Only connecting can fail here, which needs a broker and may need a KDC or a token endpoint: the halves
            # keep their own accounts of lost brokers.
            if error.retriable and backoff.record_failure(error):
                await asyncio.sleep(backoff.pause_left)
                continue
            crash = error
        except Exception as error:
            crash = error
        if crash is not None:
            failure = internal_error(crash, _WHO)
            copies = copies or [_new_copy(job, each) for each in ready]
            _fail_all(copies, failure)
            failed += [_failed_copy(job, opened, failure) for opened in pending]
        return [copy.result() for copy in (*copies, *failed)]


async def _run(
    job: CopyJob, copies: Sequence[PartitionCopy], source: RawClient, target: RawClient
) -> BaseException | None:
    flush = PositionFlush(job, copies)
    try:
        taken_over = [copy for copy in copies if copy.was_taken_over]
        # Store the results of a take-over at once: they were costly to find.
        await flush.store(taken_over)
        for copy in copies:
            if copy.source_next >= copy.opened.plan.end:
                copy.read_done = True
                copy.finish_if_settled()
        unfinished = [copy for copy in copies if not copy.finished]
        return await _Task(job, unfinished, source, target, flush).run() if unfinished else None
    finally:
        await flush.close()


def _new_copy(job: CopyJob, recovered: Recovered) -> PartitionCopy:
    copy = PartitionCopy(
        job.flow, recovered.opened, job.settings, read_committed=job.read_committed, recovered=recovered.runs
    )
    copy.note_poison(recovered.poison)
    return copy


def _failed_copy(job: CopyJob, opened: OpenPartition, error: MirrorError) -> PartitionCopy:
    """The account of a partition whose take-over failed; its position stays open."""
    copy = _new_copy(job, Recovered(opened))
    copy.fail(error, certain=False)
    return copy


def _fail_all(copies: Sequence[PartitionCopy], error: MirrorError) -> None:
    for copy in copies:
        if not copy.finished:
            # Batches in flight may have been appended.
            copy.fail(error, certain=copy.unacknowledged_batches == 0 and not copy.has_uncommitted)
            copy.not_committed()


class _Task:
    """Connects the two halves: memory freed by an acknowledgement lets the next fetch be sent."""

    def __init__(
        self,
        job: CopyJob,
        copies: Sequence[PartitionCopy],
        source: RawClient,
        target: RawClient,
        flush: PositionFlush,
    ) -> None:
        self._flush = flush
        self._copies = copies
        self._open = OpenCopies(len(copies))
        self._memory = Memory(job.settings.task_memory_bytes)
        self._flow = job.flow
        self._background = Background(self._open.crash)
        omissions = Omissions(job, target, kept=flush.keep)
        self._reader = SourceReader(
            source,
            copies,
            job,
            self._memory,
            self._background,
            downstream=self,
            omissions=omissions,
        )
        self._writer = TargetWriter(target, copies, job, self._background, upstream=self, omissions=omissions)

    async def run(self) -> BaseException | None:
        """Copy until every partition is settled; return the internal error that ended it before, if any.

        Raises:
            MirrorError: a cluster did not respond when the leaders were looked up; nothing has been read yet.
        """
        # Exceptions in callbacks of the loop (timers, the next turn) have no other handler.
        asyncio.get_running_loop().set_exception_handler(self._loop_failed)
        try:
            await self._writer.start()
            await self._reader.start()
            self._background.start(self._report())
            self._background.start(self._flush.run())
            self._background.start(self._writer.run())
            for copy in self._copies:
                if copy.read_done:
                    # A take-over has found all records, and only holes at the end are left.
                    self.settle(copy)
            await self._open.wait()
        finally:
            await self._background.stop()
            await self._writer.close()
        await self._flush.flush_committed()
        return self._open.error

    def _loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        loop.default_exception_handler(context)
        # Without a callback it is an exception of a future or a transport, whose users are notified in other ways.
        if "handle" in context and (error := context.get("exception")) is not None:
            self._open.crash(error)

    def deliver(self, copy: PartitionCopy, parts: Sequence[Part]) -> None:
        """Write the batches that are complete."""
        # Not in one line: writing may already free memory.
        self._memory.far_target = self._writer.far
        taken = self._writer.write(copy, cast("Sequence[ReadyBatch]", parts))
        self._memory.used += taken
        self._count_held(copy)

    def _count_held(self, copy: PartitionCopy) -> None:
        """Count small batches that wait in the assembler for more: there may be thousands of partitions."""
        if copy.read_done:
            copy.assembler.discard()
        held = copy.assembler.held_bytes
        self._memory.used += held - copy.held_bytes
        copy.held_bytes = held

    async def room(self) -> None:
        """Wait for nothing: a fetch becomes batches at once, in memory that is counted already."""

    def acknowledged(self, copy: PartitionCopy, size: int) -> None:
        """Free the memory of acknowledged batches, and request more."""
        self._memory.used -= size
        held = copy.assembler.flush() if not copy.read_done and copy.unacknowledged_batches == 0 else None
        if held is not None:
            self.deliver(copy, [held])
        if copy.read_done:
            self.settle(copy)
        self._reader.wake()

    def committed(self, copies: Sequence[PartitionCopy]) -> None:
        """Store the positions behind a transaction at once."""
        self._flush.store_committed(copies)

    def settle(self, copy: PartitionCopy) -> None:
        """End a partition if all that was read of it is acknowledged."""
        self._count_held(copy)
        self._writer.may_end(copy)
        self._open.settle(copy)

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            done = sum(copy.source_next - copy.opened.plan.start for copy in self._copies)
            planned = sum(copy.opened.plan.end - copy.opened.plan.start for copy in self._copies)
            _log.info("flow %s: %d of %d offsets copied by this task", self._flow, done, planned)
