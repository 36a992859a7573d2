"""What a source has lost since its records were copied last: pure rules over the facts of one partition.

Kafka keeps no promise across retention, unclean leader elections and topics that are created again; a replicator that
goes on regardless leaves a hole, or puts another history behind the old one, without anybody noticing. So each rule
ends in an error that a person answers with one of the decisions of `relay.gap_decisions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirror_lib.errors import (
    MirrorError,
    ReplicationError,
    RetentionGapError,
    SourceRecreatedError,
    SourceTruncatedError,
    Where,
)
from mirror_lib.relay.model import PartitionFacts, SourceLoss
from mirror_lib.topology.names import FlowId

#: What a leader answers when it has never heard of an epoch (Java `OffsetsForLeaderEpochResponse`).
UNDEFINED_OFFSET = -1

#: `MirrorError.reason` of what a decision sets the position for.
LOSS_REASONS = frozenset({RetentionGapError.reason, SourceTruncatedError.reason, SourceRecreatedError.reason})


@dataclass(frozen=True, slots=True)
class FoundLoss:
    """A loss and the error that tells it."""

    error: MirrorError
    loss: SourceLoss


def find_loss(flow: FlowId, fact: PartitionFacts) -> FoundLoss | None:
    """The first rule that a partition breaks, None when the source still has what follows the position.

    A position without topic id or leader epoch (MM2 stores neither, old clusters know neither) is judged by offsets
    alone.
    """
    if fact.position is None:
        return None
    if fact.position_topic_id not in (None, "", fact.topic_id):
        return _recreated(flow, fact, fact.position)
    if fact.position < fact.log_start:
        return _retention_gap(flow, fact, fact.position)
    return _truncated(flow, fact, fact.position)


def _recreated(flow: FlowId, fact: PartitionFacts, position: int) -> FoundLoss:
    held = f"offsets {fact.log_start} to {fact.log_end - 1}" if fact.log_end > fact.log_start else "nothing yet"
    return _found(
        flow,
        fact,
        SourceRecreatedError,
        f"the source topic was deleted and created again: it had id {fact.position_topic_id} when it was copied last, "
        f"and has {fact.topic_id or 'none'} now. What the old topic got from offset {position} on is lost; the new one "
        f"holds {held}.",
        # How far the old topic went is known to nobody any more.
        SourceLoss(position, position, fact.topic_id),
    )


def _retention_gap(flow: FlowId, fact: PartitionFacts, position: int) -> FoundLoss:
    return _found(
        flow,
        fact,
        RetentionGapError,
        f"records {position} to {fact.log_start - 1} were deleted at the source before they were copied "
        f"(its log starts at {fact.log_start} now).",
        SourceLoss(position, fact.log_start, fact.topic_id),
        cure="Raise the source topic's retention or run more often. ",
    )


def _truncated(flow: FlowId, fact: PartitionFacts, position: int) -> FoundLoss | None:
    """KIP-320: an epoch that ends before what was copied of it has lost its end (Java `SubscriptionState`)."""
    epoch_end = fact.leader_epoch_end
    if epoch_end is not None and UNDEFINED_OFFSET < epoch_end < position:
        first = max(epoch_end, fact.log_start)
        what = (
            f"the source lost records {first} to {position - 1} after they were copied: the leader epoch "
            f"{fact.position_leader_epoch} of the last of them ends at {epoch_end} now. What stands there now, or "
            "will, is another history."
        )
    elif position > fact.log_end:
        first = fact.log_end
        what = (
            f"the source ends at {fact.log_end}, before the position: records {first} to {position - 1} were lost "
            "there after they were copied."
        )
    elif epoch_end == UNDEFINED_OFFSET:
        first = fact.log_start
        what = (
            f"the source does not know the leader epoch {fact.position_leader_epoch} of the last copied record: its "
            "log is another one than the one that was copied."
        )
    elif fact.truncated_to is not None:
        first = fact.truncated_to
        what = (
            f"the source once ended at {fact.truncated_to}, before the position, and has grown again since: "
            f"records {first} to {position - 1} are others now than the ones that were copied."
        )
    else:
        return None
    # A source that was seen shorter than it is now has only what came after that from its new history.
    first = min(first, position if fact.truncated_to is None else fact.truncated_to)
    return _found(
        flow,
        fact,
        SourceTruncatedError,
        what,
        SourceLoss(min(first, position), position, fact.topic_id),
        cure="Find out what happened to the source (unclean leader election, a restored disk?). ",
    )


def _found(
    flow: FlowId, fact: PartitionFacts, kind: type[ReplicationError], what: str, loss: SourceLoss, *, cure: str = ""
) -> FoundLoss:
    topic, partition = fact.source
    where = Where(flow=str(flow), topic=topic, partition=partition, offset=fact.position)
    chosen = f"--flow '{flow}' --topic {topic} --partition {partition}"
    action = (
        f"{cure}Then decide: `mirror gaps accept {chosen}` goes on behind the loss, `mirror gaps recopy ...` copies "
        "the source again from its start, `mirror gaps stop ...` replicates the partition no more."
    )
    return FoundLoss(kind(what, where=where, action=action), loss)
