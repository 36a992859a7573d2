"""Find all keys whose deletion was lost, with their offsets on the target."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import MirrorError
from mirror_lib.features.verify.compare.tally import Spent
from mirror_lib.features.verify.findings import PartitionVerdict
from mirror_lib.features.verify.model import PartitionCheck, VerifyJob, VerifyMode
from mirror_lib.features.verify.run import VerifyOptions, job_of, plan_flow_verification
from mirror_lib.features.verify.state.compare import Offsets
from mirror_lib.features.verify.state.run import OnBytesRead, StateComparison
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class LostDeletions:
    """The findings of one partition."""

    source: TopicPartition
    target: TopicPartition
    #: Target offsets of the newest records of keys that the source has deleted, ascending.
    offsets: Offsets
    #: Up to where the source was read: it has none of these keys before that offset.
    source_read_to: int
    #: Differences of other kinds.
    others: int = 0


def find_lost_deletions(
    flow: FlowConfig, ledger: Ledger, topics: tuple[str, ...], partitions: Collection[int], on_read: OnBytesRead
) -> tuple[list[LostDeletions], list[PartitionVerdict]]:
    """Compare partitions by state; return the findings, and the partitions that cannot be compared.

    Args:
        topics: Java regexes.
        partitions: only these; empty for all.
        on_read: called with the bytes of the source's log that were read since the last call.

    Raises:
        MirrorError: a cluster cannot be reached, or the ledger cannot be used.
    """
    plan = plan_flow_verification(flow, ledger, VerifyOptions(topics=topics, mode=VerifyMode.STATE, tasks_max=1))
    job = job_of(flow, plan)
    checks = [check for check in plan.partitions if not partitions or check.source.partition in partitions]
    impossible = [each for each in plan.unverifiable if not partitions or each.source.partition in partitions]
    found: list[LostDeletions] = []
    for each in asyncio.run(_find(replace(job, keep_differences=0), checks, on_read)):
        if isinstance(each, LostDeletions):
            found.append(each)
        else:
            impossible.append(each)
    return found, impossible


async def _find(
    job: VerifyJob, checks: Collection[PartitionCheck], on_read: OnBytesRead
) -> list[LostDeletions | PartitionVerdict]:
    async with open_clients(job.source, job.target) as (source, target):
        return [await _of_partition(job, check, source, target, on_read) for check in checks]


async def _of_partition(
    job: VerifyJob, check: PartitionCheck, source: RawClient, target: RawClient, on_read: OnBytesRead
) -> LostDeletions | PartitionVerdict:
    comparison = StateComparison(job, check, source, target, Spent(job), on_read, keep_lost=True)
    try:
        await comparison.run()
    except MirrorError as error:
        return PartitionVerdict.for_error(check.source, check.target, error)
    found = comparison.findings
    return LostDeletions(
        source=check.source,
        target=check.target,
        offsets=np.sort(np.concatenate(found.lost)) if found.lost else np.empty(0, np.int64),
        source_read_to=comparison.source_read_to,
        others=found.difference_count - found.deletions_lost,
    )
