"""A job, split by the transforms of its records. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from mirror_lib.config.data_plane import NO_CHAIN, TopicChain
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.feature import Hook
from mirror_lib.installed_features import provided
from mirror_lib.planning.bin_packing import pack_bins
from mirror_lib.planning.model import CopyJob, OpenPartition, PartitionResult, RunPlan


class ChainJob(NamedTuple):
    """The partitions of a job whose records have the same transforms."""

    chain: TopicChain
    job: CopyJob


def row_copy(flow: str) -> Callable[[Any, ChainJob], list[PartitionResult]]:
    """Return the function that copies partitions as rows of Spark, given the session.

    Raises:
        ConfigurationError: the feature that has it is not installed.
    """
    return _of_transforms(Hook.ROW_COPY, flow)


def route_record(flow: str) -> Callable[..., None]:
    """Return the function that stores where a round has sent records (`Hook.ROUTES`).

    Raises:
        ConfigurationError: the feature that has it is not installed.
    """
    return _of_transforms(Hook.ROUTES, flow)


def _of_transforms(hook: Hook, flow: str) -> Callable[..., Any]:
    try:
        return provided(hook, by="transforms")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"a copy in transactions, or with transforms, {error.what}", where=Where(flow=flow), action=error.action
        ) from error


def split_job(job: CopyJob) -> tuple[CopyJob, tuple[ChainJob, ...]]:
    """The part that is copied unchanged (maybe without any bin), and the parts with transforms.

    Partitions written in transactions take the path of transforms, even if they have none.

    Partitions that share a target partition stay in one bin, and in the order of the job.
    """
    raw: list[OpenPartition] = []
    by_chain: dict[TopicChain, list[OpenPartition]] = {}
    for opened in (opened for bin_ in job.bins for opened in bin_):
        chain = job.chains.get(opened.plan.source.topic, NO_CHAIN)
        rows = bool(chain) or opened.transactions is not None
        (by_chain.setdefault(chain, []) if rows else raw).append(opened)
    if not by_chain:
        return job, ()
    tasks = len(job.bins)
    return (
        replace(job, bins=_dealt(raw, tasks), chains={}),
        tuple(ChainJob(chain, replace(job, bins=_dealt(opened, tasks, chain))) for chain, opened in by_chain.items()),
    )


def _dealt(
    partitions: Sequence[OpenPartition], tasks: int, chain: TopicChain | None = None
) -> tuple[tuple[OpenPartition, ...], ...]:
    together: dict[object, list[OpenPartition]] = {}
    for opened in partitions:
        together.setdefault(_writers_of(opened, chain), []).append(opened)
    groups = list(together.values())
    if not groups:
        return ()
    weights = [sum(opened.plan.weight for opened in group) for group in groups]
    bins = pack_bins(weights, min(tasks, len(groups)))
    return tuple(tuple(opened for number in sorted(bin_) for opened in groups[number]) for bin_ in bins if bin_)


def _writers_of(opened: OpenPartition, chain: TopicChain | None) -> object:
    """The key of partitions that must be in one bin: a target partition has one writer."""
    if chain is None or not chain.may_route:
        return opened.plan.target
    # Topics may meet in routed targets; a record keeps its partition number unless the chain sets one.
    return None if chain.sets_partition else opened.plan.target.partition


def whole_takeovers(
    bins: Sequence[Sequence[OpenPartition]], plan: RunPlan, chains: Mapping[str, TopicChain]
) -> tuple[tuple[OpenPartition, ...], ...]:
    """The bins; transformed partitions with a take-over get the end that they had in the whole plan.

    A round under a rate limit copies a part of the plan. The rows of an interrupted run may come from more than that
    part, and only transforming the records again identifies them.
    """
    ends = {partition.source: partition.end for partition in plan.partitions}

    def whole(opened: OpenPartition) -> OpenPartition:
        source = opened.plan.source
        if opened.takeover is None or opened.takeover.in_transactions or source.topic not in chains:
            return opened
        return replace(opened, plan=replace(opened.plan, end=ends[source]))

    return tuple(tuple(whole(opened) for opened in bin_) for bin_ in bins)
