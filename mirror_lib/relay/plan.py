"""Planning a round: which offsets of which partition are copied, by which task. Pure: facts in, plan out."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from mirror_lib.config.first_start import EARLIEST, FirstStarts
from mirror_lib.relay.losses import find_loss
from mirror_lib.relay.model import PartitionFacts, PartitionPlan, PartitionProblem, RunPlan
from mirror_lib.topology.names import FlowId

_FROM_THE_START = FirstStarts()


def plan_round(
    flow: FlowId,
    facts: Iterable[PartitionFacts],
    *,
    tasks_max: int,
    first_starts: FirstStarts = _FROM_THE_START,
    problems: Sequence[PartitionProblem] = (),
) -> RunPlan:
    """Decide start and end of every partition and pack them into at most `tasks_max` bins.

    Args:
        facts: one for each partition that the flow selects.
        problems: what was found wrong while the facts were gathered; carried into the plan.
    """
    wanted: list[PartitionPlan] = []
    refused = list(problems)
    starts_at_end: list[PartitionPlan] = []
    idle = stopped = 0
    for fact in facts:
        if fact.stopped:
            stopped += 1
            continue
        found = find_loss(flow, fact)
        if found is not None:
            refused.append(PartitionProblem(fact.source, found.error, found.loss))
            continue
        start = first_offset(fact, first_starts) if fact.position is None else fact.position
        # An interrupted run may have copied everything, and not have told: it is taken over with nothing to copy.
        if start < fact.log_end or fact.interrupted:
            wanted.append(_plan(fact, start))
            continue
        idle += 1
        # Without a position the next run would begin at the end of its own time, or at an offset that exists by then.
        if fact.position is None and first_starts.of(fact.source.topic) != EARLIEST:
            starts_at_end.append(_plan(fact, fact.log_end))
    return RunPlan(
        flow=flow,
        bins=pack(wanted, tasks_max),
        problems=tuple(sorted(refused, key=lambda problem: problem.source)),
        idle=idle,
        starts_at_end=tuple(sorted(starts_at_end, key=lambda partition: partition.source)),
        stopped=stopped,
    )


def first_offset(fact: PartitionFacts, first_starts: FirstStarts) -> int:
    """Where a partition without a position begins; always an offset that the log has, or its end."""
    start = first_starts.of(fact.source.topic)
    if start.reset is not None:
        return fact.log_start if start == EARLIEST else fact.log_end
    # No record is as young as the time asked for, or nobody asked: that leaves the end.
    wanted = fact.first_offset if start.offset is None else start.offset
    return fact.log_end if wanted is None else min(max(wanted, fact.log_start), fact.log_end)


def _plan(fact: PartitionFacts, start: int) -> PartitionPlan:
    held = max(fact.log_end - fact.log_start, 1)
    return PartitionPlan(
        source=fact.source,
        target=fact.target,
        start=start,
        end=fact.log_end,
        topic_id=fact.topic_id,
        target_max_message_bytes=fact.target_max_message_bytes,
        target_rules=fact.target_rules,
        leader_epoch=fact.position_leader_epoch if start == fact.position else None,
        estimated_bytes=(fact.log_bytes or 0) * (fact.log_end - start) // held,
    )


def pack(partitions: Sequence[PartitionPlan], tasks_max: int) -> tuple[tuple[PartitionPlan, ...], ...]:
    """Deal partitions into at most `tasks_max` bins of about equal bytes: largest first, each to the lightest bin.

    A partition is never split, since its order must be kept, and partitions that share a target partition (a merge)
    stay together, since a target partition has one writer.
    """
    groups: dict[object, list[PartitionPlan]] = {}
    for partition in partitions:
        groups.setdefault(partition.target, []).append(partition)
    largest_first = sorted(
        groups.values(), key=lambda group: (-sum(partition.weight for partition in group), group[0].source)
    )
    bins: list[list[PartitionPlan]] = [[] for _ in range(min(max(tasks_max, 1), len(groups)))]
    lightest = [(0, number) for number in range(len(bins))]
    for group in largest_first:
        weight, number = heapq.heappop(lightest)
        bins[number] += group
        heapq.heappush(lightest, (weight + sum(partition.weight for partition in group), number))
    return tuple(tuple(sorted(bin_, key=lambda partition: partition.source)) for bin_ in bins if bin_)
