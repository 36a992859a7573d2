"""Comparing without Spark: in this process, or in some processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import as_completed

from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict, Verdict
from mirror_lib.features.verify.model import VerifyJob
from mirror_lib.features.verify.planning.by_transform_chain import split_job
from mirror_lib.features.verify.planning.chains import NEEDED_FOR_ROUTED, NEEDS_SPARK, needs_spark
from mirror_lib.features.verify.raw.task import OnBytesRead, verify_bin
from mirror_lib.features.verify.worker_processes import worker_processes

#: Bins for each process: more bins give smoother progress, but each connects anew.
BINS_PER_PROCESS = 4


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_locally(
    processes: int, on_read: OnBytesRead | None = None
) -> Callable[[VerifyJob], list[PartitionVerdict | RoutedVerdict]]:
    """Return a runner with `processes` in parallel, one of them this one. Transformed records are left unverifiable.

    Args:
        on_read: called with the bytes of the source's logs that were read.
    """

    def run(whole: VerifyJob) -> list[PartitionVerdict | RoutedVerdict]:
        job, transformed = split_job(whole)
        beyond = [
            PartitionVerdict.impossible(check.source, check.target, NEEDS_SPARK, needs_spark(each.chain))
            for each in transformed
            for bin_ in each.job.bins
            for check in bin_
        ]
        routed = [
            RoutedVerdict(
                target=check.target,
                verdict=Verdict.UNVERIFIABLE,
                sources=check.sources,
                reason=NEEDS_SPARK,
                detail=NEEDED_FOR_ROUTED,
            )
            for check in whole.routed.checks
        ]
        return [*(compare(job) if job.bins else ()), *beyond, *routed]

    def compare(job: VerifyJob) -> list[PartitionVerdict]:
        numbers = range(len(job.bins))
        if processes == 1 or len(job.bins) == 1:
            return [verdict for number in numbers for verdict in verify_bin(job, number, on_read)]
        found: list[PartitionVerdict] = []
        with worker_processes(min(processes, len(job.bins))) as pool:
            for future in as_completed([pool.submit(verify_bin, job, number) for number in numbers]):
                verdicts = future.result()
                found += verdicts
                if on_read is not None:
                    on_read(sum(verdict.source_bytes for verdict in verdicts))
        return found

    return run
