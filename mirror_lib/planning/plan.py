"""Plan a round: which offsets of which partition are copied, by which task. Pure: facts in, plan out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mirror_lib.config.first_start import EARLIEST, FirstStarts
from mirror_lib.config.gc_pause import collections_paused
from mirror_lib.planning.bin_packing import pack_bins
from mirror_lib.planning.model import (
    HiddenPartition,
    HotPartition,
    PartitionFacts,
    PartitionPlan,
    PartitionProblem,
    RunPlan,
)
from mirror_lib.planning.source_losses import find_loss, find_target_change
from mirror_lib.topology.names import FlowId

#: A bin may exceed its fair share by this factor before a warning: bins of partitions are never equal.
_TOLERANCE = 1.25
#: A smaller round lasts as long as its fixed cost, regardless of the bins.
_WORTH_TELLING_BYTES, _WORTH_TELLING_OFFSETS = 16_000_000, 1_000_000
_NAMED = 3


def find_hot_partitions(groups: Iterable[Sequence[PartitionPlan]], tasks_max: int) -> tuple[HotPartition, ...]:
    """The groups that weigh more than a task's fair share, heaviest first.

    Args:
        groups: partitions that must stay together, since they share a target partition.
        tasks_max: tasks that may run at the same time.
    """
    weights = [(sum(partition.weight for partition in group), group) for group in groups]
    # A single partition leaves all other tasks without work; with several, each has at most one task.
    tasks = min(tasks_max, max(len(weights), 2))
    if tasks < 2:
        return ()
    fair = sum(weight for weight, _ in weights) / tasks
    hot = []
    for weight, group in weights:
        in_bytes = all(partition.estimated_bytes for partition in group)
        least = _WORTH_TELLING_BYTES if in_bytes else _WORTH_TELLING_OFFSETS
        if weight >= least and weight > fair * _TOLERANCE:
            source = max(group, key=lambda partition: partition.weight).source
            hot.append(HotPartition(source, weight, max(round(fair), 1), tasks, in_bytes))
    return tuple(sorted(hot, key=lambda each: (-each.weight, each.source)))


def hot_partition_warnings(hot: Sequence[HotPartition]) -> tuple[str, ...]:
    """Warnings about hot partitions, with what helps."""
    if not hot:
        return ()
    first = hot[0]
    named = ", ".join(f"{each.source} ({_amount(each, each.weight)})" for each in hot[:_NAMED])
    more = f" and {len(hot) - _NAMED:,} more" if len(hot) > _NAMED else ""
    return (
        f"The run lasts as long as its largest partition: {first.source} has {_amount(first, first.weight)}, "
        f"{first.times_fair_share:.1f} times the {_amount(first, first.fair_share)} per task with {first.tasks} "
        f"tasks of equal size. Such partitions: {named}{more}. A partition keeps its order and has one writer, so "
        "it is not split: more tasks do not help. Options: more partitions for the topic (for new records only, and "
        "keys move to other partitions); a separate flow for the topic, so that other topics do not wait for it; "
        "larger batches at the producers (batch.size, linger.ms, compression.type); with a high round-trip time, "
        "larger batches on the target (max.message.bytes of its topic, and mirror.batch.max.bytes) and larger fetches "
        "(mirror.fetch.max.bytes).",
    )


def _amount(each: HotPartition, weight: int) -> str:
    return f"{weight / 1e6:,.1f} MB" if each.in_bytes else f"{weight:,} offsets"


_FROM_THE_START = FirstStarts()


@collections_paused()
def plan_round(
    flow: FlowId,
    facts: Iterable[PartitionFacts],
    *,
    tasks_max: int,
    first_starts: FirstStarts = _FROM_THE_START,
    problems: Sequence[PartitionProblem] = (),
) -> RunPlan:
    """Determine start and end of every partition and pack them into at most `tasks_max` bins.

    Args:
        facts: one for each partition that the flow selects.
        problems: problems found while the facts were read; they become part of the plan.
    """
    wanted: list[PartitionPlan] = []
    refused = list(problems)
    first_seen: list[PartitionPlan] = []
    unnamed: list[PartitionPlan] = []
    hidden: list[HiddenPartition] = []
    idle = stopped = 0
    for fact in facts:
        if fact.stopped:
            stopped += 1
            continue
        found = find_target_change(flow, fact) or find_loss(flow, fact)
        if found is not None:
            refused.append(PartitionProblem(fact.source, found.error, found.loss))
            continue
        start = first_offset(fact, first_starts) if fact.position is None else fact.position
        # An interrupted run may have copied everything without storing it: it is taken over with nothing to copy.
        copies = start < fact.log_end or fact.interrupted
        if fact.hidden is not None:
            whole = _plan(fact, start, end=fact.high_watermark)
            hidden.append(HiddenPartition(whole, fact.hidden, is_all=not copies))
        if copies:
            wanted.append(_plan(fact, start))
            continue
        idle += fact.hidden is None
        if fact.altered or _is_unnamed(fact):
            unnamed.append(_plan(fact, start))
        # Without a position it could not be found later what the partition has lost since it was first seen.
        if fact.position is None:
            first_seen.append(_plan(fact, fact.log_end))
    groups = _by_target(wanted)
    hot = find_hot_partitions(groups, tasks_max)
    return RunPlan(
        flow=flow,
        bins=_pack(groups, tasks_max),
        problems=tuple(sorted(refused, key=lambda problem: problem.source)),
        idle=idle,
        first_seen=tuple(sorted(first_seen, key=lambda partition: partition.source)),
        unnamed=tuple(sorted(unnamed, key=lambda partition: partition.source)),
        stopped=stopped,
        warnings=hot_partition_warnings(hot),
        hot=hot,
        hidden=tuple(sorted(hidden, key=lambda each: each.source)),
    )


def first_offset(fact: PartitionFacts, first_starts: FirstStarts) -> int:
    """Start of a partition without a position; always an offset that the log has, or its end.

    A partition that was added to a copied topic starts at its beginning, regardless of the first start: no record that
    was written to the topic since may be skipped (KIP-1327 does the same for consumers). So does a topic that was
    created after the flow's last run instead of at `latest`: all its records were written since. So does a
    partition that a run has found empty before its position was lost.
    """
    if fact.was_added or fact.was_begun:
        return fact.log_start
    start = first_starts.of(fact.source.topic)
    if start.reset is not None:
        return fact.log_start if start == EARLIEST or fact.is_new else fact.log_end
    # No record is as recent as the requested time, or it was not requested: start at the end.
    wanted = fact.first_offset if start.offset is None else start.offset
    return fact.log_end if wanted is None else min(max(wanted, fact.log_start), fact.log_end)


def _is_unnamed(fact: PartitionFacts) -> bool:
    """True if a position does not have its topic and clusters, and they are known now."""
    then, now = fact.copied_to, fact.target_now
    if then is None or now is None:
        return False
    return (
        then.topic is None
        or (then.topic_id is None and now.topic_id is not None)
        or (then.clusters is None and fact.clusters is not None)
    )


def _plan(fact: PartitionFacts, start: int, *, end: int | None = None) -> PartitionPlan:
    """A share of a run.

    Args:
        end: by default the end for the flow's consumer.
    """
    end = fact.log_end if end is None else end
    held = max(fact.high_watermark - fact.log_start, 1)
    return PartitionPlan(
        source=fact.source,
        target=fact.target,
        start=start,
        end=end,
        topic_id=fact.topic_id,
        target_max_message_bytes=fact.target_max_message_bytes,
        target_rules=fact.target_rules,
        leader_epoch=fact.position_leader_epoch if start == fact.position else None,
        last_record=fact.last_record if start == fact.position else None,
        target_record=fact.target_record if start == fact.position else None,
        target_topic_id=fact.target_now.topic_id if fact.target_now else None,
        clusters=fact.clusters,
        first_partitions=fact.first_partitions,
        log_end=fact.log_end,
        asked_at=fact.asked_at,
        # A first copy has no records on the target that could have been deleted before it.
        # A target without copied keys needs no earlier tombstone.
        caught_up_at=fact.asked_at if fact.position is None or fact.copied_to is None else fact.caught_up_at,
        copy=fact.copy,
        estimated_bytes=(fact.log_bytes or 0) * (end - start) // held,
    )


def pack(partitions: Sequence[PartitionPlan], tasks_max: int) -> tuple[tuple[PartitionPlan, ...], ...]:
    """Pack partitions into at most `tasks_max` bins of about equal bytes, see `bin_packing`.

    A partition is never split, since its order must be kept, and partitions that share a target partition (a merge)
    stay together, since a target partition has one writer.
    """
    return _pack(_by_target(partitions), tasks_max)


def _by_target(partitions: Iterable[PartitionPlan]) -> list[list[PartitionPlan]]:
    """Groups that must stay together, in an order that does not depend on the order of the partitions."""
    groups: dict[object, list[PartitionPlan]] = {}
    for partition in sorted(partitions, key=lambda each: each.source):
        groups.setdefault(partition.target, []).append(partition)
    return list(groups.values())


def _pack(groups: Sequence[Sequence[PartitionPlan]], tasks_max: int) -> tuple[tuple[PartitionPlan, ...], ...]:
    if not groups:
        return ()
    weights = [sum(partition.weight for partition in group) for group in groups]
    bins = (
        [partition for number in bin_ for partition in groups[number]]
        for bin_ in pack_bins(weights, min(max(tasks_max, 1), len(groups)))
    )
    return tuple(tuple(sorted(bin_, key=lambda partition: partition.source)) for bin_ in bins if bin_)
