"""The comparing half of a transformed comparison: rows as they come from Spark against the target's log, in order.

Rows become blocks of records, and are compared like the records of an untransformed source (`verify.compare`), through
the same map. Routed rows are summed up (`verify.routed.routed_rows`).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import CorruptBatchError, MirrorError, Where
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.transforms.rows.columns import RowColumns, by_place
from mirror_lib.features.transforms.rows.layout import Int64s, number_and_codec
from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.compare.expected_offsets import MOST_ROWS, ROW_BITS
from mirror_lib.features.verify.compare.tally import verdict_of
from mirror_lib.features.verify.findings import PartitionVerdict, RangeOutcome, Stopped
from mirror_lib.features.verify.kept_error import KeptError
from mirror_lib.features.verify.log_reader import LogReader, LogStream, chunk_size
from mirror_lib.features.verify.model import PartitionCheck
from mirror_lib.features.verify.routed.findings import Place, RoutedFindings
from mirror_lib.features.verify.routed.routed_rows import Elsewhere, FoundRow
from mirror_lib.features.verify.transformed.loop_thread import LoopThread
from mirror_lib.features.verify.transformed.model import (
    NumberedRange,
    Progress,
    RangeEnd,
    RowVerifyJob,
    numbered_ranges,
)
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError

_log = logging.getLogger(__name__)
_LARGEST_CHUNK = 4 * 1024 * 1024


def compare_bin(
    job: RowVerifyJob, number: int, attempt: int, rows: Iterable[pa.RecordBatch]
) -> tuple[list[PartitionVerdict], RoutedFindings]:
    """Compare the rows of bin `number` with the target. Return a verdict for each of its partitions, and the findings
    for other partitions. Partitions that are read only for the latter have no verdict.

    Args:
        rows: of `rows.layout.WRITTEN_DDL`; range after range, each in the order of its offsets.

    Raises:
        MirrorError: the rows ended before the source was read to the end, or ranges are interleaved.
        ValueError: they are not the output of a transform.
    """
    comparing = _Comparing(job, number, ReaderResult(job.secret, number, attempt))
    try:
        for batch in rows:
            comparing.take(batch)
        return comparing.verdicts(), comparing.findings()
    finally:
        comparing.close()


def find_bin(
    job: RowVerifyJob,
    number: int,
    attempt: int,
    rows: Iterable[pa.RecordBatch],
    wanted: Mapping[Place, frozenset[bytes]],
) -> list[FoundRow]:
    """Return the source records of bin `number` whose rows have the searched digests.

    Raises:
        ValueError: the rows are not the output of a transform.
    """
    elsewhere = Elsewhere(job.verify)
    ranges = {each.number: each for each in numbered_ranges(job, number)}
    found: list[FoundRow] = []
    for batch in rows:
        first = 0
        for each in by_place(batch, routes=False):
            check = ranges[number_and_codec(each.place)[0]].check
            part = batch.slice(first, len(each.rows))
            first += len(each.rows)
            found += elsewhere.find(check, each.rows, part, wanted)
    ReaderResult(job.secret, number, attempt).take()
    return found


class RowNumbers:
    """Numbers the rows of one range in ascending order: by source offset, or with `several` as in `RowPlaces`."""

    def __init__(self, *, several: bool) -> None:
        self._several = several
        self._last_offset, self._last_row = -1, -1

    def block(self, rows: RowColumns) -> RecordBlock:
        """Return the rows, at least one, as records to compare.

        Raises:
            MirrorError: they are not in the order of their source offsets, are several where one was expected, or
                cannot be records.
        """
        offsets = rows.offsets
        steps = np.diff(offsets, prepend=self._last_offset)
        if (steps < 0).any() or (not self._several and not steps.all()):
            raise _order_error(int(offsets[int(np.argmax(steps <= 0))]), several=self._several)
        numbers = self._numbers(offsets, steps) if self._several else offsets
        self._last_offset, self._last_row = int(offsets[-1]), int(numbers[-1])
        tails = rows.tails()
        starts = np.concatenate((np.zeros(1, dtype=np.int64), tails.ends[:-1]))
        first, following = int(numbers[0]), int(numbers[-1]) + 1
        return RecordBlock(first, following, numbers, tails.times, tails.content, starts, tails.ends)

    def _numbers(self, offsets: Int64s, steps: Int64s) -> Int64s:
        """Source offsets in the upper bits; below them 0, 1, 2... among the rows of one record."""
        at = np.arange(len(offsets), dtype=np.int64)
        begins = np.maximum.accumulate(np.where(steps > 0, at, 0))
        among = at - begins
        if not steps[0]:
            # The record's first rows came before.
            stop = int(np.argmax(steps > 0)) if steps.any() else len(steps)
            among[:stop] += (self._last_row & (MOST_ROWS - 1)) + 1
        if among.max() >= MOST_ROWS:
            raise MirrorError(
                f"a transform returns more than {MOST_ROWS} records for one record.",
                action="This cannot be verified; compare the topic with another tool.",
            )
        return (offsets << ROW_BITS) + among


def _order_error(offset: int, *, several: bool) -> MirrorError:
    what = "rows in another order than their records" if several else "several rows for one record"
    return MirrorError(
        f"a transform returns {what} (source offset {offset}).",
        action="A transform must not sort rows; if it is not your own code, please report it.",
    )


class _Walk:
    """The comparison of one range, as far as its rows have arrived."""

    def __init__(self, job: RowVerifyJob, each: NumberedRange, thread: LoopThread) -> None:
        self._job = job.verify
        self.check, self.range = each.check, each.range
        self._thread = thread
        self._bits = ROW_BITS if each.check.several else 0
        self._numbers = RowNumbers(several=each.check.several)
        self._comparer = RangeComparer(each.check, each.range, keep=job.verify.keep_differences)
        self._stream: LogStream | None = None
        self._log_start = 0
        self.target_bytes = 0
        self._skipped = 0

    def source_starts(self, log_start: int) -> None:
        """Retention moved the start of the source's log; rows after it are still to come."""
        self._log_start = max(self._log_start, log_start)

    def take(self, rows: RowColumns, target: RawClient) -> None:
        """Compare rows as far as possible.

        Raises:
            MirrorError: the target cannot be read, or the rows cannot be records.
        """
        if self._log_start and int(rows.offsets[-1]) >= self._log_start:
            before = int(np.searchsorted(rows.offsets, self._log_start))
            if before:
                self._feed(rows.part(0, before), target)
            self._expire()
            rows = rows.part(before, len(rows))
        self._feed(rows, target)

    def end(self, end: RangeEnd, target: RawClient) -> None:
        """Compare the rest; all rows before `end.source_next` have arrived.

        Raises:
            MirrorError: the target cannot be read.
        """
        self._skipped += end.skipped
        if max(self._log_start, end.log_start):
            self._log_start = max(self._log_start, end.log_start)
            self._expire()
        self._comparer.feed_source((), end.source_next << self._bits)
        self._walk(target)

    def close(self) -> None:
        """Drop what was read ahead."""
        if self._stream is not None:
            self._thread.run(self._stream.close())
            self._stream = None

    def outcome(self) -> RangeOutcome:
        """Return the findings so far."""
        found = self._comparer.outcome()
        return replace(found, skipped=found.skipped + self._skipped)

    def _expire(self) -> None:
        self._comparer.source_expired(self._log_start)
        self._log_start = 0

    def _feed(self, rows: RowColumns, target: RawClient) -> None:
        block = self._numbers.block(rows)
        self._comparer.feed_source((block,), block.next_offset)
        self._walk(target)

    def _walk(self, target: RawClient) -> None:
        comparer = self._comparer
        try:
            comparer.walk()
            while comparer.needs_target and not comparer.finished:
                if self._stream is None:
                    self._stream = self._thread.run(self._open(target))
                chunk = self._thread.run(self._stream.take(comparer.target.end))
                if chunk.log_start is not None:
                    comparer.target_expired(chunk.log_start)
                comparer.feed_target(chunk.spans, chunk.next_offset)
                self.target_bytes += chunk.size
                comparer.walk()
        except (RecordError, CodecError) as error:
            raise CorruptBatchError(
                f"a batch cannot be decoded: {error}.",
                where=Where(flow=str(self._job.flow), topic=self.check.target.topic),
                action="Compare the replicas of both partitions (kafka-dump-log).",
            ) from error

    async def _open(self, target: RawClient) -> LogStream:
        reader = LogReader(
            target,
            self._job.target,
            self.check.target,
            read_committed=True,
            retry_seconds=self._job.retry_seconds,
            chunk_bytes=chunk_size(self.range, _LARGEST_CHUNK),
        )
        return LogStream(reader, self._comparer.target.fed_to, self._comparer.target.end)


@dataclass(slots=True)
class _Account:
    """The findings of one partition."""

    check: PartitionCheck
    outcomes: list[RangeOutcome] = field(default_factory=list)
    source_bytes: int = 0
    target_bytes: int = 0
    error: MirrorError | None = None
    stopped: Stopped | None = None
    seconds: float = 0.0
    #: Ranges of source offsets whose rows have arrived.
    read: list[tuple[int, int]] = field(default_factory=list)

    @property
    def over(self) -> bool:
        """Return True if nothing more is compared."""
        return self.error is not None

    def verdict(self, keep: int) -> PartitionVerdict:
        """Return the verdict."""
        check = self.check
        return verdict_of(
            check,
            self.outcomes,
            keep=keep,
            error=self.error,
            stopped=self.stopped,
            source_bytes=self.source_bytes,
            target_bytes=self.target_bytes,
            seconds=self.seconds,
        )


class _Comparing:
    def __init__(self, job: RowVerifyJob, number: int, word: ReaderResult) -> None:
        self._job = job
        self._word = word
        self._thread = LoopThread("comparing")
        self._client: RawClient | None = None
        self._accounts = {check.source: _Account(check) for check in job.verify.bins[number]}
        self._elsewhere = Elsewhere(job.verify)
        #: Those whose rows have not all come, in the order of reading.
        self._waiting = deque(numbered_ranges(job, number))
        #: The comparison of the first of them, once its rows arrive.
        self._walk: _Walk | None = None

    def take(self, batch: pa.RecordBatch) -> None:
        """Compare the rows of a batch."""
        # Written by the reading half before it sent these rows; it may already contain more.
        position = self._word.look()
        progress = Progress() if position is None else Progress.from_json(position)
        first = 0
        for each in by_place(batch, routes=False):
            number, _ = number_and_codec(each.place)
            self._end(progress, before=number)
            if not self._waiting or self._waiting[0].number != number:
                raise MirrorError(
                    "the rows of several partitions are mixed.",
                    action="A transform must not sort or repartition rows.",
                )
            part = batch.slice(first, len(each.rows))
            first += len(each.rows)
            walk = self._walk_of(self._waiting[0])
            if progress.number == number:
                walk.source_starts(progress.log_start)
            self._guard(walk.check, partial(self._take, walk, each.rows, part))

    def verdicts(self) -> list[PartitionVerdict]:
        """Return the verdict of each partition; all rows have arrived."""
        self._end(Progress.from_json(self._word.take()), before=None)
        keep = self._job.verify.keep_differences
        return [account.verdict(keep) for account in self._accounts.values() if not account.check.routed_only]

    def findings(self) -> RoutedFindings:
        """Return the findings for other partitions; call after `verdicts`."""
        found = self._elsewhere.findings
        for source, account in self._accounts.items():
            if account.error is not None:
                # It is unknown how much of its last batch is in the sums.
                found.errors[source] = account.error
                continue
            found.read[source] = account.read
            if account.stopped is not None:
                found.stopped[source] = account.stopped
        return found

    def close(self) -> None:
        """Close the connection to the target."""
        self._thread.close()

    def _walk_of(self, each: NumberedRange) -> _Walk:
        if self._walk is None:
            self._walk = _Walk(self._job, each, self._thread)
        return self._walk

    def _take(self, walk: _Walk, rows: RowColumns, part: pa.RecordBatch) -> None:
        own = self._elsewhere.without(walk.check, rows, part) if walk.check.chain.may_route else rows
        if len(own) and not walk.range.routed_only:
            walk.take(own, self._target())

    def _end(self, progress: Progress, *, before: int | None) -> None:
        """End the ranges whose rows have all arrived: those before the range of the current rows."""
        while self._waiting and (before is None or self._waiting[0].number < before):
            each = self._waiting.popleft()
            end = progress.ends.get(each.number)
            # Without an end nothing of it was read: its partition ended before.
            if end is not None:
                self._end_of(each, end)
            self._walk = None

    def _end_of(self, each: NumberedRange, end: RangeEnd) -> None:
        account = self._accounts[each.check.source]
        account.stopped = account.stopped or end.stopped
        account.source_bytes += end.bytes
        first = max(each.range.source_first, end.log_start)
        if end.source_next > first:
            account.read.append((first, end.source_next))
        if each.range.routed_only:
            account.error = account.error or end.error
            return
        # A range that was not begun has no outcome.
        if end.source_next > each.range.source_first or (end.stopped is None and end.error is None):
            walk = self._walk_of(each)
            self._guard(each.check, lambda: walk.end(end, self._target()))
            account.outcomes.append(walk.outcome())
            account.target_bytes += walk.target_bytes
            walk.close()
        account.error = account.error or end.error

    def _guard(self, check: PartitionCheck, work: Callable[[], None]) -> None:
        """Do a part of the comparison; an error ends the comparison of that partition only."""
        account = self._accounts[check.source]
        if account.over:
            return
        began = time.monotonic()
        with KeptError(f"verifying {check.source}", "the task's log") as kept:
            work()
        account.error = kept.error or account.error
        account.seconds += time.monotonic() - began

    def _target(self) -> RawClient:
        if self._client is None:
            self._client = self._thread.connect(self._job.verify.target)
        return self._client
