"""One audit: fix what is compared, compare all partitions in some processes, and put the report together."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace
from multiprocessing.sharedctypes import Synchronized

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.groups import read_groups
from mirror_lib.features.audit.journal import Earlier, Journal, Scope
from mirror_lib.features.audit.log import CHUNK_BYTES
from mirror_lib.features.audit.model import (
    AuditJob,
    AuditReport,
    GroupReport,
    KeyedTopic,
    PartitionPair,
    PartitionReport,
    Verdict,
)
from mirror_lib.features.audit.pairs import TopicPair
from mirror_lib.features.audit.partition import OnRead, PartitionAudit
from mirror_lib.features.audit.plan import AuditOptions, impossible, plan_audit
from mirror_lib.features.audit.sampled_partition import audit_sample
from mirror_lib.features.audit.topic_by_key import TopicAudit
from mirror_lib.features.verify.worker_processes import CONTEXT, worker_processes
from mirror_lib.planning.model import WHOLE_TOPIC
from mirror_lib.topology.names import TopicPartition

#: Memory of one partition during its comparison: chunks of both sides, decoded records, records of a search.
_PARTITION_BYTES = 20 * CHUNK_BYTES
#: More records than a topic has.
_ALL = 1 << 62
#: Groups of partitions for each process: more make the progress smoother, but each connects anew.
_PER_PROCESS = 4
#: How often progress is shown.
_PROGRESS_SECONDS = 0.5


def audit(
    source: Connection,
    target: Connection,
    options: AuditOptions,
    *,
    on_plan: Callable[[AuditJob], None] | None = None,
    on_read: OnRead | None = None,
) -> AuditReport:
    """Audit the copies of topics. Nothing is written to either cluster.

    Args:
        on_plan: called before anything is read.
        on_read: called with the number of source offsets that were read since the last call.

    Raises:
        MirrorError: a cluster cannot be reached at the start.
    """
    began = time.monotonic()
    if options.resume is not None and options.since is not None:
        # An interval until now has begun later by now.
        options = replace(options, since=Journal(options.resume).since or options.since)
    job, report = plan_audit(source, target, options)
    # Among records of others the number of records before an offset says nothing, and a sample does not count them.
    judged = [] if options.sample is not None else [each for each in job.pairs if not each.merged]
    groups = read_groups(source, target, judged)
    job = replace(job, pairs=groups.with_marks(job.pairs))
    on_read = on_read or (lambda _: None)
    earlier = Earlier() if options.resume is None else Journal(options.resume).begin(_scope(job, options))
    left, found = _left(job, earlier)
    if on_plan is not None:
        on_plan(left)
    found += compare(left, options.processes, on_read)
    if moved := _in_other_partitions(job, found):
        left, by_key = _left(replace(job, pairs=(), topics=moved), earlier)
        by_key += compare(left, options.processes, on_read)
        found = _the_better(found, by_key)
    if options.resume is not None:
        options.resume.unlink(missing_ok=True)
    partitions = tuple(sorted((*report.partitions, *found), key=lambda each: (each.source, each.target)))
    return replace(
        report,
        partitions=partitions,
        groups=tuple(
            each for each in groups.reports(partitions) if options.since is None or _is_compared(each, job.pairs)
        ),
        group_errors=groups.errors,
        seconds=time.monotonic() - began,
    )


def _scope(job: AuditJob, options: AuditOptions) -> Scope:
    headers, times, same = options.ignored_headers, options.ignore_times, options.same_offsets
    return Scope(*job.clusters, options.since, options.read_committed, headers, options.merged, times, same)


def _left(job: AuditJob, earlier: Earlier) -> tuple[AuditJob, list[PartitionReport]]:
    """The job without what an earlier audit has done, and the reports of that."""
    pairs, topics, done = [], [], []
    for pair in job.pairs:
        if (report := earlier.report(pair.source, pair.target, pair.ids)) is not None:
            done.append(report)
            continue
        reached = earlier.place(pair.source, pair.target, pair.ids)
        # Shorter logs were truncated since.
        if reached and reached.source_next <= pair.source_end and reached.target_next <= pair.target_end:
            pair = replace(pair, reached=reached)
        pairs.append(pair)
    for topic in job.topics:
        here, there = (TopicPartition(each, WHOLE_TOPIC) for each in (topic.source, topic.target))
        if (report := earlier.report(here, there, topic.ids)) is not None:
            done.append(report)
        else:
            topics.append(topic)
    return replace(job, pairs=tuple(pairs), topics=tuple(topics)), done


def _is_compared(group: GroupReport, pairs: Sequence[PartitionPair]) -> bool:
    """Return True if none of a group's offsets is before the records that were compared."""
    (pair,) = (each for each in pairs if (each.source, each.target) == (group.source, group.target))
    there = [each.offset for each in (group.checkpoint, group.commit) if each is not None]
    return group.committed >= pair.source_start and min(there, default=pair.target_start) >= pair.target_start


def _in_other_partitions(job: AuditJob, reports: Sequence[PartitionReport]) -> tuple[KeyedTopic, ...]:
    """Topics with as many partitions as their copies, whose records seem to be in others of them.

    MirrorMaker 1, and every program that lets its producer choose, writes records without a key to any partition.
    """
    counts: dict[TopicPair, list[int]] = defaultdict(lambda: [0, 0])
    untimed = {TopicPair(each.source.topic, each.target.topic) for each in reports if not each.times_compared}
    for each in reports:
        count = counts[TopicPair(each.source.topic, each.target.topic)]
        count[0] += each.paired
        count[1] += sum(each.counts.values()) if each.verdict is not Verdict.NO_COPY else _ALL
    pairs: dict[TopicPair, list[PartitionPair]] = defaultdict(list)
    for pair in job.pairs:
        pairs[TopicPair(pair.source.topic, pair.target.topic)].append(pair)
    return tuple(
        KeyedTopic(
            *names,
            tuple((each.source_start, each.source_end) for each in found),
            tuple((each.target_start, each.target_end) for each in found),
            found[0].source_compacted,
            found[0].target_compacted,
            ids=found[0].ids,
            times=names not in untimed,
        )
        for names, found in pairs.items()
        if len(found) > 1 and counts[names][0] < counts[names][1] and not found[0].merged and not job.same_offsets
    )


def _the_better(found: Sequence[PartitionReport], by_key: Sequence[PartitionReport]) -> list[PartitionReport]:
    """The reports, with those by key of topics that most records match so."""
    matched = {
        TopicPair(each.source.topic, each.target.topic): each
        for each in by_key
        if each.equal > sum(each.counts.values()) and not each.why
    }
    kept = [each for each in found if TopicPair(each.source.topic, each.target.topic) not in matched]
    return [*kept, *matched.values()]


def compare(job: AuditJob, processes: int, on_read: OnRead) -> Iterator[PartitionReport]:
    """Compare all partitions of a job, as they are done."""
    jobs = _parts(job, processes)
    if processes == 1 or len(jobs) <= 1:
        for each in jobs:
            yield from compare_here(each, on_read)
        return
    read = CONTEXT.Value("q", 0)
    reported = 0
    with worker_processes(min(processes, len(jobs)), _share, read) as pool:
        waiting = {pool.submit(_compare_and_count, each) for each in jobs}
        while waiting:
            done, waiting = wait(waiting, timeout=_PROGRESS_SECONDS, return_when=FIRST_COMPLETED)
            so_far = read.value
            on_read(so_far - reported)
            reported = so_far
            for future in done:
                yield from future.result()


#: Number of source offsets that all processes have read; None in the process that started them.
_read: Synchronized[int] | None = None


def _share(read: Synchronized[int]) -> None:
    global _read
    _read = read


def _compare_and_count(job: AuditJob) -> list[PartitionReport]:
    return compare_here(job, _count)


def _count(offsets: int) -> None:
    assert _read is not None
    with _read.get_lock():
        _read.value += offsets


def compare_here(job: AuditJob, on_read: OnRead | None = None) -> list[PartitionReport]:
    """Compare the partitions of a job in this process; errors are in the reports."""
    return asyncio.run(_compare(job, on_read or (lambda _: None)))


async def _compare(job: AuditJob, on_read: OnRead) -> list[PartitionReport]:
    at_a_time = asyncio.Semaphore(max(job.memory_bytes // _PARTITION_BYTES, 1))
    try:
        async with open_clients(job.source, job.target) as (source, target):

            async def one(pair: PartitionPair) -> PartitionReport:
                async with at_a_time:
                    if job.sample is not None:
                        report = await audit_sample(job, job.sample, pair, source, target)
                        if report is not None:
                            on_read(pair.source_end - pair.first[0])
                            return report
                    return await PartitionAudit(replace(job, sample=None), pair, source, target, on_read).run()

            reports = list(await asyncio.gather(*(one(pair) for pair in job.pairs)))
            # One after the other: each takes all of the memory.
            by_key = [await TopicAudit(job, topic, source, target, on_read).run() for topic in job.topics]
            return [*reports, *by_key]
    except MirrorError as error:
        return [
            *(
                PartitionReport(each.source, each.target, Verdict.UNVERIFIABLE, why=str(error), action=error.action)
                for each in job.pairs
            ),
            *(impossible(TopicPair(each.source, each.target), str(error), error.action) for each in job.topics),
        ]


def _parts(job: AuditJob, processes: int) -> list[AuditJob]:
    """Divide a job evenly, by the number of offsets; a topic that is compared by its keys is a part of its own."""
    job = replace(job, memory_bytes=job.memory_bytes // processes)
    count = min(processes * _PER_PROCESS if processes > 1 else 1, len(job.pairs))
    bins: list[list[PartitionPair]] = [[] for _ in range(count)]
    weights = [0] * count
    for pair in sorted(job.pairs, key=lambda each: each.source_start - each.source_end):
        lightest = weights.index(min(weights))
        bins[lightest].append(pair)
        weights[lightest] += pair.source_end - pair.source_start + 1
    return [
        *(replace(job, pairs=tuple(each), topics=()) for each in bins),
        *(replace(job, pairs=(), topics=(each,)) for each in job.topics),
    ]
