"""Take over a target partition from a writer that did not finish, or may still be alive.

The dirty start of the commit protocol (docs/architecture.md, "Exactly once"): the earlier writer is fenced, so that the
broker refuses what it still sends and all that it appended is visible; then the target's log after the last certain
pair of offsets is compared with the source. The records found there are skipped, and copying continues after them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.cluster.topics.position_format import OmittedRange
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.copy.takeover.fencing import fence
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.tail_match import MismatchError, TailMatch, TailMatcher
from mirror_lib.errors import (
    CorruptBatchError,
    DirtyStartError,
    MirrorError,
    RecordTooLargeError,
    TargetDivergedError,
    TargetTruncatedError,
    TransientError,
    Where,
)
from mirror_lib.offsets.runs import OffsetRun, merge
from mirror_lib.planning.model import CopyJob, OpenPartition, Poison, Takeover
from mirror_lib.planning.next_steps import (
    after_foreign_records,
    after_interrupted_merge,
    after_lost_records,
    set_position_or_copy_anew,
)
from mirror_lib.records.builder import largest_encoding
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.header import HEADER_SIZE
from mirror_lib.records.records import Record, RecordError
from mirror_lib.records.spans import Span

#: Reads the spans of a log from an offset on.
Read = Callable[[int], Awaitable[Sequence[Span]]]
#: Number of concurrent take-overs. Each reads both logs, so this limits memory too.
_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class Recovered:
    """The result of a take-over: where copying continues, the new writer, and where the records found are."""

    opened: OpenPartition
    runs: tuple[OffsetRun, ...] = ()
    #: Ranges that the interrupted run had skipped, and may not have recorded.
    poison: tuple[Poison, ...] = ()


async def take_over_all(
    job: CopyJob, partitions: Sequence[OpenPartition], source: RawClient, target: RawClient
) -> list[tuple[OpenPartition, Recovered | MirrorError]]:
    """Take over many partitions, some at a time; each has its own result.

    Raises:
        MirrorError: the transactions of an earlier run's markers could not be ended (`mirror.offsets = same`).
    """
    if job.settings.same_offsets and partitions:
        # Tasks of other flows do not load it.
        from mirror_lib.copy.takeover.same_offsets import end_markers

        partitions = await end_markers(job.flow, partitions, target)
    limit = asyncio.Semaphore(_AT_A_TIME)
    sharing = Counter(opened.plan.target for opened in partitions)

    async def one(opened: OpenPartition) -> tuple[OpenPartition, Recovered | MirrorError]:
        if sharing[opened.plan.target] > 1:
            return opened, _merged_target_error(job, opened)
        async with limit:
            try:
                return opened, await take_over(job, opened, source, target)
            except MirrorError as error:
                return opened, error

    return list(await asyncio.gather(*(one(opened) for opened in partitions)))


def _merged_target_error(job: CopyJob, opened: OpenPartition) -> DirtyStartError:
    plan = opened.plan
    where = Where(flow=str(job.flow), topic=plan.source.topic, partition=plan.source.partition)
    return DirtyStartError(
        f"an earlier run wrote to {plan.target}, into which several topics are merged: the last copied offset of "
        "each topic cannot be determined from its log.",
        where=where,
        action=after_interrupted_merge(where),
    )


async def take_over(job: CopyJob, opened: OpenPartition, source: RawClient, target: RawClient) -> Recovered:
    """Fence the earlier writer, find how far it came, and return the partition opened for the rest.

    Raises:
        TargetDivergedError: the target has other records than the source: another producer wrote there.
        TargetTruncatedError: the target is shorter than what was certainly copied.
        DirtyStartError: the content of the target cannot be determined.
        MirrorError: a cluster did not respond in time, or refused.
    """
    return await _Recovery(job, opened, source, target).run()


class _Recovery:
    def __init__(self, job: CopyJob, opened: OpenPartition, source: RawClient, target: RawClient) -> None:
        assert opened.takeover is not None
        self._job = job
        self._opened = opened
        self._takeover: Takeover = opened.takeover
        plan, settings = opened.plan, job.settings
        where = Where(flow=str(job.flow), topic=plan.source.topic, partition=plan.source.partition)
        self._source = PartitionReader(
            source, plan.source, settings, read_committed=job.read_committed, interrupted=where
        )
        # Consumers of committed records do not see aborted transactions (MM2 with exactly-once support).
        self._target = PartitionReader(target, plan.target, settings, read_committed=True, interrupted=where)
        self._client = target
        self._now_ms = int(time.time() * 1000)
        self._where = where

    async def run(self) -> Recovered:
        identity, end = await self._fence()
        if self._takeover.in_transactions and not await self._holds_records(end):
            # Uncommitted records are aborted by now.
            found = TailMatch(self._takeover.source_offset, records=0, unknown=0, runs=(), skipped=())
            skipped: Sequence[OmittedRange] = self._takeover.skipped
        else:
            found, skipped = await self._match(end)
        if found.source_next < self._opened.plan.start:
            raise TargetTruncatedError(
                f"{self._opened.plan.target} contains the source's records only up to offset "
                f"{found.source_next - 1}, but the stored position says that they were copied up to "
                f"{self._opened.plan.start - 1}.",
                where=self._where,
                action=after_lost_records(self._where),
            )
        # The epoch of a later record is another one; the copy that continues will read it.
        epoch = self._opened.plan.leader_epoch if found.source_next == self._opened.plan.start else None
        opened = replace(
            self._opened,
            plan=replace(self._opened.plan, start=found.source_next, leader_epoch=epoch),
            producer_id=identity.producer_id,
            epoch=identity.epoch,
            target_offset=end,
            takeover=None,
            taken_over=True,
            claimed_at=self._now_ms / 1000,
        )
        poison = [known_poison(each) for each in skipped if each.first_offset < found.source_next]
        poison += [self._poison(record) for record in found.skipped]
        runs = merge((*self._takeover.runs, *found.runs))
        return Recovered(opened, runs, tuple(sorted(poison, key=lambda each: each.first_offset)))

    async def _fence(self) -> tuple[ProducerIdentity, int]:
        if not self._job.settings.same_offsets:
            return await fence(self._job, self._opened, self._client, self._target)
        from mirror_lib.copy.takeover.same_offsets import fence_without_marker

        return await fence_without_marker(
            self._opened,
            self._client,
            self._target,
            retry_seconds=self._job.settings.retry_max_seconds,
            where=self._where,
        )

    async def _holds_records(self, end: int) -> bool:
        """True if a consumer sees a record after the certain pair."""
        offset = max(self._takeover.target_offset, self._takeover.target_log_start)
        while offset < end:
            spans = await self._read_target(offset)
            if any(not each.is_hidden and each.first < end for each in spans):
                return True
            offset = spans[-1].next_offset
        return False

    async def _match(self, end: int) -> tuple[TailMatch, Sequence[OmittedRange]]:
        """Compare the target's tail with the source; also return the ranges that were certainly skipped."""
        skipped = self._takeover.skipped
        try:
            return await self._match_tail(end, skipped), skipped
        except (TargetDivergedError, CorruptBatchError):
            # The earlier writer may have skipped more since its position was read; now it is fenced.
            later = await asyncio.to_thread(self._stored_omissions)
            if set(later) <= set(skipped):
                raise
        skipped = _unite(skipped, later)
        return await self._match_tail(end, skipped), skipped

    async def _check_held(self, end: int) -> None:
        """Check that the target still has records after the certain pair, if any were written there.

        Raises:
            DirtyStartError: all of them were deleted.
        """
        deleted = self._takeover.target_log_start > self._takeover.target_offset
        # Fencing may have appended a marker there, which is not a record.
        if deleted and not await self._holds_records(end):
            raise DirtyStartError(
                f"all records at offsets {self._takeover.target_offset} to {end - 1} of {self._opened.plan.target} "
                "were deleted: the last offset copied by the interrupted run cannot be determined.",
                where=self._where,
                action=f"Retention or DeleteRecords removed them. {set_position_or_copy_anew(self._where)}",
            )

    async def _match_tail(self, end: int, skipped: Sequence[OmittedRange]) -> TailMatch:
        if self._job.settings.same_offsets:
            # Tasks of other flows do not load it.
            from mirror_lib.copy.takeover.same_offsets import match_by_offset

            first = max(self._takeover.target_offset, self._takeover.target_log_start)
            with self._explained():
                return await match_by_offset(
                    self._read_source,
                    self._read_target,
                    first,
                    end,
                    source_offset=self._takeover.source_offset,
                    skipped=skipped,
                )
        await self._check_held(end)
        matcher = TailMatcher(
            self._takeover.source_offset,
            self._takeover.target_offset,
            end,
            skipped=skipped,
            may_be_skipped=self._may_be_skipped,
        )
        await self._walk(matcher)
        return matcher.match()

    def _stored_omissions(self) -> list[OmittedRange]:
        """The ranges within the compared offsets that were skipped by any position of this partition."""
        # Rarely needed, and another Kafka client, which must not be loaded before Spark forks its workers.
        from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore

        plan, topic = self._opened.plan, self._job.positions
        if topic is None:
            return []
        with PositionStore(topic.connection, topic.topic, topic.source_alias, connector=topic.connector) as store:
            stored = [each.position for each in store.read_since(PositionSnapshot())]
        return [
            each
            for position in stored
            if position.source == plan.source and position.topic_id == plan.topic_id
            for each in position.skipped
            if each.next_offset > self._takeover.source_offset
        ]

    async def _walk(self, matcher: TailMatcher) -> None:
        with self._explained():
            await walk_along(matcher, self._read_source, self._read_target)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except MismatchError as error:
            raise TargetDivergedError(
                f"{self._opened.plan.target} offset {error.target_offset} does not match source offset "
                f"{error.source_offset}: another producer wrote to it, or records needed for the comparison were "
                "deleted.",
                where=replace(self._where, offset=error.source_offset),
                # Up to there, the target has the source's records.
                action=after_foreign_records(self._where, error.source_offset),
            ) from error
        except (RecordError, CodecError) as error:
            raise CorruptBatchError(
                f"the end of {self._opened.plan.target} cannot be compared with the source: {error}.",
                where=self._where,
                action="Compare the replicas of both partitions (kafka-dump-log).",
            ) from error

    def _may_be_skipped(self, record: Record) -> bool:
        """True if the flow's policy may skip this record, except for refusals that only the target knows."""
        return self._job.settings.poison_policy is not PoisonPolicy.FAIL and self._refusal(record) is not None

    def _refusal(self, record: Record) -> MirrorError | None:
        plan = self._opened.plan
        size = HEADER_SIZE + largest_encoding(len(record.tail), 1)
        if size > plan.target_max_message_bytes:
            return RecordTooLargeError(
                f"the record takes about {size} bytes, but the target accepts at most {plan.target_max_message_bytes}."
            )
        return plan.target_rules.refusal(record, plan.target_rules.allowed_times(self._now_ms))

    def _poison(self, record: Record) -> Poison:
        refusal = self._refusal(record)
        assert refusal is not None
        return Poison(
            first_offset=record.offset,
            next_offset=record.offset + 1,
            records=1,
            cause=refusal.reason,
            detail=refusal.what,
            first_timestamp=record.timestamp,
            last_timestamp=record.timestamp,
            quarantined=self._job.settings.poison_policy is PoisonPolicy.QUARANTINE,
        )

    async def _read_source(self, offset: int) -> Sequence[Span]:
        """The source's spans from an offset on; none at its end, which is at the plan's end or after it."""
        backoff = Backoff(self._job.settings.retry_max_seconds)
        while not (found := await self._source.read(offset)) and offset < self._opened.plan.end:
            # A new leader does not know the high watermark yet; remote storage may be slow.
            await self._source.pause(
                backoff,
                TransientError(
                    f"the source returns no records from offset {offset}, but had some when the run was planned.",
                    where=replace(self._where, offset=offset),
                    action="Check the source's brokers; the next run tries again.",
                ),
            )
        return found

    async def _read_target(self, offset: int) -> Sequence[Span]:
        offset = max(offset, self._takeover.target_log_start)
        backoff = Backoff(self._job.settings.retry_max_seconds)
        while not (found := await self._target.read(offset)):
            # Its end was requested a moment ago.
            await self._target.pause(
                backoff,
                TransientError(
                    f"{self._opened.plan.target} returns no records from offset {offset}.",
                    where=self._where,
                    action="Check the target's brokers.",
                ),
            )
        return found


async def walk_along(matcher: TailMatcher, read_source: Read, read_target: Read) -> None:
    """Feed a matcher from both logs until it has finished.

    Args:
        read_source: returns the source's spans from an offset on; none at its end.
        read_target: the same for the target, which the matcher does not read after its end.

    Raises:
        MismatchError: the target has other records than the source.
        RecordError, CodecError: a batch cannot be read.
    """
    source_ended = False
    while not matcher.is_finished:
        if matcher.needs_target:
            matcher.feed_target(await read_target(matcher.target_offset))
        elif not source_ended:
            omitted = matcher.omission_at(matcher.source_offset)
            if omitted is not None:
                # It may be the unreadable range.
                more: Sequence[Span] = [Span(matcher.source_offset, omitted.next_offset)]
            else:
                more = await read_source(matcher.source_offset)
            matcher.feed_source(more)
            source_ended = not more
        matcher.walk(source_ended=source_ended)


def known_poison(omitted: OmittedRange) -> Poison:
    """A skipped range in a position, as an entry of a partition's account."""
    return Poison(
        first_offset=omitted.first_offset,
        next_offset=omitted.next_offset,
        records=omitted.records,
        cause=omitted.cause,
        detail="skipped by an earlier run, as stored in its position.",
        quarantined=omitted.quarantined,
    )


def _unite(known: Sequence[OmittedRange], later: Sequence[OmittedRange]) -> tuple[OmittedRange, ...]:
    """Ranges without overlaps: positions repeat the same ranges, and a later one may have grown."""
    united: list[OmittedRange] = []
    for each in sorted({*known, *later}, key=lambda each: (each.first_offset, -each.next_offset)):
        if not united or each.first_offset >= united[-1].next_offset:
            united.append(each)
        elif each.next_offset > united[-1].next_offset:
            united.append(each._replace(first_offset=united[-1].next_offset, records=None))
    return tuple(united)
