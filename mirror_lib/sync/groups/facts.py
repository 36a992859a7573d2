"""The input of a plan for consumer groups: the state of both clusters and of the ledger, as plain data."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.cluster.admin.groups import CommittedOffset, ListedGroup
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.errors import MirrorError
from mirror_lib.identity.histories import History
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.sync.groups.model import GroupFinding, GroupPartition
from mirror_lib.sync.groups.uncommitted import PartitionSizes
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class TargetGroups:
    """The flow's groups on the target; groups that do not exist there are in neither mapping."""

    listed: Mapping[str, ListedGroup] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    #: Groups whose offsets are not returned.
    errors: Mapping[str, MirrorError] = field(default_factory=dict)
    #: An offset whose metadata was copied before is committed again without it.
    drops_metadata: bool = False


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The state of both clusters for one flow."""

    #: Committed offsets of the flow's groups on the source.
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    #: Loaded from the offset-syncs topic.
    syncs: OffsetSyncStore
    #: The last checkpoint of each group and target partition.
    checkpoints: Mapping[GroupPartition, Checkpoint]
    #: None if no offsets are to be committed: then the target's groups are not read.
    target: TargetGroups | None = None
    #: Last checkpoints of a former copy: an operator has decided since that another log, or position, counts.
    outdated: Mapping[GroupPartition, Checkpoint] = field(default_factory=dict)
    #: The positions of source partitions.
    positions: Mapping[TopicPartition, Position] = field(default_factory=dict)
    #: The source offset at which the copy of each partition continues, if known.
    copied_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: The target's log end offset at that point, if known, by source partition.
    written_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: The existing exact offset maps, by source partition.
    maps: Mapping[TopicPartition, OffsetMap] = field(default_factory=dict)
    #: Checkpoints and committed offsets follow the maps; MM2's rule applies only without a map.
    exact: bool = False
    findings: tuple[GroupFinding, ...] = ()
    #: Why the partition's offsets cannot be translated, by source partition: the target partition does not hold the
    #: copied records, or cannot be read; or the source topic is another one than the copied one.
    target_errors: Mapping[TopicPartition, MirrorError] = field(default_factory=dict)
    #: Known log end offsets of target partitions, by source partition.
    target_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: Known log start offsets of target partitions and of source partitions, by source partition.
    target_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: Log end offsets of source partitions.
    source_ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: Source offsets [first, next) that an operator or the flow's policy has excluded from the copy. Ascending.
    skipped: Mapping[TopicPartition, Sequence[tuple[int, int]]] = field(default_factory=dict)
    #: What the ledger lacks of the copies: before the end of that part it is unknown what was skipped.
    lacking: Mapping[TopicPartition, History] = field(default_factory=dict)
    #: Committed offsets of single partitions that are not returned.
    unreadable: Mapping[GroupPartition, MirrorError] = field(default_factory=dict)
    #: Source topics whose transforms may route records elsewhere.
    routed: Container[str] = ()
    #: The partitions of the groups' topics: groups read them all.
    partitions: PartitionSizes = field(default_factory=PartitionSizes)
    #: Groups without an offset in a partition begin at the target's log start.
    from_start: bool = False
    #: As in the plan.
    remarks: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def select_groups(
    topology: FlowTopology,
    accepted: Iterable[str],
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
) -> dict[str, Mapping[TopicPartition, CommittedOffset]]:
    """The groups that are translated, with their offsets (mm2 `MirrorCheckpointConnector.findConsumerGroups`).

    Args:
        accepted: groups that the group filter accepts; at least one topic must pass the topic filter.
    """
    takes = topology.topic_filter.should_replicate_topic
    topics = {partition.topic for offsets in committed.values() for partition in offsets}
    taken = {topic for topic in topics if takes(topic)}
    return {
        group: committed[group]
        for group in sorted(accepted)
        if any(partition.topic in taken for partition in committed.get(group, ()))
    }
