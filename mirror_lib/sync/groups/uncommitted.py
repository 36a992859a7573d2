"""Partitions in which a group has no committed offset, of topics in which it has one. Pure.

A consumer of the group reads all partitions of the target topic. Without an offset it starts where its
`auto.offset.reset` says: `latest` skips what was written before it joins. Many clients commit only what they have read
(librdkafka, Sarama, KafkaJS), so an empty or a quiet partition has no offset.

Only the target's log start offset is ever committed here: no record can be before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mirror_lib.counted import counted
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.sync.groups.model import GroupRow
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicSize:
    """Numbers of partitions of a topic of the flow."""

    source: int
    #: 0 if it does not exist on the target.
    target: int

    @property
    def read(self) -> int:
        """The number of partitions that a group may read: those of the source that the target lacks will be added."""
        return max(self.source, self.target)


@dataclass(frozen=True, slots=True)
class LogRange:
    """The ends of both logs of a partition; None if unknown, or if there is no such log."""

    source_start: int | None = None
    source_end: int | None = None
    target_start: int | None = None
    target_end: int | None = None
    #: The source partition exists.
    on_source: bool = True

    def holds_nothing(self, found: OffsetMap | None) -> bool:
        """True if no record of the source can be read on either side."""
        return self.source_end == 0 or (self.unread(found) == 0 and self.target_start == self.target_end)

    def unread(self, found: OffsetMap | None) -> int | None:
        """Upper bound of the source's records; None if unknown.

        Args:
            found: the partition's offset map; None if it is not read.
        """
        if self.source_start is None or self.source_end is None:
            return None
        count = self.source_end - self.source_start
        if found is None or found.empty:
            return count
        # The map has neither markers nor records that compaction has removed.
        first, following = max(self.source_start, found.source_first), min(self.source_end, found.source_next)
        if first >= following:
            return count
        return count - (following - first) + found.source_records_between(first, following)


@dataclass(frozen=True, slots=True)
class TargetOffset:
    """What is known of the group's committed offset in the target partition."""

    #: The target's groups were read: without an offset here there is none.
    known: bool = False
    committed: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionSizes:
    """The partitions of the groups' topics, by source topic."""

    sizes: Mapping[str, TopicSize] = field(default_factory=dict)

    def missing(self, committed: Collection[TopicPartition], excluded: Container[str] = ()) -> Iterator[TopicPartition]:
        """Partitions of the topics of these partitions that are not among them, also those that only the target has.

        Args:
            excluded: topics without such partitions.
        """
        for topic, count in Counter(each.topic for each in committed).items():
            size = None if topic in excluded else self.sizes.get(topic)
            if size is not None and count < size.read:
                every = (TopicPartition(topic, number) for number in range(size.read))
                yield from (each for each in every if each not in committed)

    def on_source(self, partition: TopicPartition) -> bool:
        """True if the source topic has the partition."""
        size = self.sizes.get(partition.topic)
        return size is None or partition.partition < size.source


def judge(
    row: GroupRow, logs: LogRange, on_target: TargetOffset, found: OffsetMap | None, *, from_start: bool
) -> GroupRow | None:
    """Return the row of a partition without a committed offset on the source; None if there is nothing to say.

    Args:
        row: without an offset on the source.
        on_target: of a group that may be committed.
        found: the partition's offset map; None if it is not read.
        from_start: commit the log start even if there are records.
    """
    begin, end, committed = logs.target_start, logs.target_end, on_target.committed
    row = replace(row, target_committed=committed)
    if committed is not None and end is not None and committed > end:
        what = f"its offset on the target is {committed}, but the log end offset of {row.target} is {end}"
        return replace(row, reason=GroupReason.BEYOND_TARGET_END, what=what)
    if committed is not None and (begin is None or committed >= begin):
        row = replace(row, exact=committed, duplicates=0, skipped=0)
        if not logs.on_source or logs.unread(found) == 0:
            return row
        what = f"it has no offset on the source; on the target it continues at its offset there, {committed}"
        return replace(row, reason=GroupReason.NO_COMMITTED_OFFSET, what=what)
    # A partition that only the target has holds what its producers wrote: all of that is new to the group.
    if not logs.on_source or from_start or logs.holds_nothing(found):
        if begin is None:
            return replace(row, reason=GroupReason.NO_OFFSET_SYNC_YET) if logs.on_source else None
        return replace(row, exact=begin, commit=on_target.known, duplicates=0, skipped=0) if on_target.known else None
    return replace(row, reason=GroupReason.PARTITION_UNCOMMITTED, what=_by_policy(logs, found, committed))


def _by_policy(logs: LogRange, found: OffsetMap | None, deleted: int | None) -> str:
    """What the group's consumers do.

    Args:
        deleted: the group's offset on the target, whose record retention has deleted.
    """
    unread = logs.unread(found)
    if not unread and logs.target_start is not None and logs.target_end is not None:
        # Retention has deleted them on the source alone.
        unread = logs.target_end - logs.target_start
    several = "an unknown number of records" if unread is None else f"up to {counted(unread, 'record')}"
    why = "it has no offset in the partition"
    if deleted is not None:
        why = f"its offset on the target, {deleted}, is before the log start offset {logs.target_start}"
    return f"{why}: with auto.offset.reset=latest a consumer skips {several}, with earliest it reads them"
