"""Audit one partition: read both logs, wait for the target, look up what the alignment left open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import CorruptBatchError, MirrorError, Where
from mirror_lib.features.audit.account import Account, Bounds
from mirror_lib.features.audit.alignment import Alignment, Need
from mirror_lib.features.audit.findings import Answer, Facts, Finding, Kind, Occurrence, Offsets, Question, Unpaired
from mirror_lib.features.audit.journal import Done, Journal, Place
from mirror_lib.features.audit.log import Log
from mirror_lib.features.audit.marks import Positions
from mirror_lib.features.audit.model import AuditJob, PartitionPair, PartitionReport, Verdict, verdict_of
from mirror_lib.features.audit.unmatched import content_of, part_hash
from mirror_lib.features.verify.compare.realignment import parts
from mirror_lib.features.verify.compare.record_columns import Columns
from mirror_lib.features.verify.compare.side import REPLACED
from mirror_lib.features.verify.log_reader import LogStream
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError

_POLL_SECONDS = 0.5
_NOTE_SECONDS = 2.0
#: Memory of a record without an equal while it is judged.
_UNMATCHED_BYTES = 600
#: Below this share of equal records it is no copy.
_NO_COPY = 0.03
#: Records of each side without an equal from which on that is judged.
_FEWEST = 100

#: Called with the number of source offsets that were read since the last call.
OnRead = Callable[[int], None]


class PartitionAudit:
    """The audit of one partition."""

    def __init__(
        self,
        job: AuditJob,
        pair: PartitionPair,
        source: RawClient,
        target: RawClient,
        on_read: OnRead = lambda _: None,
    ) -> None:
        self._job, self._pair, self._on_read = job, pair, on_read
        self._source = Log.of(job, pair.source, source, of_source=True)
        self._target = Log.of(job, pair.target, target, of_source=False)
        self._walk = Alignment(
            (pair.first[0], pair.source_end),
            (pair.first[1], pair.target_end),
            partitions=(pair.source.partition, pair.target.partition),
            marks=(pair.source_marks, pair.target_marks),
            rewrite=self._source.rewrite,
            most_unmatched=max(job.memory_bytes // _UNMATCHED_BYTES, 10_000),
            merged=pair.merged,
            to_source_end=job.sample is not None,
            ignore_times=job.ignore_times,
            same_offsets=job.same_offsets,
        )
        if pair.reached is not None:
            self._walk.resume(pair.reached)
        self._journal = None if job.journal is None else Journal(job.journal)
        self._noted_at = time.monotonic()
        self._streams: dict[bool, LogStream] = {}
        self._passes = 1
        self._in_order = 0
        #: The end of the target for which the source was read beyond its first end.
        self._looked_beyond_for: int | None = None
        self._positions: Positions | None = None

    async def run(self) -> PartitionReport:
        """Compare; an error is in the report, never raised."""
        began = time.monotonic()
        why = action = ""
        failed = True
        findings: tuple[Finding, ...] = ()
        try:
            await self._walk_along()
            findings = tuple(await self._findings())
            failed = False
            # What was before the place at which it continues was not counted.
            if not self._walk.account.gave_up and self._pair.reached is None:
                self._positions = self._walk.translation.end(*self._walk.account.passed, self._walk.target.end)
        except (RecordError, CodecError) as error:
            damaged = CorruptBatchError(
                f"a batch cannot be decoded: {error}.",
                where=Where(topic=self._pair.source.topic, partition=self._pair.source.partition),
                action="Compare the replicas of both partitions (kafka-dump-log).",
            )
            why, action = str(damaged), damaged.action
        except MirrorError as error:
            why, action = str(error), error.action
        report = self._report(findings, why, action, time.monotonic() - began)
        if self._journal is not None and not failed:
            self._journal.write(Done(report, self._pair.ids))
        return report

    async def up_to_source_end(self) -> PartitionReport | None:
        """Compare up to the end of the range of the source; None if it is not equal. Errors are raised.

        Raises:
            MirrorError: a cluster does not answer.
            RecordError, CodecError: a batch cannot be read.
        """
        began = time.monotonic()
        await self._walk_along()
        account = self._walk.account
        before_source, before_target = account.before
        # The place where it begins on the target is the earliest that is possible.
        if (
            len(account.only_target) > before_target
            or len(account.only_source)
            or before_source
            or account.altered
            or account.moved
        ):
            return None
        if not account.equal and self._pair.source_start < self._pair.source_end:
            return None
        return self._report((), "", "", time.monotonic() - began)

    # ---------------------------------------------------------------- the walk

    async def _walk_along(self) -> None:
        try:
            await self._follow(self._walk.walk())
        finally:
            await asyncio.gather(*(each.close() for each in self._streams.values()))

    async def _follow(self, needs: Iterator[Need]) -> None:
        for of_source in (True, False):
            self._open(of_source=of_source)
        for need in needs:
            of_source = need in (Need.SOURCE, Need.MORE_SOURCE, Need.SEEK_SOURCE)
            if need in (Need.SOURCE, Need.TARGET):
                await self._feed(of_source=of_source)
            elif need in (Need.SEEK_SOURCE, Need.SEEK_TARGET):
                await self._streams[of_source].close()
                self._open(of_source=of_source)
            elif need is Need.MORE_TARGET:
                await self._await_target()
            else:
                await self._look_beyond()
            self._note_place()
            # Responses that arrived meanwhile must be requested again before the next long comparison.
            await asyncio.sleep(0)

    def _note_place(self) -> None:
        """Note now and then how far both logs are equal, as long as there is no fault to be remembered, too."""
        if self._journal is None or time.monotonic() < self._noted_at + _NOTE_SECONDS:
            return
        self._noted_at = time.monotonic()
        if (reached := self._walk.reached()) is not None:
            self._journal.write(Place(self._pair.source, self._pair.target, reached, self._pair.ids))

    def _open(self, *, of_source: bool) -> None:
        log, side = (self._source, self._walk.source) if of_source else (self._target, self._walk.target)
        self._streams[of_source] = log.stream(side.fed_to, side.end)

    async def _feed(self, *, of_source: bool) -> None:
        log, side = (self._source, self._walk.source) if of_source else (self._target, self._walk.target)
        before, chunk = side.fed_to, await self._streams[of_source].take(side.end)
        if chunk.log_start is not None:
            self._walk.expire(chunk.log_start, of_source=of_source)
        side.feed(chunk.spans, chunk.next_offset)
        log.bytes += chunk.size
        if of_source:
            self._on_read(chunk.next_offset - before)

    async def _await_target(self) -> None:
        """Wait until the target has more, or all that the source had at the beginning is compared."""
        walk = self._walk
        if walk.source.position >= self._pair.source_end:
            walk.target_ended = True
            return
        while True:
            end = await self._target.end()
            if end > walk.target.end:
                walk.target.end = end
                return
            if time.time() >= self._job.awaited_until:
                walk.target_ended = True
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _look_beyond(self) -> None:
        """Read what the source got since: records of the target may be copies of it.

        Once for each end of the target: later records of a busy source cannot have been copied before it.
        """
        walk = self._walk
        end = walk.source.end if self._looked_beyond_for == walk.target.end else await self._source.end()
        self._looked_beyond_for = walk.target.end
        if end > walk.source.end:
            walk.source.end = end
        else:
            walk.source_ended = True

    # ---------------------------------------------------------------- the findings

    async def _findings(self) -> list[Finding]:
        pair, account = self._pair, self._walk.account
        unpaired = Unpaired(
            account.only_source,
            account.only_target,
            Facts(
                judged_end=pair.source_end,
                source_log_start=max(pair.source_start, self._walk.source.log_start),
                target_log_start=max(pair.target_start, self._walk.target.log_start),
                source_compacted=pair.source_compacted,
                target_compacted=pair.target_compacted,
                merged=pair.merged,
            ),
            account,
        )
        self._in_order = unpaired.in_order
        question = unpaired.question()
        findings = unpaired.findings(Answer() if question.is_empty else await self._look_up(question))
        account.others += unpaired.others
        return findings

    async def _look_up(self, question: Question) -> Answer:
        """Read the logs once more for what the walk could not know."""
        answer = Answer()
        pair, source = self._pair, self._walk.source
        if question.contents or question.source_keys:
            self._passes += 1
            async for found in self._source.records(
                pair.source_start, source.end, read_committed=self._job.read_committed
            ):
                _note_contents(found, question, answer, pair.source.partition, aborted=False)
                _note_keys(found, question.source_keys, answer.source_keys)
        left = {each for each in question.contents if (each, REPLACED) not in answer.occurrences}
        if left and self._job.read_committed:
            self._passes += 1
            question.contents = left
            async for found in self._source.records(pair.source_start, source.end, read_committed=False):
                _note_contents(found, question, answer, pair.source.partition, aborted=True)
        target = self._walk.target
        if question.beyond:
            async for found in self._target.records(
                target.position, target.end, read_committed=self._job.read_committed
            ):
                self._note_beyond(found, question, answer)
        if question.target_keys:
            async for found in self._target.records(
                pair.target_start, target.end, read_committed=self._job.read_committed
            ):
                _note_keys(found, question.target_keys, answer.target_keys)
        return answer

    def _note_beyond(self, found: Columns, question: Question, answer: Answer) -> None:
        for offset, at, tail in zip(found.offsets, found.times, found.tails, strict=True):
            content = content_of(tail)
            if content in question.beyond:
                when = REPLACED if self._walk.account.replaced_times else at
                answer.beyond.setdefault((content, when), offset)

    def _report(self, findings: tuple[Finding, ...], why: str, action: str, seconds: float) -> PartitionReport:
        account = self._walk.account
        verdict = verdict_of(findings, why=why)
        if (share := _share_of(account, findings)) < _NO_COPY:
            verdict, findings = Verdict.NO_COPY, ()
            why, action = f"{share:.0%} of the records match: this is not a copy", "Name the copy with --pair."
        elif account.gave_up:
            unmatched = len(account.only_source) + len(account.only_target)
            why = why or (
                f"the comparison ended at source offset {self._walk.source.position:,}, after {unmatched:,} records "
                "that are not equal in order: there are more faults than counted"
            )
            action = action or "Compare with a larger --memory."
        return PartitionReport(
            source=self._pair.source,
            target=self._pair.target,
            verdict=verdict,
            equal=account.equal + self._in_order,
            others=account.others,
            source_range=_range(account.source, self._pair.source.partition),
            target_range=_range(account.target, self._pair.target.partition),
            findings=findings,
            why=why,
            action=action,
            passes=self._passes,
            times_compared=not account.replaced_times,
            source_bytes=self._source.bytes,
            target_bytes=self._target.bytes,
            seconds=seconds,
            positions=self._positions,
        )


def _range(bounds: Bounds, partition: int) -> Offsets | None:
    if bounds.first is None or bounds.last is None:
        return None
    return Offsets(bounds.first, bounds.last, bounds.first_time, bounds.last_time, partition)


def _note_contents(found: Columns, question: Question, answer: Answer, partition: int, *, aborted: bool) -> None:
    if not question.contents:
        return
    for offset, at, tail in zip(found.offsets, found.times, found.tails, strict=True):
        content = content_of(tail)
        if content in question.contents:
            answer.add(content, at, Occurrence(offset, aborted=aborted, partition=partition))


def _note_keys(found: Columns, wanted: set[int], last: dict[int, int]) -> None:
    if not wanted:
        return
    for offset, tail in zip(found.offsets, found.tails, strict=True):
        key = part_hash(parts(tail)[0])
        if key in wanted:
            last[key] = offset


def _share_of(account: Account, findings: Sequence[Finding]) -> float:
    """The share of the records of the shorter log that have something to do with the other one.

    A side says nothing if retention may have removed all of its records from the other one.
    """
    unknown = [each for each in findings if each.kind is Kind.UNVERIFIABLE]
    sides = (
        (len(account.only_source), sum(each.records for each in unknown if each.source)),
        (len(account.only_target), sum(each.records for each in unknown if each.target)),
    )
    shorter = min((found - unsure for found, unsure in sides if not found or found > unsure), default=0)
    if shorter < _FEWEST:
        return 1.0
    related = (
        account.equal
        + account.changed
        + sum(each.records for each in findings if each.kind in (Kind.CHANGED, Kind.REORDERED, Kind.REPEATED))
    )
    return related / (account.equal + account.changed + shorter)
