"""Plan a backfill's run and estimate its duration. Pure: facts in, plan out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.config.model import FirstStart
from mirror_lib.features.backfill.model import Backfill, BackfillRange
from mirror_lib.planning.model import ASSUMED_BYTES_PER_OFFSET, PartitionFacts, PartitionPlan, RunPlan
from mirror_lib.topology.names import TopicPartition


def bound_offset(bound: FirstStart, log_start: int, log_end: int, at_time: OffsetFact | None) -> int:
    """The offset of a bound, limited to the extent of the log.

    Args:
        at_time: the source's response for a bound that is a time; negative if all records are older.
    """
    if bound.reset is not None:
        return log_start if bound.reset == "earliest" else log_end
    wanted = bound.offset if at_time is None else at_time.offset
    if wanted is None or wanted < 0:
        return log_end
    return min(max(wanted, log_start), log_end)


def clip_facts(fact: PartitionFacts, wanted: BackfillRange, *, accept_gaps: bool = False) -> PartitionFacts:
    """The facts of a partition as if its log had only the range.

    A partition that was never copied starts at the range's beginning: records that the source deletes after the
    definition are then a loss like any other.

    Args:
        accept_gaps: skip records that the source has deleted.
    """
    position = wanted.first if fact.position is None else fact.position
    following = max(wanted.following, position)
    log_start, log_end = min(fact.log_start, following), min(fact.log_end, following)
    if accept_gaps:
        position = max(position, log_start)
    log_bytes = fact.log_bytes
    if log_bytes is not None:
        log_bytes = log_bytes * (log_end - log_start) // max(fact.log_end - fact.log_start, 1)
    return replace(
        fact,
        log_start=log_start,
        log_end=log_end,
        log_bytes=log_bytes,
        position=position,
        position_topic_id=wanted.topic_id if fact.position is None else fact.position_topic_id,
    )


def within_budget(plan: RunPlan, max_bytes: int | None) -> RunPlan:
    """The plan with lower ends, so that it copies about `max_bytes`, spread evenly over all partitions."""
    if max_bytes is None:
        return plan
    if max_bytes <= 0:
        return replace(plan, bins=())
    total = sum(_bytes(partition) for partition in plan.partitions)
    if total <= max_bytes:
        return plan
    bins = tuple(tuple(_shorten(partition, max_bytes, total) for partition in bin_) for bin_ in plan.bins)
    return replace(plan, bins=bins)


def _bytes(partition: PartitionPlan) -> int:
    return partition.estimated_bytes or (partition.end - partition.start) * ASSUMED_BYTES_PER_OFFSET


def _shorten(partition: PartitionPlan, part: int, whole: int) -> PartitionPlan:
    # At least one, or a small budget would never come to an end.
    offsets = max((partition.end - partition.start) * part // whole, 1)
    return replace(partition, end=partition.start + offsets, estimated_bytes=partition.estimated_bytes * part // whole)


@dataclass(frozen=True, slots=True)
class RangeEstimate:
    """The position of one partition, and the remaining bytes."""

    wanted: BackfillRange
    #: The source offset to copy next.
    position: int
    #: Remaining bytes; None if the cluster does not report sizes.
    bytes: int | None

    @property
    def offsets(self) -> int:
        """Number of remaining offsets: an upper bound for the number of records."""
        return max(self.wanted.following - self.position, 0)


@dataclass(frozen=True, slots=True)
class BackfillEstimate:
    """The remaining work of a backfill. It can be printed before anything is written."""

    backfill: Backfill
    #: True if the ledger has it: its ranges are then fixed.
    defined: bool
    ranges: tuple[RangeEstimate, ...]
    #: Bytes per second of the flow's own runs, None if they copied nothing lately.
    measured_rate: float | None = None
    #: True if those runs were too small to measure: the rate may be much higher.
    at_least: bool = False
    bytes_per_second: int | None = None

    @property
    def offsets(self) -> int:
        """Number of remaining offsets: an upper bound for the number of records."""
        return sum(each.offsets for each in self.ranges)

    @property
    def bytes(self) -> int:
        """Remaining bytes of the source's log; a lower bound if some sizes are unknown."""
        return sum(each.bytes or 0 for each in self.ranges)

    @property
    def seconds(self) -> float | None:
        """Seconds that the copy takes at the flow's own rate or at the limit; None if neither is known."""
        rates = [rate for rate in (self.measured_rate, self.bytes_per_second) if rate]
        return self.bytes / min(rates) if rates else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "name": self.backfill.name,
            "defined": self.defined,
            "request": self.backfill.request.to_dict(),
            "offsets": self.offsets,
            "bytes": self.bytes,
            "minutes": None if self.seconds is None else round(self.seconds / 60, 1),
            "minutes_at_most": self.at_least,
            "measured_bytes_per_second": None if self.measured_rate is None else round(self.measured_rate),
            "partitions": [
                {
                    "topic": each.wanted.source.topic,
                    "partition": each.wanted.source.partition,
                    "target_topic": each.wanted.target.topic,
                    "from": each.wanted.first,
                    "to": each.wanted.following,
                    "position": each.position,
                    "offsets": each.offsets,
                    "bytes": each.bytes,
                }
                for each in self.ranges
            ],
        }


def estimate_range(
    wanted: BackfillRange,
    position: int | None,
    extent: tuple[int, int],
    sizes: Mapping[TopicPartition, int],
) -> RangeEstimate:
    """The remaining part of a range.

    Args:
        position: the source offset to copy next, None before the first run.
        extent: first offset and end of the source's log.
        sizes: bytes of whole partitions, as far as the cluster reports them.
    """
    begin = wanted.first if position is None else position
    log_start, log_end = extent
    held = max(min(wanted.following, log_end) - max(begin, log_start), 0)
    size = sizes.get(wanted.source)
    return RangeEstimate(wanted, begin, None if size is None else size * held // max(log_end - log_start, 1))
