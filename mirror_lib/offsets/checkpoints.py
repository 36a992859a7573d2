"""When a group's committed source offset becomes a checkpoint, and how exact it is (mm2 `MirrorCheckpointTask`).

A translation counts from a sync, so it is exact only at a sync and one offset after it; further on it is too early by
at most the records in between (KAFKA-12468: it must never be too late). Checkpoints of one group and target partition
never go backwards, except when the group itself did so on the source (`MirrorCheckpointTask.checkpointIsMoreRecent`).
The exact offset map gives the next record itself, where it has the group's offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from mirror_lib.offsets.offset_map import Landing, OffsetMap
from mirror_lib.offsets.sync_store import TOO_OLD, OffsetSyncStore
from mirror_lib.offsets.syncs import BEFORE_ALL, SyncPoint
from mirror_lib.topology.names import TopicPartition

_NO_END = 2**63


class CheckpointOffsets(NamedTuple):
    """A group that continues at `upstream_offset` on the source continues at `downstream_offset` on the target."""

    upstream_offset: int
    downstream_offset: int


class Precision(StrEnum):
    """The precision of a translation."""

    #: The next record on the target is the next one that the group would read on the source.
    EXACT = "exact"
    #: The offset is between two syncs: some records would be duplicates on failover.
    BETWEEN_SYNCS = "between-syncs"
    #: The group has read records that are not copied yet: on the target it continues at the current end of the copy.
    BEYOND_COPIED = "beyond-copied"
    #: The offset is older than every known sync: there is no translation.
    BEHIND_OLDEST_SYNC = "behind-oldest-sync"
    #: Nothing is known of the partition: there is no translation.
    NO_SYNC = "no-sync"


class Translation(NamedTuple):
    """A target offset, None without a translation, and its precision."""

    downstream_offset: int | None
    precision: Precision


def translate(
    store: OffsetSyncStore, partition: TopicPartition, upstream_offset: int, *, copied_to: int | None = None
) -> Translation:
    """Translate a group's committed source offset to the target by MM2's rule.

    Args:
        partition: of the source.
        copied_to: the source offset at which the copy continues, if known. After the newest sync there may be offsets
            without records, such as transaction markers: a group there is not ahead of the copy.
    """
    downstream = store.translate(partition, upstream_offset)
    if downstream is None:
        return Translation(None, Precision.NO_SYNC)
    nearest = store.nearest(partition, upstream_offset)
    if downstream == TOO_OLD or nearest is None:
        return Translation(None, Precision.BEHIND_OLDEST_SYNC)
    return Translation(downstream, _precision(store, partition, upstream_offset, nearest.upstream_offset, copied_to))


def _precision(
    store: OffsetSyncStore, partition: TopicPartition, upstream_offset: int, nearest: int, copied_to: int | None
) -> Precision:
    if upstream_offset - nearest <= 1:
        return Precision.EXACT
    newest = store.slots(partition)[0].upstream_offset
    # A sync before all is of no record: nothing is known of what was copied since.
    if nearest < newest or nearest == BEFORE_ALL:
        return Precision.BETWEEN_SYNCS
    # The newest sync belongs to the last copied record.
    return Precision.EXACT if upstream_offset <= (copied_to or 0) else Precision.BEYOND_COPIED


class MapTranslation(NamedTuple):
    """A translation by the exact offset map."""

    #: Where the group continues on the target; None where MM2's rule is better.
    downstream_offset: int | None
    #: Target offset of the next mapped record that the group has not read; None if the map ends before it.
    next_record: int | None
    #: False if another program, such as MM2, has copied the records around the group's offset.
    is_mapped: bool = True


def translate_by_map(
    offset_map: OffsetMap,
    upstream_offset: int,
    by_rule: int | None,
    syncs: Iterable[SyncPoint],
    *,
    begins_target: bool,
) -> MapTranslation:
    """Translate a group's committed source offset by a map that is not empty.

    MM2 may have copied before the map, in a hole of it or after its end; its syncs are there. Its rule is never too
    late, and neither is the end of the map before such records: the greater offset is the better one.

    Args:
        by_rule: the translation by MM2's rule, None without one.
        syncs: of the partition.
        begins_target: nothing was copied to the target before the map.
    """
    first, landing = offset_map.to_target(upstream_offset)
    next_record = None if landing is Landing.BEYOND else first
    if landing is Landing.BEFORE and not begins_target:
        return MapTranslation(None, next_record, is_mapped=False)
    if landing not in (Landing.HOLE, Landing.BEYOND):
        return MapTranslation(first, next_record)
    first = offset_map.resume_at(upstream_offset).offset
    following = _NO_END if next_record is None else next_record
    is_other = any(first <= each.downstream_offset < following for each in syncs if each.upstream_offset != BEFORE_ALL)
    if not is_other or offset_map.to_target(upstream_offset - 1).landing is Landing.EXACT:
        return MapTranslation(first, next_record)
    return MapTranslation(None if by_rule is not None and by_rule > first else first, next_record, is_mapped=False)


def is_more_recent(previous: CheckpointOffsets | None, new: CheckpointOffsets) -> bool:
    """True if a checkpoint must be written after the previous one of its group and target partition."""
    return (
        previous is None
        or new.upstream_offset < previous.upstream_offset
        or new.downstream_offset > previous.downstream_offset
    )


def checkpoint_after(
    previous: CheckpointOffsets | None, upstream_offset: int, downstream_offset: int | None
) -> CheckpointOffsets | None:
    """Return the current checkpoint of a group: a new one, or still the previous one.

    Args:
        upstream_offset: the group's committed offset on the source.
        downstream_offset: its translation, if there is one.

    Returns:
        None if there is none, or if the previous one is after a source offset to which the group has been reset:
        continuing there would skip records. MM2 would still use it.
    """
    if downstream_offset is not None:
        new = CheckpointOffsets(upstream_offset, downstream_offset)
        if is_more_recent(previous, new):
            return new
    if previous is None or previous.upstream_offset > upstream_offset:
        return None
    return previous
