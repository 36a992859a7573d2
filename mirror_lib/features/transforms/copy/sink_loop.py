"""The event loop of a writing half: the target's connections, the writer of the raw copy, and routed partitions.

It runs in its own thread. Batches are made in the thread that receives Spark's rows, and handed over.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.topics.position_format import Route
from mirror_lib.copy.transfer.open_copies import OpenCopies
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.copy.transfer.position_flush import PositionFlush
from mirror_lib.copy.transfer.producer import TargetWriter
from mirror_lib.copy.transfer.task_group import Background, internal_error, run_loop
from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.copy.model import ReadEnd
from mirror_lib.features.transforms.copy.outputs import Output, PartitionSink
from mirror_lib.features.transforms.copy.routes import RouteOpener
from mirror_lib.features.transforms.copy.sink_start import SinkStart, ends_in_parts, failed_output, new_sink
from mirror_lib.features.transforms.copy.transactions import Transaction
from mirror_lib.offsets.runs import OffsetRun
from mirror_lib.planning.model import CopyJob, Poison
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.skipped import SkippedRecords
from mirror_lib.topology.names import TopicPartition

_WHO = "the writing part of a task"
_Answer = TypeVar("_Answer")
#: Divisor of the task's memory: Spark and the reading half hold rows too.
_MEMORY_PART = 4


class SinkLoop:
    """Sends the batches of the rows' thread. All methods without a leading underscore are for that thread."""

    def __init__(self, job: CopyJob, number: int, *, exact: bool, routes: bool) -> None:
        """Start to connect.

        Args:
            number: number of the bin.
            exact: as in `RowJob`.
            routes: whether rows may go elsewhere than to their partition's own target.
        """
        self._job = job
        self._number = number
        self._exact = exact
        self._routes = routes
        self._in_parts = ends_in_parts(job)
        self._limit = job.settings.task_memory_bytes // _MEMORY_PART
        self._room = threading.Condition()
        #: Bytes that are queued or in flight, and not acknowledged.
        self._held = 0
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._acknowledged_event = asyncio.Event()
        self._outputs: list[Output] = []
        self._transactions: Sequence[Transaction] = ()
        self._open = OpenCopies()
        #: Sinks without further rows.
        self._over: set[int] = set()
        self._writer: TargetWriter | None = None
        self._omissions: Omissions | None = None
        self._opener: RouteOpener | None = None
        self._thread = threading.Thread(target=self._run, name="writing", daemon=True)
        self._thread.start()

    @property
    def outputs(self) -> Sequence[Output]:
        """The partitions of the bin, in its order, once the start of each is known."""
        self._ready.wait()
        return self._outputs

    def send(self, output: Output, sink: PartitionSink, batch: ReadyBatch) -> None:
        """Hand over a batch; wait while too many bytes are in flight.

        Raises:
            MirrorError: its target partition cannot be added to the transaction.
        """
        transaction = output.transaction
        if transaction is not None and sink.copy.target not in transaction.partitions:
            self.run(transaction.cover(sink.copy.target))
        size = len(batch.payload)
        with self._room:
            # One batch beyond the limit is accepted: a batch larger than the limit must be sent, too.
            while self._held and self._held + size > self._limit and self._open.error is None:
                self._room.wait()
            self._held += size
        self._call(self._write, sink.copy, batch)

    def route(self, output: Output, target: TopicPartition) -> PartitionSink:
        """The sink for rows that a transform sends elsewhere.

        Raises:
            MirrorError: the partition does not exist, or cannot be written.
        """
        return output.routed.get(target) or self.run(self._open_route(output, target))

    def skip(self, sink: PartitionSink, skipped: Sequence[SkippedRecords]) -> None:
        """Record the ranges that the flow's policy skips, before anything after them is sent.

        Raises:
            MirrorError: they cannot be recorded; the partition must stop.
        """
        assert self._omissions is not None
        self.run(self._omissions.skip(sink.copy, skipped))

    def record_recovered(self, sink: PartitionSink, runs: Sequence[OffsetRun], source_next: int) -> None:
        """Record what an interrupted run had written."""

        async def note() -> None:
            sink.copy.record_recovered(runs, source_next)

        self.run(note())

    def fail(self, output: Output, error: MirrorError, *, certain: bool) -> None:
        """End a partition with all its sinks, and all partitions that share its transaction."""
        transaction = output.transaction
        together = [output] if transaction is None else self.outputs_of(transaction)
        if transaction is not None:
            error = transaction.explain(error)

        async def fail_all() -> None:
            for each in together:
                each.broken = True
                for sink in each.sinks:
                    sink.copy.fail(error, certain=certain and transaction is None)
            if transaction is not None:
                await transaction.abort()

        for sink in (sink for each in together for sink in each.sinks):
            sink.batches.discard()
        # After a crash of the loop all partitions fail anyway.
        if self._open.error is None:
            self.run(fail_all())

    @property
    def transactions(self) -> Sequence[Transaction]:
        """All transactions of the bin's rows, once the start of each partition is known."""
        self._ready.wait()
        return self._transactions

    def due(self, seconds: float) -> Sequence[Transaction]:
        """The transactions that have been open for `seconds`, if they may be committed before all rows have come."""
        if not self._in_parts:
            return ()
        before = time.monotonic() - seconds
        return [each for each in self.transactions if each.began is not None and each.began <= before]

    def outputs_of(self, transaction: Transaction) -> list[Output]:
        """The partitions whose rows are in a transaction."""
        return [output for output in self._outputs if output.transaction is transaction]

    def commit(self, transaction: Transaction, nexts: Mapping[TopicPartition, int]) -> None:
        """Commit all rows sent in a transaction, with the position of each source partition.

        Args:
            nexts: by source partition, the offset before which all its rows are sent; without failed partitions.

        Raises:
            MirrorError: it is not committed, or its outcome is unknown.
        """
        if transaction.began is not None:
            self.run(self._commit(transaction, nexts))

    def note_poison(self, output: Output, poison: Sequence[Poison]) -> None:
        """Record the ranges that the reading half has skipped."""
        self._call(output.main.copy.note_poison, poison)

    def end(self, output: Output, end: ReadEnd) -> None:
        """Record that no more rows come."""
        self._call(self._end, output, end)

    def finish(self) -> Sequence[Output]:
        """Wait until everything is settled; all partitions have then ended."""
        self._thread.join()
        if self._open.error is not None:
            failure = internal_error(self._open.error, _WHO)
            for output in self._outputs:
                for copy in (sink.copy for sink in output.sinks if not sink.copy.finished):
                    copy.fail(failure, certain=copy.unacknowledged_batches == 0 and output.transaction is None)
        return self._outputs

    def stop(self) -> None:
        """Cancel all work without a result."""
        self._ready.wait()
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._open.end)
        self._thread.join()

    def run(self, work: Coroutine[None, None, _Answer]) -> _Answer:
        """Run a coroutine in the event loop and wait for it.

        Raises:
            MirrorError: the coroutine raised it, or the loop has ended.
        """
        if self._loop is None or self._open.error is not None:
            work.close()
            raise internal_error(self._open.error or RuntimeError("the event loop has ended"), _WHO)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        if self._thread.is_alive() and self._loop is not None:
            self._loop.call_soon_threadsafe(function, *arguments)

    # ------------------------------------------------------------ in the event loop's thread

    def _run(self) -> None:
        try:
            run_loop(self._main())
        except Exception as error:
            self._open.error = self._open.error or error
        finally:
            if not self._outputs:
                # The loop could not even start.
                assert self._open.error is not None
                failure = internal_error(self._open.error, _WHO)
                self._outputs = [failed_output(self._job, opened, failure) for opened in self._job.bins[self._number]]
            self._ready.set()
            with self._room:
                self._room.notify_all()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        backoff = Backoff(self._job.settings.retry_max_seconds)
        while True:
            try:
                async with open_clients(self._job.target) as (target,):
                    self._opener = RouteOpener(self._job, target)
                    begin = SinkStart(self._job, target, self._opener, exact=self._exact, routes=self._routes)
                    self._outputs = await begin.outputs(self._job.bins[self._number])
                    found = (output.transaction for output in self._outputs)
                    self._transactions = tuple(dict.fromkeys(each for each in found if each is not None))
                    await self._send_all(target)
                    return
            except MirrorError as error:
                # Only connecting can fail here, before any row was taken.
                if self._ready.is_set() or not error.retriable or not backoff.record_failure(error):
                    raise
                await asyncio.sleep(backoff.pause_left)

    async def _send_all(self, target: RawClient) -> None:
        copies = [sink.copy for output in self._outputs for sink in output.sinks]
        background = Background(self._open.crash)
        # With transactions, positions are a part of them.
        flushed = [output.main.copy for output in self._outputs if output.transaction is None]
        flush = self._flush = PositionFlush(self._job, flushed)
        self._omissions = Omissions(self._job, target, kept=_kept_by_all if self._routes else flush.keep)
        # The transactions for old records are not used here: transactions begin and end with rows.
        memory = replace(self._job.producer_memory, verifies_transactions=False)
        self._writer = TargetWriter(
            target,
            copies,
            replace(self._job, producer_memory=memory),
            background,
            upstream=self,
            omissions=self._omissions,
        )
        self._open.begin(len(copies))
        try:
            await self._writer.start()
            background.start(self._writer.run())
            # A position must not pass skipped records that only the reading half knows, nor rows in flight to several
            # partitions.
            if self._in_parts and not self._routes:
                background.start(flush.run())
            self._ready.set()
            await self._open.wait()
        finally:
            await background.stop()
            await flush.close()

    async def _open_route(self, output: Output, target: TopicPartition) -> PartitionSink:
        assert self._opener is not None
        assert self._writer is not None
        main = output.main.copy
        opened = await self._opener.open(main.opened, target, self._writer.end_of(target))
        sink = new_sink(self._job, replace(opened, plan=replace(opened.plan, start=main.source_next)))
        routes = (*output.routes, Route(target.topic, target.partition, opened.target_offset))
        if output.transaction is None:
            # A take-over must find this target partition, so the route is stored before any row.
            await self._flush.declare(replace(output.claim_position(self._job.run_id), routes=routes))
        output.routes = routes
        output.routed[target] = sink
        self._open.add()
        self._writer.add(sink.copy)
        return sink

    def _write(self, copy: PartitionCopy, batch: ReadyBatch) -> None:
        assert self._writer is not None
        size = len(batch.payload)
        if copy.read_done or not self._writer.write(copy, [batch]):
            self._release(size)

    async def _commit(self, transaction: Transaction, nexts: Mapping[TopicPartition, int]) -> None:
        assert self._writer is not None
        outputs = self.outputs_of(transaction)
        await self._wait_until_settled([sink.copy for output in outputs for sink in output.sinks])
        for error in (sink.copy.error for output in outputs for sink in output.sinks):
            if error is not None:
                raise error
        ends = {target: (self._writer.end_of(target) or 0) + 1 for target in transaction.partitions}
        positions = [
            output.committed_position(self._job, nexts[output.opened.plan.source], ends)
            for output in outputs
            if output.opened.plan.source in nexts
        ]
        await transaction.commit(positions, ends)
        for target in ends:
            self._writer.ended_transaction(target)
        for copy in (sink.copy for output in outputs for sink in output.sinks):
            if copy.target in ends:
                copy.ended_transaction(ends[copy.target])

    async def _wait_until_settled(self, copies: Sequence[PartitionCopy]) -> None:
        """Wait until the target has acknowledged everything that was sent."""
        while any(copy.unacknowledged_batches and copy.error is None for copy in copies):
            self._acknowledged_event.clear()
            await self._acknowledged_event.wait()

    def committed(self, copies: Sequence[PartitionCopy]) -> None:
        """Not used: the rows have transactions of their own."""

    def acknowledged(self, copy: PartitionCopy, size: int) -> None:
        """Let more batches be handed over."""
        self._acknowledged_event.set()
        self._release(size)
        self._settle(copy)

    def _release(self, size: int) -> None:
        with self._room:
            self._held -= size
            self._room.notify()

    def _end(self, output: Output, end: ReadEnd) -> None:
        for sink in output.sinks:
            copy, batches = sink.copy, sink.batches
            self._over.add(id(copy))
            if not copy.read_done:
                # All rows before it have come, and dropped records after the last of them are settled.
                batches.next_offset = end.source_next
                copy.read_last = end.last_record
                batches.leader_epoch = -1 if end.leader_epoch is None else end.leader_epoch
                if end.error is not None:
                    copy.fail(end.error)
                copy.read_done = True
            self._settle(copy)

    def _settle(self, copy: PartitionCopy) -> None:
        if id(copy) in self._over:
            self._open.settle(copy)


async def _kept_by_all(_copies: Sequence[PartitionCopy]) -> None:
    """Store nothing: a take-over finds the skipped records again; no position is between a partition's sinks."""
