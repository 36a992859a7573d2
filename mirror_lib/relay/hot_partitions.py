"""Partitions that hold so much of a plan that the run lasts as long as they do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mirror_lib.relay.model import HotPartition, PartitionPlan

#: A bin may be so much heavier than its fair share before anybody is told: that is how bins of partitions come out.
_TOLERANCE = 1.25
#: A round that copies less lasts as long as its fixed part, however it is dealt.
_WORTH_TELLING_BYTES, _WORTH_TELLING_OFFSETS = 16_000_000, 1_000_000
_NAMED = 3


def find_hot_partitions(groups: Iterable[Sequence[PartitionPlan]], tasks_max: int) -> tuple[HotPartition, ...]:
    """The groups that weigh more than a task's fair share, heaviest first.

    Args:
        groups: partitions that must stay together, since they share a target partition.
        tasks_max: tasks that may run at the same time.
    """
    weights = [(sum(partition.weight for partition in group), group) for group in groups]
    # A single partition leaves all other tasks without work; of several, each has a task of its own at the most.
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
    """What is to be said about hot partitions, and what helps."""
    if not hot:
        return ()
    first = hot[0]
    named = ", ".join(f"{each.source} ({_amount(each, each.weight)})" for each in hot[:_NAMED])
    more = f" and {len(hot) - _NAMED:,} more" if len(hot) > _NAMED else ""
    return (
        f"The run lasts as long as its largest partition: {first.source} has {_amount(first, first.weight)}, "
        f"{first.times_fair_share:.1f} times the {_amount(first, first.fair_share)} that each of {first.tasks} tasks "
        f"would have if all could be shared out evenly. Such partitions: {named}{more}. A partition keeps its order "
        "and has one writer, so it is not split: more tasks do not help. What helps: more partitions for the topic "
        "(they take new records; what stands in the log stays, and keys move); a flow of its own for the topic, so "
        "that other topics do not wait for it; larger batches at the producers (batch.size, linger.ms, "
        "compression.type); over a long distance, larger batches on the target (its topic's max.message.bytes, "
        "and mirror.batch.max.bytes) and larger fetches (mirror.fetch.max.bytes).",
    )


def _amount(each: HotPartition, weight: int) -> str:
    return f"{weight / 1e6:,.1f} MB" if each.in_bytes else f"{weight:,} offsets"
