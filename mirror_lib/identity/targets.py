"""Checks if a target partition still holds the records of a position: pure rules, for copies and consumer groups.

A position says that records were copied to a topic with an id, up to an offset. A topic that was deleted, recreated,
truncated or replaced by one with another name does not hold them, even if the offsets fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mirror_lib.cluster.topics.position_format import ClusterPair, Position, PositionState
from mirror_lib.errors import (
    ReplicationError,
    SourceClusterChangedError,
    TargetClusterChangedError,
    TargetDeletedError,
    TargetRecreatedError,
    TargetRenamedError,
    TargetTruncatedError,
)
from mirror_lib.records.last_records import LastRecord


class TargetPartition(NamedTuple):
    """The current state of a target partition."""

    topic: str
    #: None if the topic does not exist, and before Kafka 2.8.
    topic_id: str | None
    #: Log end offset; None if the partition does not exist.
    log_end: int | None


class CopiedTo(NamedTuple):
    """Where records were copied to, from the positions of all source partitions that share a target partition."""

    #: None if it is not known: MirrorMaker 2 and version 0.1.0 stored no name.
    topic: str | None
    topic_id: str | None
    clusters: ClusterPair | None
    #: Log end offset of the target partition after the last copied record; None if MirrorMaker 2 copied last.
    log_end: int | None
    #: The log may end earlier: the last transaction is undecided until the partition is taken over.
    undecided: bool = False


def copied_to(own: Position, sharing: Iterable[Position] = ()) -> CopiedTo | None:
    """The target of a position's records; None if nothing was copied.

    Args:
        own: the position of the source partition.
        sharing: positions of all source partitions with the same target partition; several in a merge.
    """
    log_end, undecided = own.target_offset, own.in_transactions and own.state is PositionState.OPEN
    for each in sharing:
        if each.target_offset is not None:
            log_end = max(log_end or 0, each.target_offset)
        undecided = undecided or (each.in_transactions and each.state is PositionState.OPEN)
    if log_end == 0 or (log_end is None and own.offset < 0):
        return None
    return CopiedTo(own.target_topic, own.target_topic_id, own.clusters, log_end, undecided)


def is_other_topic(then: str | None, now: str | None) -> bool:
    """True if two topic ids are known and differ: the topic was deleted and created again in between."""
    return bool(then) and bool(now) and then != now


def source_cluster_change(then: ClusterPair | None, now: ClusterPair | None) -> ReplicationError | None:
    """The error of a position from another source cluster than the alias names now.

    The caller sets its place: of a hundred thousand partitions most have no error.
    """
    if then is None or now is None or then.source == now.source:
        return None
    return SourceClusterChangedError(
        f"records were copied from cluster {then.source}, but the source is now cluster {now.source}."
    )


def target_cluster_change(then: ClusterPair | None, now: ClusterPair | None) -> ReplicationError | None:
    """As `source_cluster_change`, for the target cluster."""
    if then is None or now is None or then.target == now.target:
        return None
    return TargetClusterChangedError(
        f"records were copied to cluster {then.target}, but the target is now cluster {now.target}."
    )


def target_change(then: CopiedTo | None, now: TargetPartition) -> ReplicationError | None:
    """The error of a target partition that no longer holds the copied records; None if it holds them.

    The caller sets its place.

    Args:
        then: from the positions.
        now: the partition by the flow's present rules.
    """
    if then is None:
        return None
    until = "" if then.log_end is None else f", up to offset {then.log_end}"
    if then.topic is not None and then.topic != now.topic:
        return TargetRenamedError(
            f"records were copied to topic {then.topic}{until}, but by the flow's rules the target is now {now.topic}.",
        )
    if now.log_end is None and then.topic is None:
        return TargetDeletedError(
            f"{now.topic} does not exist on the target, but records were copied{until}. The position (of MirrorMaker "
            "2, or of version 0.1.0) does not contain the topic name: either this topic was deleted, or the flow's "
            "rules selected another one then.",
        )
    if now.log_end is None:
        return TargetDeletedError(f"{now.topic} was deleted on the target: it contained copied records{until}.")
    if is_other_topic(then.topic_id, now.topic_id):
        return TargetRecreatedError(
            f"{now.topic} was deleted on the target and created again: the topic with copied records had id "
            f"{then.topic_id}{until}; the present topic has id {now.topic_id}, log end offset {now.log_end}.",
        )
    # MirrorMaker 2 stores no target offset, but a log that has never had a record holds no copy.
    if not then.undecided and now.log_end < (1 if then.log_end is None else then.log_end):
        return TargetTruncatedError(
            f"log end offset of {now.topic} is {now.log_end} on the target, but records were copied to it{until}.",
        )
    return None


def other_record(known: LastRecord, then: CopiedTo, now: TargetPartition) -> ReplicationError:
    """The error of a target log with another record at the offset of a copied one.

    The caller sets its place.
    """
    return TargetTruncatedError(
        f"the record of {now.topic} at target offset {known.offset} is not the record that was copied there: the log "
        "was truncated, or restored from a snapshot, and other records were written to it since. Records were copied "
        f"up to offset {then.log_end}, the log end offset is {now.log_end}; the first differing offset is unknown.",
    )


def position_change(
    own: Position, now: TargetPartition, clusters: ClusterPair | None, sharing: Iterable[Position] = ()
) -> ReplicationError | None:
    """The error of a position from other clusters, or with a target that does not hold its records.

    The caller sets its place.

    Args:
        own: the position of the source partition.
        now: the target partition by the flow's present rules.
        clusters: the clusters of the flow's aliases.
        sharing: positions of all source partitions with the same target partition.
    """
    return (
        source_cluster_change(own.clusters, clusters)
        or target_cluster_change(own.clusters, clusters)
        or target_change(copied_to(own, sharing), now)
    )
