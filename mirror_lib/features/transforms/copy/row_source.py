"""The reading half of a transformed copy: the partitions of a bin as rows for Spark.

The fetches are those of the raw copy (`copy.transfer.fetcher`), with the same error handling; only the handling of a
response differs. They run in their own thread, ahead of Spark within the task's memory.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from typing import cast

import pyarrow as pa

from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.copy.transfer.assembler_protocol import Part
from mirror_lib.copy.transfer.fetcher import Memory, SourceReader
from mirror_lib.copy.transfer.open_copies import OpenCopies
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.copy.transfer.task import for_attempt
from mirror_lib.copy.transfer.task_group import Background, internal_error, run_loop
from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.copy.model import (
    ReadEnd,
    ReadEnds,
    RowJob,
    ends_to_json,
    first_number,
    reading_start,
)
from mirror_lib.features.transforms.copy.row_assembler import RowAssembler, RowPart
from mirror_lib.features.transforms.rows.layout import place_of, with_source
from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from mirror_lib.planning.model import CopyJob

_log = logging.getLogger(__name__)
_WHO = "the reading part of a task"
#: Divisor of the task's memory: Spark and the writing half hold rows too.
_MEMORY_PART = 4
#: Divisor of that memory for the rows that wait for Spark.
_ROWS_PART = 2


def read_bin(job: RowJob, number: int, attempt: int) -> Iterator[pa.RecordBatch]:
    """The rows of bin `number` (`layout.READ_SCHEMA`), for each partition in the order of their offsets.

    Never raise for an error of a partition: the end of each one is stored in the task's `ReaderResult`, before the rows
    end.
    """
    reading = _Reading(job, for_attempt(job.copy, number, attempt), number)
    try:
        yield from reading.rows()
        ends = reading.ends()
        if job.whole:
            _check_whole(ends)
        else:
            ReaderResult(job.secret, number, attempt).leave(ends_to_json(ends))
    finally:
        reading.stop()


def _check_whole(ends: ReadEnds) -> None:
    for end in ends.values():
        if end.error is not None:
            raise end.error
        for poison in end.poison:
            raise MirrorError(
                f"source offset {poison.first_offset} cannot be read, and its task has no other records: "
                f"{poison.detail}",
                action="The run continues past it when a record passes the transforms.",
            )


class _Reading:
    def __init__(self, job: RowJob, copy_job: CopyJob, number: int) -> None:
        self._job = copy_job
        self._number = number
        skip = copy_job.settings.poison_policy is not PoisonPolicy.FAIL
        self._copies = [
            PartitionCopy(
                copy_job.flow,
                opened,
                copy_job.settings,
                read_committed=copy_job.read_committed,
                assembler=RowAssembler(
                    topic=opened.plan.source.topic,
                    partition=opened.plan.source.partition,
                    start=reading_start(opened),
                    end=opened.plan.end,
                    read_committed=copy_job.read_committed,
                    skip=skip,
                    limits=DecodeLimits.within(copy_job.settings.task_memory_bytes),
                    failed=job.failed.get(opened.plan.source, ()),
                ),
            )
            for opened in copy_job.bins[number]
        ]
        self._numbers = {id(copy): at for at, copy in enumerate(self._copies, first_number(copy_job, number))}
        #: None marks the end.
        self._ready: queue.SimpleQueue[tuple[PartitionCopy, RowPart] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._memory = Memory(copy_job.settings.task_memory_bytes // _MEMORY_PART)
        self._reader: SourceReader | None = None
        #: Bytes of rows that wait for Spark.
        self._waiting = 0
        self._most_waiting = self._memory.limit // _ROWS_PART
        self._has_room = asyncio.Event()
        self._open = OpenCopies(len(self._copies))
        self._thread = threading.Thread(target=self._run, name="reading", daemon=True)

    def rows(self) -> Iterator[pa.RecordBatch]:
        self._thread.start()
        while (item := self._ready.get()) is not None:
            copy, part = item
            if part.records.num_rows:
                yield with_source(part.records, place_of(self._numbers[id(copy)], part.codec))
            if self._loop is not None and self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._release, copy, part.size)
        self._thread.join()

    def ends(self) -> dict[int, ReadEnd]:
        return {
            self._numbers[id(copy)]: ReadEnd(
                max(copy.assembler.next_offset, reading_start(copy.opened)),
                copy.error,
                tuple(copy.skipped_records),
                copy.leader_epoch,
                copy.read_last,
            )
            for copy in self._copies
        }

    def stop(self) -> None:
        """End the thread, regardless of its state; no more rows are taken."""
        if self._thread.is_alive() and self._loop is not None:
            self._loop.call_soon_threadsafe(self._open.end)

    def _run(self) -> None:
        try:
            run_loop(self._read())
        except Exception as error:
            self._open.error = error
        finally:
            if self._open.error is not None:
                failure = internal_error(self._open.error, _WHO)
                for copy in self._copies:
                    if not copy.read_done:
                        copy.fail(failure)
            self._ready.put(None)

    async def _read(self) -> None:
        self._loop = asyncio.get_running_loop()
        backoff = Backoff(self._job.settings.retry_max_seconds)
        while True:
            try:
                await self._read_all()
                return
            except MirrorError as error:
                # Only connecting can fail here: errors of partitions are in their own accounts.
                if not error.retriable or not backoff.record_failure(error):
                    raise
                await asyncio.sleep(backoff.pause_left)

    async def _read_all(self) -> None:
        async with AsyncExitStack() as stack:
            (source,) = await stack.enter_async_context(open_clients(self._job.source))
            quarantine = source
            if self._job.settings.poison_policy is PoisonPolicy.QUARANTINE:
                (quarantine,) = await stack.enter_async_context(open_clients(self._job.target))
            background = Background(self._open.crash)
            reader = self._reader = self._new_reader(source, quarantine, background)
            try:
                for copy in self._copies:
                    if copy.assembler.is_finished and not copy.read_done:
                        copy.read_done = True
                    self._open.settle(copy)
                if not self._open.have_ended:
                    await reader.start()
                    await self._open.wait()
            finally:
                await background.stop()

    def _new_reader(self, source: RawClient, quarantine: RawClient, background: Background) -> SourceReader:
        return SourceReader(
            source,
            self._copies,
            self._job,
            self._memory,
            background,
            downstream=self,
            omissions=Omissions(self._job, quarantine, kept=_kept_by_the_account),
        )

    def settle(self, copy: PartitionCopy) -> None:
        """End a partition if Spark has taken all of its rows."""
        self._open.settle(copy)

    def deliver(self, copy: PartitionCopy, parts: Sequence[Part]) -> None:
        """Hand rows to the thread of Spark's task."""
        for part in cast("Sequence[RowPart]", parts):
            copy.unacknowledged_batches += 1
            copy.unacknowledged_bytes += part.size
            self._memory.used += part.size
            self._waiting += part.size
            self._ready.put((copy, part))

    async def room(self) -> None:
        """Wait until Spark has taken enough: a fetch becomes rows in parts, regardless of its size."""
        while self._waiting >= self._most_waiting:
            self._has_room.clear()
            await self._has_room.wait()

    def _release(self, copy: PartitionCopy, size: int) -> None:
        copy.unacknowledged_batches -= 1
        copy.unacknowledged_bytes -= size
        self._memory.used -= size
        self._waiting -= size
        self._has_room.set()
        self._open.settle(copy)
        if self._reader is not None:
            self._reader.wake()


async def _kept_by_the_account(_copies: Sequence[PartitionCopy]) -> None:
    """Store nothing: skipped ranges are reported at the end, and no position passes them before."""
