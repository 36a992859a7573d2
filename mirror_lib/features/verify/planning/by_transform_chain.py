"""A verification, divided by transform chain. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from mirror_lib.features.transforms.model import TransformChain
from mirror_lib.features.verify.model import UNEXPECTED, CheckRange, PartitionCheck, VerifyJob
from mirror_lib.features.verify.planning.plan import pack
from mirror_lib.offsets.runs import encode
from mirror_lib.topology.names import TopicPartition


class ChainChecks(NamedTuple):
    """The checks of a job whose records go through the same transforms."""

    chain: TransformChain
    job: VerifyJob


def split_job(job: VerifyJob) -> tuple[VerifyJob, tuple[ChainChecks, ...]]:
    """Return the part that is compared as it is (possibly without bins), and the parts that are transformed again
    first.

    A budget of bytes is shared by the weight of the partitions.
    """
    raw: list[PartitionCheck] = []
    by_chain: dict[TransformChain, list[PartitionCheck]] = {}
    for check in (check for bin_ in job.bins for check in bin_):
        (by_chain.setdefault(check.chain, []) if check.chain else raw).append(check)
    if not by_chain:
        return job, ()
    return _part(job, raw), tuple(ChainChecks(chain, _part(job, checks)) for chain, checks in by_chain.items())


def _part(job: VerifyJob, checks: Sequence[PartitionCheck]) -> VerifyJob:
    bins = pack(checks, len(job.bins))
    if job.bin_max_bytes is None or not bins:
        return replace(job, bins=bins)
    whole = sum(check.weight for bin_ in job.bins for check in bin_) or 1
    share = job.bin_max_bytes * len(job.bins) * sum(check.weight for check in checks) // whole
    return replace(job, bins=bins, bin_max_bytes=-(-share // len(bins)))


def for_second_read(job: VerifyJob, wanted: Collection[tuple[TopicPartition, int]]) -> VerifyJob:
    """Return the job that makes again only rows that may go to some spans of target partitions."""
    ranges: dict[TopicPartition, list[CheckRange]] = {}
    checks = {check.source: check for bin_ in job.bins for check in bin_}
    for routed in job.routed.checks:
        for span in routed.spans:
            if (routed.target, span.number) in wanted:
                for source, first, end in span.shares:
                    ranges.setdefault(source, []).append(_only(first, end))
    if any(number == UNEXPECTED for _, number in wanted):
        for source, check in checks.items():
            ranges.setdefault(source, []).extend(_only(each.source_first, each.source_next) for each in check.ranges)
    kept = [
        replace(
            check, ranges=tuple(sorted(set(ranges[source]), key=lambda each: (each.source_first, each.source_next)))
        )
        for source, check in checks.items()
        if source in ranges
    ]
    return replace(job, bins=pack(kept, len(job.bins)), bin_max_bytes=None)


def _only(first: int, end: int) -> CheckRange:
    return CheckRange(first, end, 0, 0, records=0, encoded_runs=encode(()), routed_only=True)
