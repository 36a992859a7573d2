"""Compare one partition by state: first the target, then the source to its end, then new records of the target.

A key that is deleted while both are read is then missing on the source only if the target has received its deletion by
the time it is read again, or if the deletion is not copied yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.counted import counted
from mirror_lib.errors import CorruptBatchError, TransientError, Where
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.inverted import copied_from
from mirror_lib.features.verify.compare.tally import Spent, verdict_of
from mirror_lib.features.verify.findings import PartitionVerdict, RangeOutcome, Stopped, Verdict
from mirror_lib.features.verify.kept_error import KeptError
from mirror_lib.features.verify.log_reader import LogReader, chunk_size
from mirror_lib.features.verify.model import PartitionCheck, VerifyJob
from mirror_lib.features.verify.state.compare import KeyState, StateFindings, StateRules, compare_states
from mirror_lib.features.verify.state.digests import BUCKETS, Digester, Spill
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.ranges import unite
from mirror_lib.offsets.runs import decode
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Shown
from mirror_lib.topology.names import TopicPartition

_LARGEST_CHUNK = 4 * 1024 * 1024
#: Maximum number of passes to the source's end; a source with steady writes never ends.
_ROUNDS = 10

OnBytesRead = Callable[[int], None]


#: Stable code of a partition with keys from before the offset map that only the source has.
BEFORE_MAP = "before-map"


async def compare_by_state(
    job: VerifyJob, check: PartitionCheck, source: RawClient, target: RawClient, budget: Spent, on_read: OnBytesRead
) -> PartitionVerdict:
    """Compare one partition; its errors are in the verdict, never raised."""
    comparison = StateComparison(job, check, source, target, budget, on_read)
    began = time.monotonic()
    with KeptError(f"verifying {check.source}") as kept:
        await comparison.run()
    verdict = verdict_of(
        check,
        [comparison.outcome()] if kept.error is None and comparison.stopped is None else [],
        keep=job.keep_differences,
        error=kept.error,
        stopped=comparison.stopped,
        source_bytes=comparison.source_bytes,
        target_bytes=comparison.target_bytes,
        seconds=time.monotonic() - began,
    )
    assert check.state is not None
    if verdict.verdict is not Verdict.EQUAL or not verdict.before_map or check.state.starts_late:
        return verdict
    detail = (
        f"{counted(verdict.before_map, 'key')} of the source from before the offset map "
        f"{'is' if verdict.before_map == 1 else 'are'} not on the target. What was copied before the map is unknown: "
        "`mirror map rebuild` finds out as far as both logs have it."
    )
    return replace(verdict, verdict=Verdict.UNVERIFIABLE, reason=BEFORE_MAP, detail=detail)


@dataclass(slots=True)
class _Side:
    """One log and its entries."""

    reader: LogReader
    connection: Connection
    partition: TopicPartition
    #: Offset to read next.
    at: int


@dataclass(slots=True)
class _HiddenBatches:
    """Aborted batches that were not shown, by their offsets [first, next)."""

    #: Which of them are kept; by default all.
    kept: Shown | None = None
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def note(self, first: int, next_offset: int) -> bool:
        """Keep a batch; the rule for aborted batches, which shows none."""
        if self.kept is None or self.kept(first, next_offset):
            if self.ranges and self.ranges[-1][1] == first:
                self.ranges[-1] = (self.ranges[-1][0], next_offset)
            else:
                self.ranges.append((first, next_offset))
        return False


class StateComparison:
    """Reads one partition of both sides and compares the newest records of its keys."""

    def __init__(
        self,
        job: VerifyJob,
        check: PartitionCheck,
        source: RawClient,
        target: RawClient,
        budget: Spent,
        on_read: OnBytesRead,
        *,
        keep_lost: bool = False,
    ) -> None:
        """Nothing is read yet.

        Args:
            check: with a `state`.
            on_read: called with the bytes of the source's log that were read since the last call.
            keep_lost: keep the target offsets of all keys whose deletion was lost.
        """
        self._job = job
        self._check = check
        self._budget = budget
        self._on_read = on_read
        self.digester = Digester(job.digest_key)
        self.findings = StateFindings(keep=job.keep_differences, keep_lost=keep_lost)
        self.stopped: Stopped | None = None
        self.source_bytes = self.target_bytes = 0
        self._without_key = 0
        (self._range,) = check.ranges
        chunk_bytes = chunk_size(self._range, _LARGEST_CHUNK)

        def reader(
            client: RawClient,
            connection: Connection,
            place: TopicPartition,
            *,
            shown: Shown,
        ) -> LogReader:
            return LogReader(
                client,
                connection,
                place,
                read_committed=True,
                retry_seconds=job.retry_seconds,
                chunk_bytes=chunk_bytes,
                known_gaps=check.known_gaps if place is check.source else (),
                shown=shown,
            )

        # Whatever the flow copies: aborted records do not count on either side, since a state is what readers of
        # committed records make of a topic.
        self._aborted_on_source = _HiddenBatches()
        self._source = _Side(
            reader(source, job.source, check.source, shown=self._aborted_on_source.note),
            job.source,
            check.source,
            self._range.source_first,
        )
        assert check.state is not None
        self._aborted_on_target = _HiddenBatches(copied_from(decode(check.state.by_opposite)))
        self._target = _Side(
            reader(target, job.target, check.target, shown=self._aborted_on_target.note),
            job.target,
            check.target,
            self._range.target_first,
        )

    @property
    def source_read_to(self) -> int:
        """Source offset up to which the log was read."""
        return self._source.at

    async def run(self) -> None:
        """Read and compare; `stopped` is set when a budget did not suffice.

        Raises:
            MirrorError: a log cannot be read.
        """
        with ExitStack() as stack:
            target, source, late = (stack.enter_context(Spill()) for _ in range(3))
            await self._read(self._target, target)
            self._check_readable()
            target_start = await _offset(self._target, OffsetSpec.EARLIEST)
            await self._read_to_rest(source)
            source_start = await _offset(self._source, OffsetSpec.EARLIEST)
            await self._read(self._target, late)
            if self.stopped is not None:
                return
            rules = self._rules(source_start, target_start)
            for bucket in range(BUCKETS):
                newest = [side.newest(bucket) for side in (source, target, late)]
                compare_states(newest[0], newest[1], newest[2], rules, self.findings)
                # Responses of other partitions must be processed meanwhile.
                await asyncio.sleep(0)

    def _check_readable(self) -> None:
        if self._target.at < self._check.target_end and self.stopped is None:
            raise TransientError(
                f"{self._check.target} can be read only up to offset {self._target.at}, but its log end offset was "
                f"{self._check.target_end} before: a transaction is open there, or the log was truncated.",
                where=Where(topic=self._check.source.topic, partition=self._check.source.partition),
                action="Find the transaction (`kafka-transactions.sh find-hanging`), and verify again.",
            )

    async def _read_to_rest(self, spill: Spill) -> None:
        """Read the source until nothing was added while its last part was read.

        A record that the log cleaner removes before it is read has a newer record after it, which must be read too.
        """
        for _ in range(_ROUNDS):
            before = self._source.at
            await self._read(self._source, spill)
            if self._source.at == before or self.stopped is not None:
                return

    async def _read(self, side: _Side, spill: Spill) -> None:
        """Read a side from its current offset to its present end."""
        end = await _offset(side, OffsetSpec.LAST_STABLE)
        while side.at < end:
            self.stopped = self.stopped or self._budget.over
            if self.stopped is not None:
                return
            chunk = await side.reader.read(side.at, end)
            try:
                for span in chunk.spans:
                    assert not isinstance(span, RecordBlock)
                    for record in span.records():
                        if side.at <= record.offset < end:
                            self._take(spill, record.offset, bytes(record.tail))
            except (RecordError, CodecError) as error:
                raise CorruptBatchError(
                    f"a batch cannot be decoded: {error}.",
                    where=Where(topic=side.partition.topic, partition=side.partition.partition, offset=side.at),
                    action="Compare the replicas of this partition (kafka-dump-log).",
                ) from error
            side.at = min(chunk.next_offset, end)
            if side is self._source:
                self.source_bytes += chunk.size
                self._budget.bytes += chunk.size
                self._on_read(chunk.size)
            else:
                self.target_bytes += chunk.size

    def _take(self, spill: Spill, offset: int, tail: bytes) -> None:
        entry = self.digester.entry(offset, tail)
        if entry is None:
            self._without_key += 1
        else:
            spill.add(entry)

    def _rules(self, source_start: int, target_start: int) -> StateRules:
        check = self._check
        assert check.state is not None
        gaps = [gap for gap in check.known_gaps if gap.next_offset > gap.first_offset]
        return StateRules(
            copied_to=check.state.copied_to,
            source_start=source_start,
            target_start=target_start,
            map=OffsetMap.of_runs(self._range.runs),
            settled=check.state.settled,
            target_end=check.target_end,
            skipped=unite((gap.first_offset, gap.next_offset) for gap in gaps if not gap.rewritten),
            rewritten=unite((gap.first_offset, gap.next_offset) for gap in gaps if gap.rewritten),
            foreign=unite(check.known_foreign),
            source_end=self._source.at,
            aborted_on_source=unite(self._aborted_on_source.ranges),
            aborted_on_target=unite(self._aborted_on_target.ranges),
        )

    def outcome(self) -> RangeOutcome:
        """Return the findings."""
        found, counts = self.findings, self.findings.counts
        return RangeOutcome(
            source_first=self._range.source_first,
            source_next=self._range.source_next,
            target_first=self._range.target_first,
            target_next=self._target.at,
            complete=True,
            records=counts[KeyState.EQUAL],
            gone_on_both=counts[KeyState.DELETED],
            expired=counts[KeyState.EXPIRED],
            skipped=counts[KeyState.SKIPPED],
            foreign=counts[KeyState.FOREIGN],
            pending=counts[KeyState.PENDING],
            before_map=counts[KeyState.BEFORE_MAP],
            deletions_lost=found.deletions_lost,
            aborted_keys=found.aborted,
            without_key=self._without_key,
            timestamps_compared=True,
            difference_count=found.difference_count,
            differences=tuple(found.differences),
        )


async def _offset(side: _Side, spec: OffsetSpec) -> int:
    def ask() -> int:
        with ClusterAdmin(side.connection) as admin:
            fact = admin.list_offsets([side.partition], spec)[side.partition]
        if fact.error is not None:
            raise fact.error
        return fact.offset

    return await asyncio.to_thread(ask)
