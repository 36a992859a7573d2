"""Audit a topic whose copy has other partitions: read both sides as often as memory asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.by_key import BUCKET_BYTES, MOST_RECORDS, Chosen, Digests, compare_chosen, differing
from mirror_lib.features.audit.findings import Facts, Finding, Kind
from mirror_lib.features.audit.journal import Done, Journal
from mirror_lib.features.audit.log import Log
from mirror_lib.features.audit.model import AuditJob, KeyedTopic, PartitionReport, verdict_of
from mirror_lib.features.audit.partition import OnRead
from mirror_lib.features.verify.compare.record_columns import Columns
from mirror_lib.planning.model import WHOLE_TOPIC
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.topology.names import TopicPartition

_POLL_SECONDS = 0.5
#: Records for each bucket from which on several shares are read one after the other: two keys in one would differ.
_LOAD = 2
#: At most this share of the memory holds digests; the rest is for what is read.
_FOR_DIGESTS = 0.25


#: Takes records of a partition.
_Take = Callable[[int, Columns], None]


class TopicAudit:
    """The audit of one topic by its keys."""

    def __init__(self, job: AuditJob, topic: KeyedTopic, source: RawClient, target: RawClient, on_read: OnRead) -> None:
        self._job, self._topic, self._on_read = job, topic, on_read
        self._source = [
            Log.of(job, TopicPartition(topic.source, each), source, of_source=True)
            for each in range(len(topic.source_logs))
        ]
        self._target = [
            Log.of(job, TopicPartition(topic.target, each), target, of_source=False)
            for each in range(len(topic.target_logs))
        ]
        self._passes = 0
        self._buckets = max(int(job.memory_bytes * _FOR_DIGESTS) // BUCKET_BYTES, 1)
        self._shares = -(-topic.offsets // (self._buckets * _LOAD)) or 1

    async def run(self) -> PartitionReport:
        """Compare; an error is in the report, never raised."""
        began = time.monotonic()
        equal, why, action = 0, "", ""
        findings: Sequence[Finding] = ()
        try:
            equal, findings, why = await self._compare_until_complete()
        except (RecordError, CodecError) as error:
            why, action = f"a batch cannot be decoded: {error}.", "Compare the replicas (kafka-dump-log)."
        except MirrorError as error:
            why, action = str(error), error.action
        report = PartitionReport(
            source=TopicPartition(self._topic.source, WHOLE_TOPIC),
            target=TopicPartition(self._topic.target, WHOLE_TOPIC),
            verdict=verdict_of(tuple(findings), why=why),
            equal=equal,
            findings=tuple(findings),
            why=why,
            action=action,
            passes=self._passes,
            by_key=True,
            times_compared=self._topic.times,
            source_bytes=sum(each.bytes for each in self._source),
            target_bytes=sum(each.bytes for each in self._target),
            seconds=time.monotonic() - began,
        )
        if self._job.journal is not None and not action:
            Journal(self._job.journal).write(Done(report, self._topic.ids))
        return report

    async def _compare_until_complete(self) -> tuple[int, Sequence[Finding], str]:
        """Compare again while records lack that may still come."""
        ends = await asyncio.gather(*(each.end() for each in self._target))
        while True:
            beyond = await asyncio.gather(*(each.end() for each in self._source))
            equal, findings, why = await self._compare(beyond, ends)
            if all(each.kind is not Kind.MISSING for each in findings):
                return equal, findings, why
            while True:
                grown = await asyncio.gather(*(each.end() for each in self._target))
                if grown != ends:
                    ends = grown
                    break
                if time.time() >= self._job.awaited_until:
                    return equal, findings, why
                await asyncio.sleep(_POLL_SECONDS)

    async def _compare(
        self, source_ends: Sequence[int], target_ends: Sequence[int]
    ) -> tuple[int, Sequence[Finding], str]:
        ends, topic = (source_ends, target_ends), self._topic
        buckets, records = set[int](), 0
        for number in range(self._shares):
            share = number, self._shares
            mine, theirs = (Digests(self._buckets, share=share, times=topic.times) for _ in ends)
            await self._read(ends, mine.add, theirs.add)
            buckets |= differing(mine, theirs, share=share)
            records += mine.records
        if not buckets:
            return records, (), ""
        here, there = (Chosen(buckets, self._buckets * self._shares, topic.times) for _ in ends)
        await self._read(ends, here.add, there.add)
        if here.is_cut or there.is_cut:
            return 0, (), f"more than {MOST_RECORDS:,} records are of keys that differ: this may be another topic"
        facts = Facts(
            {number: end for number, (_, end) in enumerate(topic.source_logs)},
            source_compacted=topic.source_compacted,
            target_compacted=topic.target_compacted,
            source_edge=_edge(topic.source_logs, mine),
            target_edge=_edge(topic.target_logs, theirs),
        )
        in_order, findings = compare_chosen(here, there, facts)
        return records - len(here.records) + in_order, findings, ""

    async def _read(self, ends: tuple[Sequence[int], Sequence[int]], *into: _Take) -> None:
        """Read both topics partition by partition."""
        topic = self._topic
        for logs, starts, side_ends, take in zip(
            (self._source, self._target), (topic.source_logs, topic.target_logs), ends, into, strict=True
        ):
            for log, (start, _), end in zip(logs, starts, side_ends, strict=True):
                async for found in log.records(start, end, read_committed=self._job.read_committed):
                    take(log.partition.partition, found)
                if logs is self._source:
                    self._on_read((end - start) // (self._shares + 1))
        self._passes += 1


def _edge(logs: Sequence[tuple[int, int]], digests: Digests) -> int | None:
    """The latest time at which a partition begins whose first records were removed; None without one."""
    times = [
        digests.first_times[partition]
        for partition, (start, _) in enumerate(logs)
        if start > 0 and partition in digests.first_times
    ]
    return max(times, default=None)
