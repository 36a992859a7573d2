"""Planning a round: which offsets of which partition are copied, by which task. Pure: facts in, plan out."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from enum import StrEnum

from mirror_lib.errors import MirrorError, OffsetOutOfRangeError, TopologyError, Where
from mirror_lib.relay.model import PartitionFacts, PartitionPlan, PartitionProblem, RunPlan
from mirror_lib.topology.names import FlowId


class FirstStart(StrEnum):
    """Where a partition without a position begins (`auto.offset.reset` of the flow's source consumer)."""

    EARLIEST = "earliest"
    LATEST = "latest"


def plan_round(
    flow: FlowId,
    facts: Iterable[PartitionFacts],
    *,
    tasks_max: int,
    first_start: FirstStart = FirstStart.EARLIEST,
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
    idle = 0
    for fact in facts:
        start, error = _start(flow, fact, first_start)
        if error is not None:
            refused.append(PartitionProblem(fact.source, error))
        elif start >= fact.log_end:
            idle += 1
            if fact.position is None and first_start is FirstStart.LATEST:
                starts_at_end.append(_plan(fact, fact.log_end))
        else:
            wanted.append(_plan(fact, start))
    return RunPlan(
        flow=flow,
        bins=pack(wanted, tasks_max),
        problems=tuple(sorted(refused, key=lambda problem: problem.source)),
        idle=idle,
        starts_at_end=tuple(sorted(starts_at_end, key=lambda partition: partition.source)),
    )


def _start(flow: FlowId, fact: PartitionFacts, first_start: FirstStart) -> tuple[int, MirrorError | None]:
    if fact.position is None:
        return (fact.log_start if first_start is FirstStart.EARLIEST else fact.log_end), None
    where = Where(flow=str(flow), topic=fact.source.topic, partition=fact.source.partition, offset=fact.position)
    if fact.position_topic_id not in (None, "", fact.topic_id):
        return 0, TopologyError(
            f"the source topic was deleted and created again: it had id {fact.position_topic_id} when it was copied "
            f"last, and has {fact.topic_id} now.",
            where=where,
            action="The position belongs to the old topic; decide whether to copy the new one, then reset it.",
        )
    if fact.position < fact.log_start:
        return 0, OffsetOutOfRangeError(
            f"records {fact.position} to {fact.log_start - 1} were deleted at the source before they were copied "
            f"(its log starts at {fact.log_start} now).",
            where=where,
            action="Raise the source topic's retention or run more often; reset the position to accept the gap.",
        )
    if fact.position > fact.log_end:
        return 0, OffsetOutOfRangeError(
            f"the source ends at {fact.log_end}, before the position: it was truncated or created again.",
            where=where,
            action="Find out what happened to the source (unclean leader election?) before you reset the position.",
        )
    return fact.position, None


def _plan(fact: PartitionFacts, start: int) -> PartitionPlan:
    held = max(fact.log_end - fact.log_start, 1)
    return PartitionPlan(
        source=fact.source,
        target=fact.target,
        start=start,
        end=fact.log_end,
        topic_id=fact.topic_id,
        target_max_message_bytes=fact.target_max_message_bytes,
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
