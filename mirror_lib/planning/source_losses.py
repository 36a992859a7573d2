"""Losses of source or target since the last copy: pure rules over the facts of one partition.

Kafka does not keep records across retention, unclean leader elections and topics that are created again; a replicator
that continues regardless leaves a gap, or appends another history to the old one, unnoticed. So each rule raises an
error that an operator resolves with one of the decisions of `copy.gaps.resolutions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mirror_lib.errors import (
    MirrorError,
    ReplicationError,
    RetentionGapError,
    SourceClusterChangedError,
    SourceRecreatedError,
    SourceTruncatedError,
    TargetClusterChangedError,
    TargetDeletedError,
    TargetRecreatedError,
    TargetRenamedError,
    TargetTruncatedError,
    Where,
)
from mirror_lib.identity.sources import CopiedFrom, SourceLog, Truncation, find_truncation
from mirror_lib.identity.targets import other_record, source_cluster_change, target_change, target_cluster_change
from mirror_lib.planning.model import PartitionFacts, SourceLoss
from mirror_lib.topology.names import FlowId


@dataclass(frozen=True, slots=True)
class FoundLoss:
    """A loss and its error."""

    error: MirrorError
    loss: SourceLoss


def find_loss(flow: FlowId, fact: PartitionFacts) -> FoundLoss | None:
    """The first rule that a partition breaks, None if the source still has the records after the position.

    A position without topic id or leader epoch (MM2 stores neither, old clusters have neither) is checked by offsets
    only.
    """
    if fact.position is None:
        return None
    changed = source_cluster_change(fact.copied_to.clusters if fact.copied_to else None, fact.clusters)
    if changed is not None:
        # Topic ids and leader epochs of another cluster mean nothing for this one.
        return _decidable(flow, fact, changed, SourceLoss(fact.position, fact.position, fact.topic_id))
    if fact.position_topic_id not in (None, "", fact.topic_id):
        return _recreated_loss(flow, fact, fact.position)
    if fact.position < fact.log_start:
        return _retention_gap(flow, fact, fact.position)
    return _truncated_loss(flow, fact, fact.position)


def find_target_change(flow: FlowId, fact: PartitionFacts) -> FoundLoss | None:
    """Why the target no longer has what was copied to it, None if it has. Also for idle partitions."""
    if fact.position is None or fact.target_now is None or fact.copied_to is None:
        return None
    found = target_cluster_change(fact.copied_to.clusters, fact.clusters)
    found = found or target_change(fact.copied_to, fact.target_now)
    if fact.target_record_same is False and fact.target_record is not None:
        found = found or other_record(fact.target_record, fact.copied_to, fact.target_now)
    if found is None:
        return None
    # The source has lost nothing: the missing records on the target are not a range of source offsets.
    return _decidable(flow, fact, found, SourceLoss(fact.position, fact.position, fact.topic_id))


def _decidable(flow: FlowId, fact: PartitionFacts, error: ReplicationError, loss: SourceLoss) -> FoundLoss:
    error.where = Where(flow=str(flow), topic=fact.source.topic, partition=fact.source.partition, offset=fact.position)
    error.action = _DECISIONS[type(error)] + _decide_by(flow, fact)
    return FoundLoss(error, loss)


#: Of Kafka Streams' internal topics (`InternalTopologyBuilder`).
_REPARTITION = "-repartition"
_OF_STREAMS = (
    "Kafka Streams deletes the records of a repartition topic once it has read them (DeleteRecords), so every run "
    "finds such a gap; an application on the target writes its own. Add `.*-repartition` to topics.exclude, with the "
    "default exclusions. "
)
#: First part of the action, by error.
_DECISIONS: Mapping[type[ReplicationError], str] = {
    SourceClusterChangedError: "If the alias or bootstrap.servers is wrong, correct it. ",
    TargetClusterChangedError: "If the alias or bootstrap.servers is wrong, correct it. ",
    TargetDeletedError: "Find out who deleted it. ",
    TargetRecreatedError: "Find out who deleted it. ",
    TargetRenamedError: "If the rename rules or the replication policy were changed by mistake, restore them. ",
    TargetTruncatedError: "Find out why the target lost records (DeleteRecords, a restored disk, unclean leader "
    "election?). ",
}


def _decide_by(flow: FlowId, fact: PartitionFacts) -> str:
    chosen = _place(flow, fact).selected
    return (
        f"Then decide: `mirror gaps recopy {chosen}` copies all remaining records of the source to the target again, "
        f"`mirror gaps accept {chosen}` continues with the next record, `mirror gaps stop ...` stops replicating the "
        "partition."
    )


def _recreated_loss(flow: FlowId, fact: PartitionFacts, position: int) -> FoundLoss:
    held = f"offsets {fact.log_start} to {fact.log_end - 1}" if fact.log_end > fact.log_start else "no records yet"
    return _loss(
        flow,
        fact,
        SourceRecreatedError,
        f"the source topic was deleted and created again: its topic id was {fact.position_topic_id} at the last copy "
        f"and is now {fact.topic_id or 'none'}. Records of the old topic from offset {position} are lost; the new "
        f"topic has {held}.",
        # The end of the old topic is unknown.
        SourceLoss(position, position, fact.topic_id),
    )


def _retention_gap(flow: FlowId, fact: PartitionFacts, position: int) -> FoundLoss:
    return _loss(
        flow,
        fact,
        RetentionGapError,
        f"records {position} to {fact.log_start - 1} were deleted at the source before they were copied (its log "
        f"start offset is now {fact.log_start}).",
        SourceLoss(position, fact.log_start, fact.topic_id),
        cure=_OF_STREAMS
        if fact.source.topic.endswith(_REPARTITION)
        else "Raise the source topic's retention, or run more often; a consumer may also delete what it has read. ",
    )


def _truncated_loss(flow: FlowId, fact: PartitionFacts, position: int) -> FoundLoss | None:
    found = find_truncation(
        CopiedFrom(position, fact.position_leader_epoch, fact.last_record),
        SourceLog(fact.log_start, fact.log_end, fact.leader_epoch_end, fact.last_record_same),
    )
    if found is None and fact.truncated_to is not None:
        found = Truncation(
            fact.truncated_to,
            f"the source log once ended at offset {fact.truncated_to}, before the position, and has grown since: "
            f"records {fact.truncated_to} to {position - 1} are not the records that were copied.",
        )
    if found is None:
        return None
    cure = "Find out what happened to the source (unclean leader election, a restored disk?). "
    what, same_to = found.what, fact.same_to
    if same_to is not None and same_to != found.first:
        what += f" Only the records before offset {same_to} are known to be those that were copied."
        found = found._replace(first=same_to, restored=same_to <= fact.log_start)
    if found.restored:
        cure += (
            f"If the end of the snapshot is known, {_place(flow, fact).position_set()} copies from there without "
            "duplicates. "
        )
    # A source that was once found truncated has a new history only from that offset.
    first = min(found.first, position if fact.truncated_to is None else fact.truncated_to)
    loss = SourceLoss(min(first, position), position, fact.topic_id)
    return _loss(flow, fact, SourceTruncatedError, what, loss, cure=cure)


def _loss(
    flow: FlowId, fact: PartitionFacts, kind: type[ReplicationError], what: str, loss: SourceLoss, *, cure: str = ""
) -> FoundLoss:
    where = _place(flow, fact)
    action = (
        f"{cure}Then decide: `mirror gaps accept {where.selected}` skips the lost records, `mirror gaps recopy ...` "
        "copies the source again from its log start offset, `mirror gaps stop ...` stops replicating the partition."
    )
    return FoundLoss(kind(what, where=where, action=action), loss)


def _place(flow: FlowId, fact: PartitionFacts) -> Where:
    return Where(flow=str(flow), topic=fact.source.topic, partition=fact.source.partition, offset=fact.position)
