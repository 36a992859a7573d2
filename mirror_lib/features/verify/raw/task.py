"""Compare the partitions of one task: read both sides, feed the comparison, respect memory, byte and time budgets."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.errors import CorruptBatchError, MirrorError, Where
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.compare import RangeComparer
from mirror_lib.features.verify.compare.inverted import copied_from, inverse_check, inverse_outcome
from mirror_lib.features.verify.compare.tally import Spent, verdict_of
from mirror_lib.features.verify.findings import PartitionVerdict, RangeOutcome, Stopped
from mirror_lib.features.verify.kept_error import KeptError
from mirror_lib.features.verify.log_reader import LogReader, LogStream, chunk_size
from mirror_lib.features.verify.model import CheckRange, PartitionCheck, VerifyJob
from mirror_lib.features.verify.own_deletions import hide_own_deletions
from mirror_lib.features.verify.state.run import compare_by_state
from mirror_lib.features.verify.uncommitted import UncommittedRecords
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Span

_LARGEST_CHUNK = 4 * 1024 * 1024
#: Chunks that one partition may hold: on each side one compared, one waiting, one read, one in flight.
_CHUNKS_HELD = 8

#: Called with the bytes of the source's log that were read since the last call.
OnBytesRead = Callable[[int], None]


def verify_bin(job: VerifyJob, number: int, on_read: OnBytesRead | None = None) -> list[PartitionVerdict]:
    """Compare every partition of bin `number`; errors of a partition are in its verdict, never raised."""
    return asyncio.run(_verify(job, job.bins[number], on_read or (lambda _: None)))


async def _verify(job: VerifyJob, checks: Sequence[PartitionCheck], on_read: OnBytesRead) -> list[PartitionVerdict]:
    budget = Spent(job)
    at_a_time = asyncio.Semaphore(max(job.memory_bytes // (_CHUNKS_HELD * _LARGEST_CHUNK), 1))
    try:
        async with open_clients(job.source, job.target) as (source, target):

            async def one(check: PartitionCheck) -> PartitionVerdict:
                async with at_a_time:
                    if check.state is not None:
                        return await compare_by_state(job, check, source, target, budget, on_read)
                    return await _Check(job, check, source, target, budget, on_read).run()

            return list(await asyncio.gather(*(one(check) for check in checks)))
    except MirrorError as error:
        return [PartitionVerdict.for_error(check.source, check.target, error) for check in checks]


@dataclass(slots=True)
class _Check:
    """One partition: its ranges one after the other."""

    _job: VerifyJob
    _check: PartitionCheck
    _source: RawClient
    _target: RawClient
    _budget: Spent
    _on_read: OnBytesRead
    _outcomes: list[RangeOutcome] = field(default_factory=list)
    _source_bytes: int = 0
    _target_bytes: int = 0
    _stopped: Stopped | None = None

    async def run(self) -> PartitionVerdict:
        began = time.monotonic()
        with KeptError(f"verifying {self._check.source}") as kept:
            for range_ in self._check.ranges:
                self._stopped = self._budget.over
                if self._stopped is None:
                    await self._range(range_)
                if self._stopped is not None:
                    break
        return self._verdict(kept.error, time.monotonic() - began)

    async def _range(self, range_: CheckRange) -> None:
        check, compared = inverse_check(self._check, range_) if range_.by_opposite else (self._check, range_)
        comparer = RangeComparer(check, compared, keep=self._job.keep_differences)
        uncommitted = self._uncommitted(compared)
        source, target = self._streams(check, compared, comparer, uncommitted)
        try:
            await self._walk(comparer, source, target, by_opposite=range_.by_opposite)
        except (RecordError, CodecError) as error:
            raise CorruptBatchError(
                f"a batch cannot be decoded: {error}.",
                where=Where(flow=str(self._job.flow), topic=self._check.source.topic),
                action="Compare the replicas of both partitions (kafka-dump-log).",
            ) from error
        finally:
            await asyncio.gather(source.close(), target.close())
            found = comparer.outcome()
            if uncommitted is not None:
                found = replace(found, aborted=uncommitted.aborted, undecided=uncommitted.undecided)
            self._outcomes.append(inverse_outcome(found, range_) if range_.by_opposite else found)

    async def _walk(self, comparer: RangeComparer, source: LogStream, target: LogStream, *, by_opposite: bool) -> None:
        comparer.walk()
        while not comparer.finished:
            self._stopped = self._budget.over
            if self._stopped is not None:
                return
            # Both are in flight already, so waiting for one does not delay the other.
            if comparer.needs_source:
                chunk = await source.take(comparer.source.end)
                if chunk.log_start is not None:
                    comparer.source_expired(chunk.log_start)
                comparer.feed_source(chunk.spans, chunk.next_offset)
                self._count(chunk.size, of_source=not by_opposite)
            if comparer.needs_target:
                chunk = await target.take(comparer.target.end)
                if chunk.log_start is not None:
                    comparer.target_expired(chunk.log_start)
                spans = self._hide_deletions(chunk.spans, by_opposite=by_opposite)
                comparer.feed_target(spans, chunk.next_offset)
                self._count(chunk.size, of_source=by_opposite)
            comparer.walk()
            if self._check.nothing_copied and comparer.met_records:
                return
            # Responses that arrived meanwhile must be requested again before the next long comparison.
            await asyncio.sleep(0)

    def _count(self, size: int, *, of_source: bool) -> None:
        if not of_source:
            self._target_bytes += size
            return
        self._source_bytes += size
        self._budget.bytes += size
        self._on_read(size)

    def _hide_deletions(
        self, spans: Sequence[Span | RecordBlock], *, by_opposite: bool
    ) -> Sequence[Span | RecordBlock]:
        """Return what may be a copy on the target: in compacted topics the flow may itself have written deletions."""
        if not (self._check.source_compacted or self._check.target_compacted):
            return spans
        flow = self._job.flow.opposite if by_opposite else self._job.flow
        return hide_own_deletions([each for each in spans if isinstance(each, Span)], str(flow))

    def _uncommitted(self, range_: CheckRange) -> UncommittedRecords | None:
        if not (range_.by_opposite or not self._job.read_committed):
            return None
        shown = copied_from(range_.runs) if range_.by_opposite else None
        return UncommittedRecords(range_.source_first, range_.source_next, shown)

    def _streams(
        self,
        check: PartitionCheck,
        range_: CheckRange,
        comparer: RangeComparer,
        uncommitted: UncommittedRecords | None,
    ) -> tuple[LogStream, LogStream]:
        chunk_bytes = chunk_size(range_, _LARGEST_CHUNK)
        job, by_opposite = self._job, range_.by_opposite
        sides = ((self._source, job.source), (self._target, job.target))
        read, copied = reversed(sides) if by_opposite else sides
        mine = LogReader(
            *read,
            check.source,
            # The isolation level of the opposite flow at that time may not be in the file any more, but its map shows
            # it.
            read_committed=by_opposite or job.read_committed,
            uncommitted=uncommitted,
            retry_seconds=job.retry_seconds,
            chunk_bytes=chunk_bytes,
            known_gaps=check.known_gaps,
            gather_small=True,
        )
        theirs = LogReader(
            *copied,
            check.target,
            # Aborted records do not count, regardless of their writer: an earlier MM2 may have written them.
            read_committed=True,
            retry_seconds=job.retry_seconds,
            chunk_bytes=chunk_bytes,
        )
        return (
            LogStream(mine, range_.source_first, range_.source_next),
            LogStream(theirs, range_.target_first, comparer.target.end),
        )

    def _verdict(self, error: MirrorError | None, seconds: float) -> PartitionVerdict:
        return verdict_of(
            self._check,
            self._outcomes,
            keep=self._job.keep_differences,
            error=error,
            stopped=self._stopped,
            source_bytes=self._source_bytes,
            target_bytes=self._target_bytes,
            seconds=seconds,
        )
