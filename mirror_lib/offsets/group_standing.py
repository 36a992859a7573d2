"""What "in sync" means for a consumer group: the one definition that plan, apply, status, page, metrics and gates ask.

A group is in sync on a partition if the next record that it reads on the source is the record at its offset on the
target, or if both offsets are the ends of their logs. So nothing is due, no record is read again, none is skipped, and
nothing else keeps the group from continuing there. Pure.
"""

from __future__ import annotations

from enum import StrEnum


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
    #: Transforms send the topic's records to other topics or partitions: no offset there stands for one here.
    ROUTED_BY_TRANSFORM = "routed-by-transform"
    #: The group is behind everything that is known of the copy: it stood still since before the copy began.
    BEHIND_OLDEST_SYNC = "behind-oldest-sync"
    #: The group goes on a little too early, and reads some records again.
    BETWEEN_SYNCS = "between-syncs"
    #: Records that the group has not read are not on the target: it skips them there.
    SKIPS_RECORDS = "skips-records"
    #: The group has read records that are not copied yet; it goes on at the end of the copy.
    UPSTREAM_BEYOND_COPIED = "upstream-beyond-copied"
    #: On the target the group has members; they alone may commit.
    GROUP_ACTIVE_ON_TARGET = "group-active-on-target"
    #: A group of this name exists on the target that is none of consumers.
    OTHER_GROUP_ON_TARGET = "other-group-on-target"
    #: What the group has committed on the target is further on; it is never set back.
    TARGET_AHEAD = "target-ahead"
    #: `groups` or `groups.exclude` of the flow leaves the group out.
    GROUP_NOT_REPLICATED = "group-not-replicated"
    #: The source has no such group, or the group has committed nothing on topics of the flow.
    GROUP_NOT_FOUND = "group-not-found"
    #: A share or streams group: only groups of consumers are translated, as by MM2.
    GROUP_KIND_NOT_SUPPORTED = "group-kind-not-supported"
    #: A cluster does not tell the group's offsets, for lack of permission for instance.
    UNREADABLE = "unreadable"
    #: The target did not take the commit.
    REFUSED = "refused"
    #: The target partition does not hold any more what was copied to it (`sync.target_changes`).
    TARGET_CHANGED = "target-changed"
    #: The offset lies behind the end of the target's log; a group that is committed there begins anew by its own rules.
    BEYOND_TARGET_END = "beyond-target-end"


#: Stands next to the reasons where they are counted.
IN_SYNC = "in-sync"

#: The topic is not this flow's business, or not now: such a position is neither in sync nor behind.
NOT_THIS_FLOWS = frozenset(
    {GroupReason.TOPIC_NOT_REPLICATED, GroupReason.TOPIC_NOT_REQUESTED, GroupReason.TOPIC_HANDED_OVER}
)


#: What stays so when a checkpoint is written: it is told also while one is due.
_STAYING = frozenset(
    {
        GroupReason.MERGED_TARGET,
        GroupReason.ROUTED_BY_TRANSFORM,
        GroupReason.TARGET_AHEAD,
        GroupReason.GROUP_ACTIVE_ON_TARGET,
        GroupReason.OTHER_GROUP_ON_TARGET,
        GroupReason.UNREADABLE,
        GroupReason.REFUSED,
        GroupReason.TARGET_CHANGED,
        GroupReason.BEYOND_TARGET_END,
    }
)


def why_not_in_sync(
    reason: GroupReason | None, *, due: bool, read_again: int | None, skipped: int | None
) -> GroupReason | None:
    """Return why a group is not in sync on a partition, None when it is.

    Args:
        reason: what keeps the group from continuing exactly, whatever is done for it.
        due: whether its checkpoint or its offset is still to be written.
        read_again: records that it would read twice; None where nothing tells.
        skipped: records that it would never read; None where nothing tells.
    """
    if due and reason not in _STAYING:
        return GroupReason.PENDING
    if skipped and reason in (None, GroupReason.BETWEEN_SYNCS):
        return GroupReason.SKIPS_RECORDS
    if read_again and reason is None:
        return GroupReason.BETWEEN_SYNCS
    return reason


def is_behind(reason: str | None) -> bool:
    """Whether a position with this reason counts as not in sync; `ledger.group_columns` says the same in SQL."""
    return reason is not None and reason != IN_SYNC and reason not in NOT_THIS_FLOWS
