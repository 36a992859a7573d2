"""Where consumer groups go on on the target: checkpoints to write and offsets to commit, as a plan. Pure.

The rules are those of `MirrorCheckpointTask` in Kafka's connect/mirror, with what a batch knows beyond it: every group,
topic and partition that is not where it should be has a reason, and nothing is ever committed behind the true position.

Checkpoints keep MM2's rule, so that Java's tools and a returning MM2 agree with them. What is committed on the target
may follow the exact offset map (`mirror.group.translation=exact`): then a group reads nothing again, at any lag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from mirror_lib.cluster.admin_groups import CommittedOffset, GroupState, ListedGroup
from mirror_lib.cluster.formats import Checkpoint
from mirror_lib.errors import MirrorError
from mirror_lib.offsets.checkpoints import CheckpointOffsets, Precision, checkpoint_after, translate
from mirror_lib.offsets.offset_map import Landing, OffsetMap
from mirror_lib.offsets.sync_store import OffsetSyncStore
from mirror_lib.topology.names import FlowId, TopicPartition
from mirror_lib.topology.selection import Exclusion, FlowTopology


class GroupReason(StrEnum):
    """Why a group does not go on on the target exactly where it stands on the source."""

    #: The plan has something to do for it that is not done yet.
    PENDING = "pending"
    #: The flow does not take the topic.
    TOPIC_NOT_REPLICATED = "topic-not-replicated"
    #: The flow takes the topic, but this run is limited to others.
    TOPIC_NOT_REQUESTED = "topic-not-requested"
    #: A cutover has moved the topic's writers to the target: the groups there go on by themselves.
    TOPIC_HANDED_OVER = "topic-handed-over"
    #: The group reads several source partitions that share a target partition: one offset cannot stand for both.
    MERGED_TARGET = "merged-target"
    #: There was a checkpoint, but on the source the group has no committed offset for the partition any more.
    NO_COMMITTED_OFFSET = "no-committed-offset"
    #: Nothing of the partition was copied yet.
    NO_OFFSET_SYNC_YET = "no-offset-sync-yet"
    #: The group is behind everything that is known of the copy: it stood still since before the copy began.
    BEHIND_OLDEST_SYNC = "behind-oldest-sync"
    #: The group goes on a little too early, and reads some records again.
    BETWEEN_SYNCS = "between-syncs"
    #: The group has read records that are not copied yet; it goes on at the end of the copy.
    UPSTREAM_BEYOND_COPIED = "upstream-beyond-copied"
    #: On the target the group has members; they alone may commit.
    GROUP_ACTIVE_ON_TARGET = "group-active-on-target"
    #: A group of this name exists on the target that is none of consumers.
    OTHER_GROUP_ON_TARGET = "other-group-on-target"
    #: What the group has committed on the target is further on; it is never set back.
    TARGET_AHEAD = "target-ahead"
    #: A share or streams group: only groups of consumers are translated, as by MM2.
    GROUP_KIND_NOT_SUPPORTED = "group-kind-not-supported"
    #: A cluster does not tell the group's offsets, for lack of permission for instance.
    UNREADABLE = "unreadable"
    #: The target did not take the commit.
    REFUSED = "refused"


#: Stands beside the reasons where they are counted.
IN_SYNC = "in-sync"

#: Those that pass by themselves, or that the configuration asks for; the others need somebody to look.
_TROUBLE = frozenset[GroupReason | None]({GroupReason.UNREADABLE, GroupReason.REFUSED})
_PRECISION_REASONS = {
    Precision.BETWEEN_SYNCS: GroupReason.BETWEEN_SYNCS,
    Precision.BEYOND_COPIED: GroupReason.UPSTREAM_BEYOND_COPIED,
    Precision.BEHIND_OLDEST_SYNC: GroupReason.BEHIND_OLDEST_SYNC,
    Precision.NO_SYNC: GroupReason.NO_OFFSET_SYNC_YET,
}


_EXCLUSION_REASONS: dict[Exclusion | None, GroupReason] = {
    Exclusion.NOT_REQUESTED: GroupReason.TOPIC_NOT_REQUESTED,
    Exclusion.HANDED_OVER: GroupReason.TOPIC_HANDED_OVER,
    Exclusion.NOT_HANDED_OVER: GroupReason.TOPIC_NOT_REPLICATED,
}


class GroupPartition(NamedTuple):
    """A group on one partition of one cluster: what a checkpoint is keyed by on the target."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupFinding:
    """A group that is left out as a whole."""

    group: str
    reason: GroupReason
    #: In words, where there is more to say.
    what: str = ""


@dataclass(frozen=True, slots=True)
class TargetGroups:
    """The flow's groups on the target; those that do not exist there are in neither mapping."""

    listed: Mapping[str, ListedGroup] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    #: Groups whose offsets are not told.
    errors: Mapping[str, MirrorError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What was read of both clusters for one flow."""

    #: What the flow's groups have committed on the source.
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    #: Loaded from the offset-syncs topic.
    syncs: OffsetSyncStore
    #: The last checkpoint of each group and target partition.
    checkpoints: Mapping[GroupPartition, Checkpoint]
    #: None when no offsets are to be committed: then nobody needs to look.
    target: TargetGroups | None = None
    #: The source offset that the copy of each partition goes on from, where it is known.
    copied_to: Mapping[TopicPartition, int] = field(default_factory=dict)
    #: The exact offset maps, by source partition, as far as there are any.
    maps: Mapping[TopicPartition, OffsetMap] = field(default_factory=dict)
    #: What is committed on the target follows the maps, and MM2's rule only where there is none.
    exact: bool = False
    findings: tuple[GroupFinding, ...] = ()
    #: Committed offsets of single partitions that are not told.
    unreadable: Mapping[GroupPartition, MirrorError] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group on one partition: where it stands, where it goes on, and what is to be done for it."""

    group: str
    source: TopicPartition
    target: TopicPartition
    #: What the group has committed on the source.
    upstream: int | None = None
    #: The checkpoint that counts: the present translation, or the last checkpoint where that is further on.
    checkpoint: CheckpointOffsets | None = None
    #: Where the group goes on on the target by the exact offset map; None where that has no say.
    exact: int | None = None
    #: Records that the group has read and would read again on the target when it goes on at `goes_on_at`; None where no
    #: map can tell.
    read_again: int | None = None
    #: What the group has committed on the target; None without, and where nobody looked.
    target_committed: int | None = None
    #: What the group committed along with its offset.
    metadata: str = ""
    #: The flow translates the group's offset here; otherwise `reason` says why not.
    translated: bool = False
    #: The checkpoint is to be written.
    emit: bool = False
    #: `goes_on_at` is to be committed on the target.
    commit: bool = False
    #: Why the group will not be exactly in sync when the plan is carried out; None when it will be.
    reason: GroupReason | None = None
    #: In words, where a cluster said something.
    what: str = ""

    @property
    def goes_on_at(self) -> int | None:
        """The target offset that the group goes on at; None where nothing tells."""
        if self.exact is not None:
            return self.exact
        return None if self.checkpoint is None else self.checkpoint.downstream_offset

    @property
    def present_reason(self) -> GroupReason | None:
        """The same as long as the plan is not carried out."""
        return GroupReason.PENDING if self.emit or self.commit else self.reason

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "group": self.group,
            "topic": self.source.topic,
            "partition": self.source.partition,
            "target_topic": self.target.topic,
            "upstream_offset": self.upstream,
            "checkpoint": None if self.checkpoint is None else self.checkpoint.downstream_offset,
            "exact": self.exact,
            "read_again": self.read_again,
            "target_committed": self.target_committed,
            "emit": self.emit,
            "commit": self.commit,
            "reason": None if self.reason is None else self.reason.value,
            "what": self.what,
        }


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """What is to be done for a flow's groups. Two plans are equal when they would do the same."""

    flow: FlowId
    rows: tuple[GroupRow, ...] = ()
    findings: tuple[GroupFinding, ...] = ()
    notices: tuple[str, ...] = ()
    #: Whether what the groups have committed on the target was looked at: without it nothing is committed there.
    target_read: bool = False

    @property
    def checkpoints(self) -> Iterator[Checkpoint]:
        """The checkpoints to write."""
        return (
            Checkpoint(row.group, *row.target, *row.checkpoint, row.metadata)
            for row in self.rows
            if row.emit and row.checkpoint is not None
        )

    @property
    def commits(self) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        """The offsets to commit on the target, by group."""
        wanted: dict[str, dict[TopicPartition, CommittedOffset]] = {}
        for row in self.rows:
            if row.commit and row.goes_on_at is not None:
                wanted.setdefault(row.group, {})[row.target] = CommittedOffset(row.goes_on_at, row.metadata)
        return wanted

    @property
    def changes(self) -> int:
        """How many groups and partitions applying the plan would touch."""
        return sum(row.emit or row.commit for row in self.rows)

    @property
    def problems(self) -> tuple[str, ...]:
        """What somebody has to look at: what a cluster did not tell or did not take."""
        groups = (f"group {each.group}: {each.what}" for each in self.findings if each.reason in _TROUBLE)
        rows = (f"group {row.group} on {row.source}: {row.what}" for row in self.rows if row.reason in _TROUBLE)
        return (*groups, *rows)

    def counts(self, *, present: bool = False) -> dict[str, int]:
        """Rows and left-out groups by reason, and those in sync.

        Args:
            present: as things are now, not as they will be when the plan is carried out.
        """
        reasons = Counter((row.present_reason if present else row.reason) or IN_SYNC for row in self.rows)
        reasons.update(finding.reason for finding in self.findings)
        return {str(reason): count for reason, count in sorted(reasons.items())}

    def summary(self) -> dict[str, Any]:
        """Counts as plain data; never a row for each of thousands."""
        return {
            "flow": str(self.flow),
            "groups": len({row.group for row in self.rows}),
            "partitions": len(self.rows),
            "checkpoints": sum(row.emit for row in self.rows),
            "commits": sum(row.commit for row in self.rows),
            "read_again": sum(row.read_again or 0 for row in self.rows),
            "target_read": self.target_read,
            "reasons": self.counts(),
            "notices": list(self.notices),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            **self.summary(),
            "findings": [{**asdict(finding), "reason": finding.reason.value} for finding in self.findings],
            "rows": [row.to_dict() for row in self.rows],
        }


def select_groups(
    topology: FlowTopology,
    accepted: Iterable[str],
    committed: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
) -> dict[str, Mapping[TopicPartition, CommittedOffset]]:
    """The groups that are translated, with their offsets (mm2 `MirrorCheckpointConnector.findConsumerGroups`).

    Args:
        accepted: groups that the group filter takes; one topic at least must pass the topic filter.
    """
    takes = topology.topic_filter.should_replicate_topic
    topics = {partition.topic for offsets in committed.values() for partition in offsets}
    taken = {topic for topic in topics if takes(topic)}
    return {
        group: committed[group]
        for group in sorted(accepted)
        if any(partition.topic in taken for partition in committed.get(group, ()))
    }


def plan_groups(topology: FlowTopology, facts: GroupFacts) -> GroupPlan:
    """What is to be done for the groups: what is committed always has its checkpoint."""
    planner = _Planner(topology, facts)
    rows = [row for group in facts.committed for row in planner.rows(group)]
    # By partition, so that each map is needed once: those of topics with many holes are large.
    for number in sorted(range(len(rows)), key=lambda number: rows[number].source):
        if rows[number].translated:
            rows[number] = planner.settled(rows[number])
    return GroupPlan(topology.flow, tuple(rows), facts.findings, facts.notices, target_read=facts.target is not None)


def after_applying(
    plan: GroupPlan, refused: Mapping[GroupPartition, MirrorError], active: Iterable[GroupPartition] = ()
) -> GroupPlan:
    """The plan with what the target said to its commits.

    Args:
        refused: commits that failed, by group and target partition.
        active: those of them that failed because the group has got members.
    """
    lost = set(active)

    def outcome(row: GroupRow) -> GroupRow:
        error = refused.get(GroupPartition(row.group, row.target)) if row.commit else None
        if error is None:
            return row
        is_active = GroupPartition(row.group, row.target) in lost
        reason = GroupReason.GROUP_ACTIVE_ON_TARGET if is_active else GroupReason.REFUSED
        return replace(row, commit=False, reason=reason, what=str(error))

    return replace(plan, rows=tuple(map(outcome, plan.rows))) if refused else plan


class _Planner:
    """Decides row by row; what is the same for all groups of a topic is worked out once."""

    def __init__(self, topology: FlowTopology, facts: GroupFacts) -> None:
        self._topology = topology
        self._facts = facts
        self._topics: dict[str, tuple[str, GroupReason | None]] = {}
        self._last_map: tuple[TopicPartition, OffsetMap | None] | None = None
        self._former: dict[str, list[Checkpoint]] = {}
        for checkpoint in facts.checkpoints.values():
            self._former.setdefault(checkpoint.group, []).append(checkpoint)
        self._untold: dict[str, dict[TopicPartition, MirrorError]] = {}
        for (group, partition), error in facts.unreadable.items():
            self._untold.setdefault(group, {})[partition] = error

    def rows(self, group: str) -> Iterator[GroupRow]:
        offsets = self._facts.committed[group]
        targets = Counter(self._target(partition) for partition in offsets if self._why_not(partition.topic) is None)
        for partition in sorted(offsets):
            target = self._target(partition)
            row = GroupRow(group, partition, target, offsets[partition].offset, metadata=offsets[partition].metadata)
            reason = self._why_not(partition.topic)
            if reason is None and targets[target] > 1:
                reason = GroupReason.MERGED_TARGET
            yield self._translated(row) if reason is None else replace(row, reason=reason)
        for partition, error in sorted(self._untold.get(group, {}).items()):
            target = self._target(partition)
            targets[target] += 1
            if self._why_not(partition.topic) is None:
                yield GroupRow(group, partition, target, reason=GroupReason.UNREADABLE, what=str(error))
        yield from self._gone(group, targets)

    def _gone(self, group: str, present: Container[TopicPartition]) -> Iterator[GroupRow]:
        """Checkpoints of partitions that the group has no offset for any more."""
        for checkpoint in self._former.get(group, ()):
            target = TopicPartition(checkpoint.topic, checkpoint.partition)
            source = None if target in present else self._source_of(checkpoint.topic)
            if source is not None:
                offsets = CheckpointOffsets(checkpoint.upstream_offset, checkpoint.downstream_offset)
                partition = TopicPartition(source, checkpoint.partition)
                yield GroupRow(group, partition, target, checkpoint=offsets, reason=GroupReason.NO_COMMITTED_OFFSET)

    def _source_of(self, target_topic: str) -> str | None:
        """The source topic of a remote topic, None when the flow does not take it; what a regex renamed is not seen."""
        upstream = self._topology.policy.upstream_topic(target_topic)
        for source in (*self._topology.rename.explicit, upstream or target_topic):
            if self._why_not(source) is None and self._topology.checkpointed_topic(source) == target_topic:
                return source
        return None

    def _translated(self, row: GroupRow) -> GroupRow:
        assert row.upstream is not None
        translation = translate(
            self._facts.syncs, row.source, row.upstream, copied_to=self._facts.copied_to.get(row.source)
        )
        last = self._facts.checkpoints.get(GroupPartition(row.group, row.target))
        previous = None if last is None else CheckpointOffsets(last.upstream_offset, last.downstream_offset)
        current = checkpoint_after(previous, row.upstream, translation.downstream_offset)
        if current == previous and last is not None:
            row = replace(row, metadata=last.metadata)
        reason = _PRECISION_REASONS.get(translation.precision)
        if reason is GroupReason.NO_OFFSET_SYNC_YET and self._topology.exclusion(row.source.topic) is not None:
            reason = GroupReason.TOPIC_NOT_REPLICATED
        emit = current is not None and current != previous
        return replace(row, checkpoint=current, emit=emit, reason=reason, translated=True)

    def settled(self, row: GroupRow) -> GroupRow:
        """A translated row with what is committed on the target (`MirrorCheckpointTask.syncGroupOffset`)."""
        groups = self._facts.target
        row = self._mapped(row, by_map=self._facts.exact and groups is not None)
        if groups is None:
            return row
        if row.group in groups.errors:
            return replace(row, reason=GroupReason.UNREADABLE, what=str(groups.errors[row.group]))
        listed = groups.listed.get(row.group)
        if listed is not None and not listed.kind.of_consumers:
            return replace(row, reason=GroupReason.OTHER_GROUP_ON_TARGET)
        if listed is not None and listed.state is GroupState.ACTIVE:
            return replace(row, reason=GroupReason.GROUP_ACTIVE_ON_TARGET)
        committed = groups.committed.get(row.group, {}).get(row.target)
        if committed is not None:
            row = replace(row, target_committed=committed.offset)
        wanted = row.goes_on_at
        if wanted is None:
            return row
        if committed is None or committed.offset < wanted:
            return replace(row, commit=True)
        return replace(row, reason=GroupReason.TARGET_AHEAD) if committed.offset > wanted else row

    def _map_of(self, source: TopicPartition) -> OffsetMap | None:
        if self._last_map is None or self._last_map[0] != source:
            self._last_map = (source, self._facts.maps.get(source))
        return self._last_map[1]

    def _mapped(self, row: GroupRow, *, by_map: bool) -> GroupRow:
        """The row with what the exact offset map says of it.

        Args:
            by_map: whether the group is to go on where the map says.
        """
        found, upstream = self._map_of(row.source), row.upstream
        if upstream is None or found is None or found.empty:
            return row
        lookup = found.goes_on_at(upstream)
        # What stands on the target before the map begins came from MM2, whose syncs know it.
        if by_map and (lookup.landing is not Landing.BEFORE or found.target_first == 0):
            copied_to = max(found.source_next, self._facts.copied_to.get(row.source, 0))
            reason = GroupReason.UPSTREAM_BEYOND_COPIED if upstream > copied_to else None
            row = replace(row, exact=lookup.offset, reason=reason)
        if row.goes_on_at is None:
            return row
        return replace(row, read_again=max(0, found.records_read_again(upstream, row.goes_on_at)))

    def _target(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self._topic(partition.topic)[0], partition.partition)

    def _why_not(self, topic: str) -> GroupReason | None:
        return self._topic(topic)[1]

    def _topic(self, topic: str) -> tuple[str, GroupReason | None]:
        known = self._topics.get(topic)
        if known is None:
            reason = None
            if not self._topology.topic_filter.should_replicate_topic(topic):
                # MM2 asks the topic filter alone; heartbeats topics, which are copied all the same, have no groups.
                reason = GroupReason.TOPIC_NOT_REPLICATED
            else:
                reason = _EXCLUSION_REASONS.get(self._topology.exclusion(topic))
            known = self._topics[topic] = (self._topology.checkpointed_topic(topic), reason)
        return known
