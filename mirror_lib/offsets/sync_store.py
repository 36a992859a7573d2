"""The state of a reader of the offset-syncs topic, and its translation (`OffsetSyncStore` of connect/mirror).

A partition has 64 slots. Slot 0 holds the newest sync, slot 63 the oldest usable one, and the distance between slots
about doubles from each to the next, so translation is precise near the end and coarse far before it (KAFKA-14666).
"""

from __future__ import annotations

from enum import StrEnum

from mirror_lib.offsets.syncs import SyncPoint
from mirror_lib.topology.names import TopicPartition

SLOTS = 64

#: Result for an offset older than every usable sync, as in MM2.
TOO_OLD = -1


class LoadMode(StrEnum):
    """Which syncs are used that were read before `OffsetSyncStore.mark_loaded` (KAFKA-15905)."""

    #: All of them: earlier checkpoints are known, so none can go backwards.
    FULL = "full"
    #: Only the newest of each partition: earlier checkpoints are not known.
    LAST_ONLY = "last-only"


class PartitionSyncs:
    """The slots of one source partition."""

    def __init__(self, first: SyncPoint) -> None:
        self._slots = [first] * SLOTS

    @property
    def slots(self) -> tuple[SyncPoint, ...]:
        """Newest first; neighbours are often equal."""
        return tuple(self._slots)

    def reset(self, sync: SyncPoint) -> None:
        """Forget everything but this sync."""
        self._slots = [sync] * SLOTS

    def add(self, sync: SyncPoint) -> None:
        """Add the next sync of the topic. A lower upstream offset than the newest invalidates the history."""
        if sync.upstream_offset < self._slots[0].upstream_offset:
            self.reset(sync)
            return
        self._slots = _place(sync, self._slots)

    def translate(self, upstream_offset: int) -> int:
        """The target offset at which to continue, never after the true one; TOO_OLD before the oldest sync.

        At most one after the nearest sync: the copy may have dropped records between two syncs.
        """
        sync = self.nearest(upstream_offset)
        return TOO_OLD if sync is None else sync.downstream_offset + (upstream_offset != sync.upstream_offset)

    def nearest(self, upstream_offset: int) -> SyncPoint | None:
        """The newest stored sync at or before this source offset; None before the oldest."""
        return next((sync for sync in self._slots if sync.upstream_offset <= upstream_offset), None)


def _place(sync: SyncPoint, old: list[SyncPoint]) -> list[SyncPoint]:
    """The slots after a sync that is not older than the newest.

    Each slot keeps its sync if that is near enough to the slot before it; otherwise it takes the best of the syncs
    that have lost their own slot. The first slot that keeps its sync ends the shifting.
    """
    slots = old.copy()
    slots[0] = candidate = sync
    displaced = 0
    for current in range(1, SLOTS):
        previous = current - 1
        while True:
            replaced = old[displaced]
            separated = _is_apart(slots[previous], replaced, previous)
            if (
                separated
                and _is_near(slots[previous], replaced, previous, current)
                and (current == SLOTS - 1 or _is_apart(replaced, slots[current + 1], current))
            ):
                candidate = replaced
                usable = True
            else:
                usable = False
            duplicate = displaced < SLOTS - 1 and replaced is old[displaced + 1]
            discard = duplicate or not separated
            if usable or discard:
                displaced += 1
            if not discard or displaced >= current:
                break
        if _is_near(slots[previous], slots[current], previous, current):
            break
        slots[current] = candidate
    return slots


def _is_near(newer: SyncPoint, older: SyncPoint, newer_slot: int, older_slot: int) -> bool:
    """Invariant B: an older sync is at most 2^slot behind, so that precision is bounded."""
    return newer is older or newer.upstream_offset <= older.upstream_offset + 2**older_slot - 2**newer_slot


def _is_apart(newer: SyncPoint, older: SyncPoint, newer_slot: int) -> bool:
    """Invariant C: neighbours keep a minimum distance, so that 64 slots cover a long range."""
    return newer is older or newer.upstream_offset >= older.upstream_offset + 2 ** max(newer_slot - 2, 0)


class OffsetSyncStore:
    """The slots of every partition, filled from the offset-syncs topic in its order."""

    def __init__(self, mode: LoadMode = LoadMode.FULL) -> None:
        self._mode = mode
        self._loaded = False
        self._partitions: dict[TopicPartition, PartitionSyncs] = {}

    def add(self, partition: TopicPartition, sync: SyncPoint) -> None:
        """Add one record of the topic; `partition` is the source's."""
        known = self._partitions.get(partition)
        if known is None:
            self._partitions[partition] = PartitionSyncs(sync)
        elif not self._loaded and self._mode is LoadMode.LAST_ONLY:
            known.reset(sync)
        else:
            known.add(sync)

    def mark_loaded(self) -> None:
        """Mark the topic as read up to its end at the start; before that, nothing is translated."""
        self._loaded = True

    def translate(self, partition: TopicPartition, upstream_offset: int) -> int | None:
        """The target offset for a group's committed source offset.

        Returns:
            An offset that is not after the true one; TOO_OLD before every usable sync; None if the partition has no
            sync, or the topic is not loaded yet.
        """
        known = self._partitions.get(partition)
        return known.translate(upstream_offset) if self._loaded and known else None

    def nearest(self, partition: TopicPartition, upstream_offset: int) -> SyncPoint | None:
        """The sync that `translate` counts from; None if it returns TOO_OLD or None."""
        known = self._partitions.get(partition)
        return known.nearest(upstream_offset) if self._loaded and known else None

    def slots(self, partition: TopicPartition) -> tuple[SyncPoint, ...]:
        """The stored syncs of a partition, newest first; empty if there are none."""
        known = self._partitions.get(partition)
        return known.slots if known else ()
