"""Gates about partitions in which a moving group has no offset, and about those that only the target has. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_lib.counted import counted
from mirror_lib.features.cutover.gates import begin_anew, first_places
from mirror_lib.features.cutover.model import Gate
from mirror_lib.features.cutover.scope import ScopeTopic
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.sync.groups.model import GroupRow
from mirror_lib.sync.groups.remarks import more_partitions
from mirror_lib.topology.java_regex import compile_list


def every_partition_has_an_offset(rows: Sequence[GroupRow], may_reset: Sequence[str]) -> Gate:
    """Gate: each moving group has an offset in each partition with records that it will read on the target.

    Args:
        may_reset: Java regexes for whole names of groups whose `auto.offset.reset` may decide.
    """
    allowed = compile_list(tuple(may_reset)) if may_reset else None
    found = [row for row in rows if row.reason is GroupReason.PARTITION_UNCOMMITTED]
    left = [row for row in found if allowed is None or not allowed.fullmatch(row.group)]
    what = "the groups have offsets in all partitions that they will read."
    if found:
        named = left or found
        places = first_places(f"{row.group} on {row.source}: {row.what}" for row in named)
        accepted = "" if left else ", accepted by may_reset"
        what = f"{counted(len(named), 'partition')} without an offset of its group{accepted}: {places}."
    return Gate(
        "uncommitted partitions",
        not left,
        what,
        "Let the groups read and commit there, or commit for them while they have no members "
        "(kafka-consumer-groups.sh --reset-offsets), or set mirror.group.uncommitted=earliest, so that they read all "
        f"records there, or {begin_anew('`--may-reset` for groups whose auto.offset.reset is right')}.",
    )


def partition_counts(topics: Sequence[ScopeTopic]) -> Gate:
    """Gate: what more partitions on the target do to keys. Only informs: no later step changes it."""
    grown = [(each.source, each.partitions, each.target_partitions) for each in topics]
    said = list(more_partitions([each for each in grown if each[2] > each[1]]))
    return Gate("partition counts", True, said[0] if said else "the topics have as many partitions on both sides.")
