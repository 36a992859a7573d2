"""Audit some ranges of a partition: find the place of each on the target by its timestamps, and compare from there."""

from __future__ import annotations

import time
from dataclasses import replace

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.findings import Offsets
from mirror_lib.features.audit.log import Log
from mirror_lib.features.audit.model import AuditJob, PartitionPair, PartitionReport, Verdict
from mirror_lib.features.audit.partition import PartitionAudit
from mirror_lib.features.audit.sampling import Sample
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError

#: Records at the beginning of a range of which the oldest are not where comparing begins, and the number of those: one
#: with the timestamp 0 would be searched for from the beginning of the log on.
_FIRST, _OLDEST = 100, 5


async def audit_sample(
    job: AuditJob, sample: Sample, pair: PartitionPair, source: RawClient, target: RawClient
) -> PartitionReport | None:
    """Compare the chosen ranges; None if one is not equal, or its place is not found: then all is to be compared."""
    began, found = time.monotonic(), []
    ranges = sample.ranges(pair.source, pair.source_start, pair.source_end)
    if len(ranges) < 2:
        return None
    try:
        for first, end in ranges:
            part = await _placed(job, replace(pair, source_start=first, source_end=end), source, target)
            report = None if part is None else await PartitionAudit(job, part, source, target).up_to_source_end()
            if report is None:
                return None
            found.append(report)
    except (MirrorError, RecordError, CodecError):
        # The comparison of all says it.
        return None
    return PartitionReport(
        pair.source,
        pair.target,
        Verdict.EQUAL,
        equal=sum(each.equal for each in found),
        others=sum(each.others for each in found),
        source_range=_whole([each.source_range for each in found]),
        target_range=_whole([each.target_range for each in found]),
        sampled=tuple(each.source_range for each in found if each.source_range is not None),
        times_compared=all(each.times_compared for each in found),
        source_bytes=sum(each.source_bytes for each in found),
        target_bytes=sum(each.target_bytes for each in found),
        seconds=time.monotonic() - began,
    )


async def _placed(job: AuditJob, pair: PartitionPair, source: RawClient, target: RawClient) -> PartitionPair | None:
    """The range from one of its first records on, and the first place on the target with that record's time.

    No earlier record of the target can be its copy. None if there is no such place.
    """
    here = Log.of(job, pair.source, source, of_source=True)
    records: list[tuple[int, int]] = []
    async for found in here.records(pair.source_start, pair.source_end, read_committed=job.read_committed):
        records += zip(found.offsets, found.times, strict=True)
        if len(records) >= _FIRST:
            break
    if not records:
        # Only markers and aborted records.
        return replace(pair, source_start=pair.source_end)
    records = records[:_FIRST]
    least = sorted(when for _, when in records)[min(_OLDEST, len(records) // 2)]
    first, when = next(each for each in records if each[1] >= least)
    there = await Log.of(job, pair.target, target, of_source=False).offset_at(when) if when >= 0 else None
    return None if there is None else replace(pair, source_start=first, target_start=max(there, pair.target_start))


def _whole(ranges: list[Offsets | None]) -> Offsets | None:
    known = [each for each in ranges if each is not None]
    if not known:
        return None
    first, last = known[0], known[-1]
    return replace(first, last=last.last, last_time=last.last_time)
