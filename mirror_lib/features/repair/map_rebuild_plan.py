"""Plan the rebuild of offset maps: which logs are read, how far, and whether their ends correspond.

It reads no record. `map_rebuild` executes the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import SourceTruncatedError, TargetTruncatedError, TopologyError, Where
from mirror_lib.ledger.directions import MapPart, with_ends
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """One partition's logs: source [source_start, source_end), target [target_start, target_end)."""

    source: TopicPartition
    target: TopicPartition
    source_start: int
    source_end: int
    target_start: int
    target_end: int
    #: Whether the ends correspond for certain, by a position of this program.
    certain_end: bool
    #: Whether the opposite flow has copied it: then `source` and `target` are those of that flow.
    by_opposite: bool = False

    @property
    def offsets(self) -> int:
        """Number of offsets to read."""
        return 2 * (self.source_end - self.source_start + self.target_end - self.target_start)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "source_start": self.source_start,
            "source_end": self.source_end,
            "target_start": self.target_start,
            "target_end": self.target_end,
            "certain_end": self.certain_end,
        }


def by_direction(plan: RebuildPlan, parts: Sequence[MapPart]) -> list[RebuildPlan]:
    """The plan in pieces, each from the view of the flow that has copied it.

    Args:
        parts: parts of the ledger's map; without any, the flow has copied all.
    """
    pieces: list[RebuildPlan] = []
    first = (plan.source_start, plan.target_start)
    for part, behind in with_ends(parts):
        end = (plan.source_end, plan.target_end)
        if behind is not None:
            end = (
                min(max(behind.source_first, first[0]), plan.source_end),
                min(max(behind.target_first, first[1]), plan.target_end),
            )
        if end != first or behind is None:
            piece = replace(
                plan,
                source_start=first[0],
                source_end=end[0],
                target_start=first[1],
                target_end=end[1],
                certain_end=plan.certain_end or behind is not None,
            )
            pieces.append(_inverse(piece) if part.by_opposite else piece)
        first = end
    return pieces or [plan]


def _inverse(plan: RebuildPlan) -> RebuildPlan:
    return replace(
        plan,
        source=plan.target,
        target=plan.source,
        source_start=plan.target_start,
        source_end=plan.target_end,
        target_start=plan.source_start,
        target_end=plan.source_end,
        by_opposite=True,
    )


def plan_rebuild(
    flow: FlowConfig, topology: FlowTopology, clusters: FlowClusters, *, partition: int | None = None
) -> list[RebuildPlan]:
    """The partitions that were copied, with the extent of their logs; read no record.

    Args:
        topology: the topology of the selected topics.
        partition: only this partition of the topics.

    Raises:
        MirrorError: a cluster does not respond, or a log ends before the position.
    """
    positions = {
        source: stored.position
        for source, stored in clusters.positions.read_all().positions.items()
        if topology.replicates(source.topic) and partition in (None, source.partition)
    }
    targets = {source: TopicPartition(topology.remote_topic(source.topic), source.partition) for source in positions}
    _check_merges(flow, targets)
    sources = _log_ranges(clusters.source_admin, positions)
    ends = _log_ranges(clusters.target_admin, targets.values())
    plans = [
        _plan(flow, position, targets[source], sources[source], ends[targets[source]])
        for source, position in sorted(positions.items())
    ]
    return [plan for plan in plans if plan.target_end > plan.target_start]


def _check_merges(flow: FlowConfig, targets: Mapping[TopicPartition, TopicPartition]) -> None:
    seen: dict[TopicPartition, TopicPartition] = {}
    for source, target in targets.items():
        if target in seen:
            raise TopologyError(
                f"{source} and {seen[target]} are merged into {target}: the source of each record is unknown.",
                where=Where(flow=str(flow.flow), topic=source.topic, partition=source.partition),
                action="Pass --topics to rebuild the maps of other topics.",
            )
        seen[target] = source


def _log_ranges(admin: ClusterAdmin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    wanted = sorted(set(partitions))
    starts = admin.list_offsets(wanted, OffsetSpec.EARLIEST)
    ends = admin.list_offsets(wanted, OffsetSpec.LATEST)
    for fact in (*starts.values(), *ends.values()):
        if fact.error is not None:
            raise fact.error
    return {partition: (starts[partition].offset, ends[partition].offset) for partition in wanted}


def _plan(
    flow: FlowConfig,
    position: Position,
    target: TopicPartition,
    source_range: tuple[int, int],
    target_range: tuple[int, int],
) -> RebuildPlan:
    where = Where(flow=str(flow.flow), topic=position.topic, partition=position.partition)
    source_end = position.offset + 1
    if source_end > source_range[1]:
        raise SourceTruncatedError(
            f"log end offset of the source is {source_range[1]}, but it was copied up to {source_end}.",
            where=where,
            action="Find out why the source lost records; later records at these offsets may differ.",
        )
    target_end = target_range[1] if position.target_offset is None else position.target_offset
    if target_end > target_range[1]:
        raise TargetTruncatedError(
            f"log end offset of {target} is {target_range[1]}, expected at least {target_end}: records of this flow "
            "are missing.",
            where=where,
            action="Find out why the target lost records.",
        )
    return RebuildPlan(
        source=position.source,
        target=target,
        source_start=min(source_range[0], source_end),
        source_end=source_end,
        target_start=min(target_range[0], target_end),
        target_end=target_end,
        certain_end=position.target_offset is not None,
    )
