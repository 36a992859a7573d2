"""The reading half of a transformed comparison: the ranges of a bin as rows for Spark, one after the other.

Records that, by the ledger, a transform rejected are not read: they would fail again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from mirror_lib.cluster.raw.client import FetchedPartition, RawClient
from mirror_lib.errors import CorruptBatchError, MirrorError, TransientError, Where
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.read import ArrowPart, read_arrow
from mirror_lib.features.transforms.arrow.rows import InexactRowError
from mirror_lib.features.transforms.record_mark import UntransformableRecordError
from mirror_lib.features.transforms.rows.layout import place_of, with_source
from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from mirror_lib.features.verify.compare.tally import Spent
from mirror_lib.features.verify.findings import Stopped
from mirror_lib.features.verify.kept_error import KeptError
from mirror_lib.features.verify.log_reader import Chunk, LogReader, LogStream, chunk_size
from mirror_lib.features.verify.model import CheckRange, PartitionCheck
from mirror_lib.features.verify.transformed.loop_thread import LoopThread
from mirror_lib.features.verify.transformed.model import (
    NumberedRange,
    Progress,
    RangeEnd,
    RowVerifyJob,
    first_refusal,
    is_skipped,
    numbered_ranges,
)
from mirror_lib.records.header import LOG_OVERHEAD
from mirror_lib.topology.names import TopicPartition

#: Rows take several times the size of compressed batches.
_LARGEST_CHUNK = 1024 * 1024


def read_bin(job: RowVerifyJob, number: int, attempt: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of bin `number` (`rows.layout.READ_SCHEMA`), those of each range in the order of their
    offsets.

    Errors of a partition are never raised: the end of each range is stored in the task's `ReaderResult`, before the
    rows of the next one.
    """
    reading = _Reading(job, number, ReaderResult(job.secret, number, attempt))
    try:
        yield from reading.rows()
    finally:
        reading.close()


@dataclass(frozen=True, slots=True)
class RowChunk(Chunk):
    """A part of a fetch, as rows of `KAFKA_SCHEMA`."""

    rows: pa.RecordBatch | None = None


class RowLogReader(LogReader):
    """Reads one partition as `RowChunk`s, several for a fetch: they are decompressed one at a time."""

    def __init__(self, *arguments: Any, limits: DecodeLimits, **options: Any) -> None:
        """Args:
        arguments: as of `LogReader`.
        limits: what rows may take while they are made.
        options: as of `LogReader`.
        """
        super().__init__(*arguments, **options)
        self._limits = limits
        #: The rest of the last fetch, and the offset at which it continues.
        self._parts: Iterator[ArrowPart] = iter(())
        self._parts_at = -1

    async def _fetch(self, offset: int, end: int, *, surely_empty: bool) -> Chunk | None:
        if offset == self._parts_at and (found := self._next_part(0)) is not None:
            return found
        return await super()._fetch(offset, end, surely_empty=surely_empty)

    def _chunk(self, response: FetchedPartition, offset: int, end: int, where: Where) -> Chunk:
        self._parts = read_arrow(
            memoryview(response.records),
            response.aborted,
            topic=self._partition.topic,
            partition=self._partition.partition,
            start=offset,
            end=end,
            read_committed=self._read_committed,
            limits=self._limits,
        )
        try:
            found = self._next_part(_whole_bytes(response.records))
        except (CorruptBatchError, InexactRowError) as error:
            at = offset if error.where.offset is None else error.where.offset
            for gap in self._known_gaps:
                if gap.first_offset <= at < gap.next_offset:
                    return RowChunk((), gap.next_offset)
            error.where = where
            raise
        if found is None:
            raise TransientError("the broker does not return a whole record batch.", where=where)
        return found

    def _next_part(self, size: int) -> RowChunk | None:
        part = next(self._parts, None)
        if part is None:
            return None
        self._parts_at = part.next_offset
        return RowChunk((), part.next_offset, size, rows=part.records)


class _Reading:
    def __init__(self, job: RowVerifyJob, number: int, word: ReaderResult) -> None:
        self._job = job
        self._ranges = list(numbered_ranges(job, number))
        self._word = word
        self._spent = Spent(job.verify)
        self._thread = LoopThread("reading")
        self._ends: dict[int, RangeEnd] = {}
        self._handed_over = (-1, 0)
        #: Partitions of which nothing more is read.
        self._over: set[TopicPartition] = set()

    def rows(self) -> Iterator[pa.RecordBatch]:
        client: RawClient | MirrorError
        try:
            client = self._thread.connect(self._job.verify.source)
        except MirrorError as error:
            client = error
        for each in self._ranges:
            if each.check.source in self._over:
                continue
            stopped = self._spent.over
            if isinstance(client, MirrorError) or stopped is not None:
                unconnected = client if isinstance(client, MirrorError) else None
                self._end(each, RangeEnd(each.range.source_first, stopped=stopped, error=unconnected))
            else:
                yield from self._range(each, client)
        self._word.leave(Progress(self._ends).to_json())

    def close(self) -> None:
        self._thread.close()

    def _end(self, each: NumberedRange, end: RangeEnd) -> None:
        self._ends[each.number] = end
        if end.error is not None or end.stopped is not None:
            self._over.add(each.check.source)

    def _hand_over(self, number: int, log_start: int) -> None:
        """Publish, before any row that follows, which ranges are read, and what is missing in this one."""
        if (number, log_start) != self._handed_over:
            self._word.leave(Progress(self._ends, number, log_start).to_json())
            self._handed_over = (number, log_start)

    def _range(self, each: NumberedRange, client: RawClient) -> Iterator[pa.RecordBatch]:
        number, check, range_ = each
        stop, refusal = first_refusal(self._job, check, range_)
        skipped = self._skipped_ranges(check)
        next_offset, size, log_start, skipped_rows = range_.source_first, 0, 0, 0
        stopped: Stopped | None = None
        stream: LogStream | None = None
        with KeptError(f"reading {check.source} for a verification", "the task's log") as kept:
            try:
                stream = self._thread.run(self._stream(client, check, range_, stop))
                while next_offset < stop and (stopped := self._spent.over) is None:
                    chunk = self._thread.run(stream.take(stop))
                    assert isinstance(chunk, RowChunk) or not chunk.spans
                    log_start = max(log_start, chunk.log_start or 0)
                    next_offset = min(chunk.next_offset, stop)
                    size += chunk.size
                    self._spent.bytes += chunk.size
                    rows = chunk.rows if isinstance(chunk, RowChunk) else None
                    if rows is not None:
                        kept_rows = _without(rows, skipped)
                        skipped_rows += rows.num_rows - kept_rows.num_rows
                        if kept_rows.num_rows:
                            self._hand_over(number, log_start)
                            yield with_source(kept_rows, place_of(number, 0))
            finally:
                if stream is not None:
                    self._thread.run(stream.close())
        error = kept.error
        if error is None and stopped is None and refusal is not None:
            error = refusal
        self._end(each, RangeEnd(next_offset, size, log_start, skipped_rows, stopped, error))

    async def _stream(self, client: RawClient, check: PartitionCheck, range_: CheckRange, stop: int) -> LogStream:
        job = self._job.verify
        reader = RowLogReader(
            client,
            job.source,
            check.source,
            read_committed=job.read_committed,
            retry_seconds=job.retry_seconds,
            chunk_bytes=chunk_size(range_, _LARGEST_CHUNK),
            known_gaps=check.known_gaps,
            limits=DecodeLimits.within(job.memory_bytes),
        )
        return LogStream(reader, range_.source_first, stop)

    def _skipped_ranges(self, check: PartitionCheck) -> list[tuple[int, int]]:
        """Return the offsets that are not passed to Spark: they were skipped because they fail."""
        failed = [each for each in check.known_gaps if each.cause == UntransformableRecordError.reason]
        refused = self._job.refused.get(check.source, ())
        return [
            *((gap.first_offset, gap.next_offset) for gap in failed),
            *((each.offset, each.offset + 1) for each in refused if is_skipped(check, each.offset)),
        ]


def _without(rows: pa.RecordBatch, skipped: Sequence[tuple[int, int]]) -> pa.RecordBatch:
    if not skipped or not rows.num_rows:
        return rows
    offsets = rows.column("offset").to_numpy(zero_copy_only=False)
    kept = np.ones(len(offsets), dtype=np.bool_)
    for first, stop in skipped:
        kept &= (offsets < first) | (offsets >= stop)
    if kept.all():
        return rows
    numbers = np.flatnonzero(kept)
    return rows.take(pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)]))


def _whole_bytes(data: bytes | bytearray | memoryview) -> int:
    """Return the bytes of whole batches: a fetch may end in the middle of one."""
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        following = position + LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big")
        if following > len(data):
            break
        position = following
    return position
