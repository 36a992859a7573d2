"""The definition of "in sync" for a consumer group; plan, apply, status, page, metrics and gates all use it.

A group is in sync on a partition if the next record that it reads on the source is the record at its offset on the
target, or if both offsets are log end offsets. So nothing is due, there are no duplicates and no skipped records, and
nothing else keeps the group from continuing there. Pure.
"""

from __future__ import annotations

from enum import StrEnum


class GroupReason(StrEnum):
    """Why a group is not in sync."""

    #: The plan contains a change for it that is not done yet.
    PENDING = "pending"
    #: The flow does not select the topic.
    TOPIC_NOT_REPLICATED = "topic-not-replicated"
    #: The flow selects the topic, but this run is limited to others.
    TOPIC_NOT_REQUESTED = "topic-not-requested"
    #: A cutover has moved the topic's writers to the target: groups there continue on their own.
    TOPIC_HANDED_OVER = "topic-handed-over"
    #: The group reads several source partitions that share a target partition: one offset cannot represent both.
    MERGED_TARGET = "merged-target"
    #: There is a checkpoint, but the group no longer has a committed offset for the partition on the source.
    NO_COMMITTED_OFFSET = "no-committed-offset"
    #: The group has an offset in other partitions of the topic, and none here: `auto.offset.reset` of its consumers
    #: decides which of the present records they read.
    PARTITION_UNCOMMITTED = "partition-uncommitted"
    #: No record of the partition was copied yet.
    NO_OFFSET_SYNC_YET = "no-offset-sync-yet"
    #: Transforms route the topic's records to other topics or partitions: offsets have no counterpart there.
    ROUTED_BY_TRANSFORM = "routed-by-transform"
    #: The group's offset is before every known sync: it was committed before the copy began.
    BEHIND_OLDEST_SYNC = "behind-oldest-sync"
    #: The translated offset is slightly too early: some records would be duplicates on failover.
    BETWEEN_SYNCS = "between-syncs"
    #: Records that the group has not read are missing on the target, where it would skip them.
    SKIPS_RECORDS = "skips-records"
    #: The group has read records that are not copied yet; it continues at the end of the copy.
    UPSTREAM_BEYOND_COPIED = "upstream-beyond-copied"
    #: The group's offset is after the source's log end: no record is copied for it, and only a reset changes it.
    BEYOND_SOURCE_END = "beyond-source-end"
    #: The group has members on the target; only they may commit.
    GROUP_ACTIVE_ON_TARGET = "group-active-on-target"
    #: On the target, a group with this name exists that is not a consumer group.
    OTHER_GROUP_ON_TARGET = "other-group-on-target"
    #: The group's committed offset on the target is greater; it is never set back.
    TARGET_AHEAD = "target-ahead"
    #: `groups` or `groups.exclude` of the flow excludes the group.
    GROUP_NOT_REPLICATED = "group-not-replicated"
    #: The source has no group with this name, or the group has no committed offset on topics of the flow.
    GROUP_NOT_FOUND = "group-not-found"
    #: A share or streams group: only consumer groups are translated, as in MM2.
    GROUP_KIND_NOT_SUPPORTED = "group-kind-not-supported"
    #: A cluster does not return the group's offsets, for example because permission is missing.
    UNREADABLE = "unreadable"
    #: The target rejected the commit.
    REFUSED = "refused"
    #: The ledger lacks the history of the copy (`identity.histories`): what the target skipped is unknown.
    LEDGER_BEHIND = "ledger-behind"
    #: The target partition no longer holds the copied records (`identity.targets`).
    TARGET_CHANGED = "target-changed"
    #: The source topic was deleted and created again since it was copied: its offsets are not those of the copy.
    SOURCE_CHANGED = "source-changed"
    #: The offset is after the target's log end offset; a consumer that continues there is reset by its own policy.
    BEYOND_TARGET_END = "beyond-target-end"


#: Counted together with the reasons.
IN_SYNC = "in-sync"

#: The flow or this run does not replicate the topic: such a position counts neither as in sync nor as not in sync.
NOT_THIS_FLOWS = frozenset(
    {GroupReason.TOPIC_NOT_REPLICATED, GroupReason.TOPIC_NOT_REQUESTED, GroupReason.TOPIC_HANDED_OVER}
)


#: Reasons that remain after a checkpoint is written: they are reported even while one is due.
_STAYING = frozenset(
    {
        GroupReason.MERGED_TARGET,
        GroupReason.ROUTED_BY_TRANSFORM,
        GroupReason.TARGET_AHEAD,
        GroupReason.GROUP_ACTIVE_ON_TARGET,
        GroupReason.OTHER_GROUP_ON_TARGET,
        GroupReason.UNREADABLE,
        GroupReason.REFUSED,
        GroupReason.LEDGER_BEHIND,
        GroupReason.TARGET_CHANGED,
        GroupReason.SOURCE_CHANGED,
        GroupReason.BEYOND_SOURCE_END,
        GroupReason.BEYOND_TARGET_END,
    }
)


def why_not_in_sync(
    reason: GroupReason | None, *, due: bool, duplicates: int | None, skipped: int | None
) -> GroupReason | None:
    """Return why a group is not in sync on a partition, None when it is.

    Args:
        reason: what keeps the group from continuing exactly, whether or not the plan is applied.
        due: whether its checkpoint or its offset must still be written.
        duplicates: duplicates on failover (records); None if unknown.
        skipped: records that it would never read; None if unknown.
    """
    if due and reason not in _STAYING:
        return GroupReason.PENDING
    if skipped and reason in (None, GroupReason.BETWEEN_SYNCS):
        return GroupReason.SKIPS_RECORDS
    if duplicates and reason is None:
        return GroupReason.BETWEEN_SYNCS
    return reason


def is_behind(reason: str | None) -> bool:
    """True if a position with this reason is not in sync; `ledger.queries.group_columns` has the same rule in SQL."""
    return reason is not None and reason != IN_SYNC and reason not in NOT_THIS_FLOWS
