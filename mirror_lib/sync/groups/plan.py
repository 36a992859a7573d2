"""Rules that decide which checkpoints are written and which offsets are committed on the target. Pure.

The input is facts of both clusters, the output a plan (`groups.plan`). The rules are those of `MirrorCheckpointTask` in
Kafka's connect/mirror, extended: every group, topic and partition that is not in sync has a reason, and no committed
offset is ever greater than the true one.

Checkpoints, and the offsets committed on the target, follow the exact offset map where it has the group's offset
(`mirror.group.translation=exact`): then groups have no duplicates, at any lag. Elsewhere, and with `mm2`, MM2's rule
applies. It is never later than the map, so a returning MM2 continues from both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from mirror_lib.cluster.admin.groups import GroupState
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.errors import (
    LedgerBehindError,
    MirrorError,
    ReplicationError,
    SourceRecreatedError,
    SourceTruncatedError,
)
from mirror_lib.identity.ledger_positions import lacks_history
from mirror_lib.offsets.checkpoints import (
    CheckpointOffsets,
    MapTranslation,
    Precision,
    checkpoint_after,
    translate,
    translate_by_map,
)
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.syncs import BEFORE_ALL
from mirror_lib.sync.groups.facts import GroupFacts, TargetGroups
from mirror_lib.sync.groups.model import GroupPartition, GroupPlan, GroupRow
from mirror_lib.sync.groups.remarks import remarks_on
from mirror_lib.sync.groups.uncommitted import LogRange, TargetOffset, judge
from mirror_lib.topology.flow_topology import Exclusion, FlowTopology
from mirror_lib.topology.names import TopicPartition

_PRECISION_REASONS = {
    Precision.BETWEEN_SYNCS: GroupReason.BETWEEN_SYNCS,
    Precision.BEYOND_COPIED: GroupReason.UPSTREAM_BEYOND_COPIED,
    Precision.BEHIND_OLDEST_SYNC: GroupReason.BEHIND_OLDEST_SYNC,
    Precision.NO_SYNC: GroupReason.NO_OFFSET_SYNC_YET,
}
_NO_END = 2**63
#: Reasons that a run changes if the source has the records before the group's offset.
_UNCOPIED = frozenset({GroupReason.UPSTREAM_BEYOND_COPIED, GroupReason.NO_OFFSET_SYNC_YET})
#: Reasons that the map disproves if it shows no duplicates.
_IMPRECISE = frozenset({GroupReason.BETWEEN_SYNCS, GroupReason.BEHIND_OLDEST_SYNC})
#: Reasons for which no offset is committed, regardless of the translation.
_CLOSED = frozenset({GroupReason.UNREADABLE, GroupReason.OTHER_GROUP_ON_TARGET, GroupReason.GROUP_ACTIVE_ON_TARGET})
_EXCLUSION_REASONS: dict[Exclusion | None, GroupReason] = {
    Exclusion.NOT_REQUESTED: GroupReason.TOPIC_NOT_REQUESTED,
    Exclusion.HANDED_OVER: GroupReason.TOPIC_HANDED_OVER,
    Exclusion.NOT_HANDED_OVER: GroupReason.TOPIC_NOT_REPLICATED,
}


def plan_groups(topology: FlowTopology, facts: GroupFacts) -> GroupPlan:
    """Plan the changes for the groups: every committed offset has its checkpoint."""
    planner = _Planner(topology, facts)
    # A group that is gone on the source may have a checkpoint of a former copy all the same.
    groups = dict.fromkeys((*facts.committed, *sorted(place.group for place in facts.outdated)))
    rows = [row for group in groups for row in planner.rows(group)]
    # By partition, so that each map is read once: maps of topics with many holes are large.
    settled: list[GroupRow | None] = [*rows]
    for number in sorted(range(len(rows)), key=lambda number: rows[number].source):
        if rows[number].translated:
            settled[number] = planner.settle(rows[number]).with_reason()
        elif rows[number].reason is GroupReason.PARTITION_UNCOMMITTED:
            settled[number] = planner.settle_uncommitted(rows[number])
    done = tuple(row for row in settled if row is not None)
    return GroupPlan(
        topology.flow,
        done,
        facts.findings,
        facts.notices,
        target_read=facts.target is not None,
        remarks=(*facts.remarks, *remarks_on(done, facts.partitions.sizes)),
    )


def after_applying(
    plan: GroupPlan, refused: Mapping[GroupPartition, MirrorError], active: Iterable[GroupPartition] = ()
) -> GroupPlan:
    """The plan with the target's responses to its commits.

    Args:
        refused: commits that failed, by group and target partition.
        active: failed commits whose group now has members.
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


def with_targets_reread(plan: GroupPlan, groups: Container[str], now: TargetGroups) -> GroupPlan:
    """The plan with the state of groups on the target right before their commit.

    A group that has joined, committed and left since the plan was made is not set back.

    Args:
        groups: the re-read groups.
        now: their state.
    """
    rows = (
        _compare(replace(row, commit=False), now) if row.commit and row.group in groups else row for row in plan.rows
    )
    return replace(plan, rows=tuple(rows))


def _reason_of(error: MirrorError) -> GroupReason:
    if isinstance(error, SourceRecreatedError | SourceTruncatedError):
        return GroupReason.SOURCE_CHANGED
    if isinstance(error, LedgerBehindError):
        return GroupReason.LEDGER_BEHIND
    return GroupReason.TARGET_CHANGED if isinstance(error, ReplicationError) else GroupReason.UNREADABLE


def _compare(row: GroupRow, groups: TargetGroups) -> GroupRow:
    """A translated row with its due commit, or the reason why there is none."""
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
    wanted = row.target_offset
    if wanted is None:
        return row
    if committed is None or committed.offset < wanted:
        return replace(row, commit=True)
    if groups.drops_metadata and committed.metadata and committed.offset == wanted:
        return replace(row, commit=True)
    return replace(row, reason=GroupReason.TARGET_AHEAD) if committed.offset > wanted else row


class _Planner:
    """Decides row by row; computes what all groups of a topic share once."""

    def __init__(self, topology: FlowTopology, facts: GroupFacts) -> None:
        self._topology = topology
        self._facts = facts
        self._topics: dict[str, tuple[str, GroupReason | None]] = {}
        self._last_map: tuple[TopicPartition, OffsetMap | None] | None = None
        self._former: dict[str, list[Checkpoint]] = {}
        for checkpoint in (*facts.checkpoints.values(), *facts.outdated.values()):
            self._former.setdefault(checkpoint.group, []).append(checkpoint)
        self._unreadable: dict[str, dict[TopicPartition, MirrorError]] = {}
        for (group, partition), error in facts.unreadable.items():
            self._unreadable.setdefault(group, {})[partition] = error

    def rows(self, group: str) -> Iterator[GroupRow]:
        offsets = self._facts.committed.get(group, {})
        taken = [partition for partition in offsets if self._why_not(partition.topic) is None]
        targets = Counter(map(self._target, taken))
        if self._topology.rename.merge:
            # An offset would also decide about the records of sources in which the group has none.
            targets.update(map(self._target, self._facts.partitions.missing(taken, self._facts.routed)))
        for partition in sorted(offsets):
            target = self._target(partition)
            committed = offsets[partition]
            row = GroupRow(group, partition, target, committed.offset, metadata=committed.metadata, translated=True)
            reason = self._why_not(partition.topic)
            if reason is None and targets[target] > 1:
                reason = GroupReason.MERGED_TARGET
            error = self._facts.target_errors.get(partition) or self._unknown_history(row)
            if reason is None and error is not None:
                reason = _reason_of(error)
                row = replace(row, what=str(error))
            yield row if reason is None else replace(row, translated=False, reason=reason)
        for partition, error in sorted(self._unreadable.get(group, {}).items()):
            target = self._target(partition)
            targets[target] += 1
            if self._why_not(partition.topic) is None:
                yield GroupRow(group, partition, target, reason=GroupReason.UNREADABLE, what=str(error))
        former = {row.source: row for row in self._tombstone_rows(group, targets)}
        yield from self._uncommitted_rows(group, former)
        yield from former.values()

    def _uncommitted_rows(self, group: str, former: dict[TopicPartition, GroupRow]) -> Iterator[GroupRow]:
        """Rows of partitions that the group will read on the target and has no offset in.

        Args:
            former: rows of former checkpoints; those of such partitions are taken out.
        """
        known = {*self._facts.committed.get(group, ()), *self._unreadable.get(group, ())}
        taken = {partition for partition in known if self._why_not(partition.topic) is None}
        for partition in self._facts.partitions.missing(taken, self._facts.routed):
            row = former.pop(partition, None) or GroupRow(group, partition, self._target(partition))
            error = self._facts.target_errors.get(partition)
            if error is not None:
                yield replace(row, reason=_reason_of(error), what=str(error))
            else:
                yield replace(row, reason=GroupReason.PARTITION_UNCOMMITTED)

    def settle_uncommitted(self, row: GroupRow) -> GroupRow | None:
        """A row of a partition without an offset of the group, by `uncommitted.judge`; None if it has no result."""
        facts, groups = self._facts, self._facts.target
        row = replace(row, reason=None)
        found = row if groups is None else _compare(row, groups)
        if found.reason in _CLOSED:
            return found
        # One offset cannot represent several source partitions; there may be one of another source.
        merged = self._topology.rename.merge
        committed = None if groups is None or merged else groups.committed.get(row.group, {}).get(row.target)
        logs = LogRange(
            facts.source_starts.get(row.source),
            facts.source_ends.get(row.source),
            facts.target_starts.get(row.source),
            facts.target_ends.get(row.source),
            on_source=facts.partitions.on_source(row.source),
        )
        on_target = TargetOffset(groups is not None and not merged, None if committed is None else committed.offset)
        from_start = facts.from_start and not merged
        made = judge(row, logs, on_target, self._map_of(row.source), from_start=from_start)
        return None if made is None else made.with_reason()

    def _unknown_history(self, row: GroupRow) -> MirrorError | None:
        history = self._facts.lacking.get(row.source)
        if history is None or row.upstream is None or row.upstream >= history.following:
            return None
        return lacks_history(self._topology.flow, row.source, history)

    def _tombstone_rows(self, group: str, present: Container[TopicPartition]) -> Iterator[GroupRow]:
        """Rows of checkpoints for partitions without a committed offset of the group."""
        for checkpoint in self._former.get(group, ()):
            target = TopicPartition(checkpoint.topic, checkpoint.partition)
            source = None if target in present else self._source_of(checkpoint.topic)
            if source is not None:
                offsets = CheckpointOffsets(checkpoint.upstream_offset, checkpoint.downstream_offset)
                partition = TopicPartition(source, checkpoint.partition)
                row = GroupRow(group, partition, target, reason=GroupReason.NO_COMMITTED_OFFSET)
                if GroupPartition(group, target) in self._facts.outdated:
                    yield self._withdraw(row, checkpoint.upstream_offset)
                else:
                    yield replace(row, checkpoint=offsets)

    def _withdraw(self, row: GroupRow, upstream: int) -> GroupRow:
        """The row, with a checkpoint in place of an outdated one: Java's tools would skip records by that.

        A record without a value would stop MirrorMaker's own consumers.
        """
        begin = self._facts.target_starts.get(row.source, 0)
        return replace(row, withdrawn_to=CheckpointOffsets(upstream, begin), emit=True)

    def _source_of(self, target_topic: str) -> str | None:
        """The source topic of a remote topic; None if the flow does not select it. Regex renames are not reversed."""
        upstream = self._topology.policy.upstream_topic(target_topic)
        for source in (*self._topology.rename.explicit, upstream or target_topic):
            if self._why_not(source) is None and self._topology.checkpointed_topic(source) == target_topic:
                return source
        return None

    def settle(self, row: GroupRow) -> GroupRow:
        """A translated row with its checkpoint, and the offset to commit on the target.

        As `MirrorCheckpointTask.checkpointsForGroup` and `syncGroupOffset`.
        """
        row = self._within_target(self._beyond_source(self._translate(row)))
        groups = self._facts.target
        if groups is None or not row.translated:
            return row
        found = _compare(row, groups)
        wanted = row.target_offset
        if wanted is not None and found.reason not in _CLOSED and self._is_beyond_end(row.source, wanted):
            return self._beyond_end(replace(found, commit=False), wanted)
        return found

    def _translate(self, row: GroupRow) -> GroupRow:
        upstream = row.upstream
        assert upstream is not None
        translation = translate(
            self._facts.syncs, row.source, upstream, copied_to=self._facts.copied_to.get(row.source)
        )
        reason = _PRECISION_REASONS.get(translation.precision)
        # Records that a transform does not route elsewhere have offset syncs.
        is_copied = row.source in self._facts.copied_to
        if reason is GroupReason.NO_OFFSET_SYNC_YET and is_copied and row.source.topic in self._facts.routed:
            reason = GroupReason.ROUTED_BY_TRANSFORM
        if reason is GroupReason.NO_OFFSET_SYNC_YET and self._topology.exclusion(row.source.topic) is not None:
            reason = GroupReason.TOPIC_NOT_REPLICATED
        by_map = self._by_map(row, translation.downstream_offset, reason)
        if not self._facts.exact:
            by_map = by_map._replace(downstream_offset=None, next_record=None)
        elif by_map.downstream_offset is not None:
            reason = self._reason_by_map(row, by_map, reason)
        row = self._with_checkpoint(row, translation.downstream_offset, by_map, reason)
        return self._counted(row, is_mapped=by_map.is_mapped)

    def _with_checkpoint(
        self, row: GroupRow, by_rule: int | None, by_map: MapTranslation, reason: GroupReason | None
    ) -> GroupRow:
        """The row with its checkpoint after the last one in the topic.

        A checkpoint after the next record, as MM2 before 3.4.1 may write, counts no more.
        """
        assert row.upstream is not None
        exact, next_record = by_map.downstream_offset, by_map.next_record
        key = GroupPartition(row.group, row.target)
        last = self._facts.checkpoints.get(key)
        previous = None if last is None else CheckpointOffsets(last.upstream_offset, last.downstream_offset)
        valid = previous
        if previous is not None and next_record is not None and previous.downstream_offset > next_record:
            valid = None
        current = checkpoint_after(valid, row.upstream, by_rule if exact is None else exact)
        if current is not None and self._is_beyond_end(row.source, current.downstream_offset):
            return self._beyond_end(replace(row, translated=False), current.downstream_offset)
        is_former = (self._facts.exact and last is not None) or key in self._facts.outdated
        if current is None and is_former:
            return self._withdraw(replace(row, reason=reason), row.upstream)
        if not by_map.is_mapped and exact is not None and current is not None and current.downstream_offset > exact:
            # MM2 wrote it when its syncs were nearer: a better lower bound.
            exact = None
        is_new = current is not None and current != previous
        metadata = row.metadata if is_new or last is None or current is None else last.metadata
        return replace(row, checkpoint=current, exact=exact, emit=is_new, reason=reason, metadata=metadata)

    def _is_beyond_end(self, source: TopicPartition, downstream: int) -> bool:
        end = self._facts.target_ends.get(source)
        return end is not None and downstream > end

    def _beyond_end(self, row: GroupRow, downstream: int) -> GroupRow:
        """The row without changes: a consumer with that offset is reset by its own policy."""
        end = self._facts.target_ends[row.source]
        what = f"its translated offset is {downstream}, but the log end offset of {row.target} is {end}"
        return replace(row, checkpoint=None, exact=None, emit=False, reason=GroupReason.BEYOND_TARGET_END, what=what)

    def _beyond_source(self, row: GroupRow) -> GroupRow:
        """The row with the reason of a group whose topic lost records, or was created again before the first copy.

        It still continues at the copy's end: where its own policy would reset it on the source is unknown.
        """
        end, upstream = self._facts.source_ends.get(row.source), row.upstream
        if end is None or upstream is None or upstream <= end or row.reason not in _UNCOPIED:
            return row
        what = f"its offset is {upstream}, but the log end offset on the source is {end}"
        return replace(row, reason=GroupReason.BEYOND_SOURCE_END, what=what)

    def _within_target(self, row: GroupRow) -> GroupRow:
        """The row with the target's log start if retention has deleted the record at the translated offset."""
        start, begin = row.target_offset, self._facts.target_starts.get(row.source)
        if start is None or begin is None or begin <= start:
            return row
        return replace(row, log_start=begin)

    def _map_of(self, source: TopicPartition) -> OffsetMap | None:
        if self._last_map is None or self._last_map[0] != source:
            self._last_map = (source, self._facts.maps.get(source))
        return self._last_map[1]

    def _by_map(self, row: GroupRow, by_rule: int | None, reason: GroupReason | None) -> MapTranslation:
        """The row's translation by the exact offset map.

        Args:
            by_rule: its offset by MM2's rule.
            reason: why that is not exact.
        """
        found, upstream = self._map_of(row.source), row.upstream
        assert upstream is not None
        if found is None or found.empty:
            begin = self._begin_of_empty(row) if reason is GroupReason.NO_OFFSET_SYNC_YET else None
            return MapTranslation(begin, begin)
        syncs = self._facts.syncs.slots(row.source)
        begins = upstream >= found.source_first or self._begins_the_target(row, found)
        return translate_by_map(found, upstream, by_rule, syncs, begins_target=begins)

    def _reason_by_map(self, row: GroupRow, by_map: MapTranslation, by_rule: GroupReason | None) -> GroupReason | None:
        """Why a group that continues at the map's offset is not in sync.

        Args:
            by_rule: why its offset by MM2's rule is not exact.
        """
        found, upstream = self._map_of(row.source), row.upstream
        assert upstream is not None
        if found is None or found.empty:
            return None
        if upstream > max(found.source_next, self._facts.copied_to.get(row.source, 0)):
            return GroupReason.UPSTREAM_BEYOND_COPIED
        return None if by_map.is_mapped else by_rule

    def _counted(self, row: GroupRow, *, is_mapped: bool) -> GroupRow:
        """The row with the records that the group reads again or skips, by the map, if it continues at `target_offset`.

        Args:
            is_mapped: as of `MapTranslation`. Otherwise the records that it reads again are unknown.
        """
        found, upstream = self._map_of(row.source), row.upstream
        if not row.translated or upstream is None:
            return row
        if found is None or found.empty:
            return self._behind_nothing(row) if row.exact is None else replace(row, duplicates=0, skipped=0)
        if row.target_offset is None:
            return row
        again, skipped = found.count_duplicates(upstream, row.target_offset), self._count_skipped(row, found)
        # The offset of a checkpoint from before, or no record is between the two offsets.
        reason = None if is_mapped and not again and row.reason in _IMPRECISE else row.reason
        duplicates = max(0, again) if is_mapped or reason is None else None
        return replace(row, duplicates=duplicates, skipped=max(0, -again) + skipped, reason=reason)

    def _begin_of_empty(self, row: GroupRow) -> int | None:
        """The log start offset of a target partition that has no copy because the source is empty.

        Without an offset there, a group would skip records written before a member joins (`auto.offset.reset=latest`).
        """
        first, end = self._facts.source_starts.get(row.source), self._facts.source_ends.get(row.source)
        begin, upstream = self._facts.target_starts.get(row.source), row.upstream
        if first is None or upstream is None:
            return None
        copied_to = self._facts.copied_to.get(row.source, first)
        # Records on the target come from another program: it is unknown if the group has read them.
        if begin is None or begin != self._facts.target_ends.get(row.source) or copied_to != end:
            return None
        # Records that retention has deleted are missing for the group on the source, too.
        return begin if max(upstream, first) == end else None

    def _behind_nothing(self, row: GroupRow) -> GroupRow:
        """The row of a partition without a map, with an upper bound of skipped records if the target has none for it.

        For example after the target was lost and the copy continues (`mirror gaps accept`), or a position was set by
        hand: records that the group has not read count as copied, but are not there. Then the group is at the log end,
        or only markers of take-overs follow. Or the target's retention has deleted them, and a map rebuilt from both
        logs knows nothing of them.
        """
        end, copied_to = self._facts.target_ends.get(row.source), self._facts.copied_to.get(row.source)
        upstream, start = row.upstream, row.target_offset
        if end is None or copied_to is None or upstream is None or start is None:
            return row
        # Records that retention has deleted at the source are missing for the group there, too.
        unread = max(0, copied_to - max(upstream, self._facts.source_starts.get(row.source, 0)))
        if start >= end or self._is_before_all(row):
            return replace(row, skipped=unread)
        kept = self._facts.target_starts.get(row.source, 0)
        return row if kept <= start else replace(row, skipped=min(unread, kept - start))

    def _begins_the_target(self, row: GroupRow, found: OffsetMap) -> bool:
        """True if nothing was copied to the target before the map; only markers of take-overs may be there."""
        if found.target_first == 0:
            return True
        return self._is_before_all(row)

    def _is_before_all(self, row: GroupRow) -> bool:
        """True if the newest sync before the group is that of a decision by which the target held nothing."""
        sync = None if row.upstream is None else self._facts.syncs.nearest(row.source, row.upstream)
        return sync is not None and sync.upstream_offset == BEFORE_ALL

    def _count_skipped(self, row: GroupRow, found: OffsetMap) -> int:
        """Upper bound of the records after the group's offset on the source that the target does not hold."""
        upstream, start = row.upstream, row.target_offset
        assert upstream is not None
        assert start is not None
        # Records that retention has deleted at the source are missing for the group there, too.
        first = max(upstream, self._facts.source_starts.get(row.source, 0))
        skipped = 0
        if self._begins_the_target(row, found):
            skipped += max(0, found.source_first - first)
        skipped += self._count_excluded(row.source, found, max(first, found.source_first))
        kept = self._facts.target_starts.get(row.source, 0)
        if kept > start:
            deleted = found.source_records_between(first, found.to_source(kept).offset)
            skipped += min(found.target_records_between(start, kept), deleted)
            skipped += self._count_unmapped(row.source, found, first=first, start=start, kept=kept)
        return skipped

    def _count_excluded(self, source: TopicPartition, found: OffsetMap, first: int, following: int = _NO_END) -> int:
        """The source records in a range that an operator or the flow's policy has excluded from the copy."""
        count = 0
        for begin, end in self._facts.skipped.get(source, ()):
            begin, end = max(begin, first), min(end, following)
            if begin < end:
                count += end - begin - found.source_records_between(begin, end)
        return count

    def _count_unmapped(self, source: TopicPartition, found: OffsetMap, *, first: int, start: int, kept: int) -> int:
        """Upper bound of records that a killed run has written, and that were deleted before a take-over found them.

        Behind them the map has later records, or none: then the next run stops at them (`unclean-start`).
        """
        mapped_to = min(kept, found.target_next)
        following = max(first, found.to_source(mapped_to).offset)
        unmapped = (
            following
            - first
            - found.source_records_between(first, following)
            - self._count_excluded(source, found, first, following)
        )
        begin = min(start, mapped_to)
        count = min(mapped_to - begin - found.target_records_between(begin, mapped_to), unmapped)
        written_to = max(found.target_next, self._facts.written_to.get(source, 0))
        copied_to = max(found.source_next, self._facts.copied_to.get(source, 0))
        left = self._facts.source_ends.get(source, copied_to) - max(first, copied_to)
        return max(0, count) + max(0, min(kept - max(start, written_to), left))

    def _target(self, partition: TopicPartition) -> TopicPartition:
        return TopicPartition(self._topic(partition.topic)[0], partition.partition)

    def _why_not(self, topic: str) -> GroupReason | None:
        return self._topic(topic)[1]

    def _topic(self, topic: str) -> tuple[str, GroupReason | None]:
        known = self._topics.get(topic)
        if known is None:
            reason = None
            if not self._topology.topic_filter.should_replicate_topic(topic):
                # MM2 uses only the topic filter; heartbeats topics, which are copied in any case, have no groups.
                reason = GroupReason.TOPIC_NOT_REPLICATED
            else:
                reason = _EXCLUSION_REASONS.get(self._topology.exclusion(topic))
            known = self._topics[topic] = (self._topology.checkpointed_topic(topic), reason)
        return known
