"""A verification, parted by what records go through. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from mirror_lib.transform.model import TransformChain
from mirror_lib.verify.chains import ROUTED
from mirror_lib.verify.model import PartitionCheck, PartitionVerdict, VerifyJob
from mirror_lib.verify.plan import pack


class ChainChecks(NamedTuple):
    """The checks of a job whose records go through the same transforms."""

    chain: TransformChain
    job: VerifyJob


def split_job(job: VerifyJob) -> tuple[VerifyJob, tuple[ChainChecks, ...]]:
    """What is compared as it is (maybe without any bin), and what is transformed again before.

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


def judged_together(verdicts: Sequence[PartitionVerdict]) -> list[PartitionVerdict]:
    """The verdicts of one chain: where it sends rows elsewhere, they may have come to any of the other partitions."""
    elsewhere = next((each for each in verdicts if each.reason == ROUTED), None)
    if elsewhere is None or elsewhere.detail is None:
        return list(verdicts)
    return [PartitionVerdict.impossible(each.source, each.target, ROUTED, elsewhere.detail) for each in verdicts]
