"""The decisions about a gap, and the position that a decision sets: pure rules.

A decision about a loss is a new position at the end of the target, whose records never change. It is `closed`, so that
the next run is an ordinary one; after an interrupted run it stays `open`, with that run's writer, so that the next run
fences it. It is a claim with its own number, which no fenced run can undo.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mirror_lib.cluster.topics.position_format import Position, PositionState, has_same_offsets, next_copy
from mirror_lib.counted import counted
from mirror_lib.errors import (
    LOSS_REASONS,
    TARGET_CHANGE_REASONS,
    DeletionsPossiblyLostError,
    DirtyStartError,
    LedgerBehindError,
    MirrorError,
    ReplicationError,
    RetentionGapError,
    SourceClusterChangedError,
    SourceTruncatedError,
    TargetTruncatedError,
    Where,
)
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.planning.model import PartitionFacts
from mirror_lib.planning.source_losses import FoundLoss, find_loss, find_target_change
from mirror_lib.topology.names import FlowId, TopicPartition


class Decision(StrEnum):
    """An operator's decision about a gap."""

    #: Continue after the lost records.
    ACCEPT = "accept"
    #: Copy the source again from its start, after the records on the target.
    RECOPY = "recopy"
    #: Do not replicate the partition any more.
    STOP = "stop"
    #: Revoke a stop; the gap is open again.
    RESUME = "resume"


#: Decisions that ask no cluster: they are possible while the source is unavailable, or gone for good.
IN_LEDGER = frozenset({Decision.STOP, Decision.RESUME})


STATES: Mapping[Decision, GapState] = {
    Decision.ACCEPT: GapState.ACCEPTED,
    Decision.RECOPY: GapState.RECOPIED,
    Decision.STOP: GapState.STOPPED,
    Decision.RESUME: GapState.OPEN,
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """The effect of one decision on one partition; it can be printed before it is applied."""

    decision: Decision
    source: TopicPartition
    #: The gaps that it closes or reopens.
    gaps: tuple[GapRow, ...]
    #: The present position, None if it was not needed.
    before: Position | None = None
    #: The position to write; None if only the ledger is written.
    after: Position | None = None
    #: Log end offset of the source, None if it was not needed.
    log_end: int | None = None
    #: Why it cannot be applied.
    error: MirrorError | None = None
    #: The offset map and the offset-syncs of the partition are about records that the target no longer has, or about
    #: offsets of a former source topic.
    map_is_void: bool = False
    #: The source offset from which it is about records that the source no longer has; None if it has all of them.
    map_ends_at: int | None = None
    #: The target was restored to an older state of this copy: it has the records before the position.
    target_restored: bool = False

    @property
    def lands_at(self) -> int:
        """The target offset of the next copied record."""
        return 0 if self.after is None else self.after.target_offset or 0

    @property
    def skipped(self) -> int:
        """Source offsets that are passed over without a copy, records or holes."""
        if self.error is not None or self.before is None or self.after is None:
            return 0
        return max(self.after.offset - self.before.offset, 0)

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.source}: cannot {self.decision}: {self.error.what}"
        if self.decision is Decision.STOP:
            return f"{self.source}: is no longer replicated"
        if self.decision is Decision.RESUME:
            return f"{self.source}: is replicated again; the gap is open until it has a new resolution"
        if self.after is None:
            return f"{self.source}: the position is unchanged; the gap is {STATES[self.decision]} in the ledger"
        until = (
            "" if self.log_end is None else f", lag {counted(max(self.log_end - self.after.offset - 1, 0), 'offset')}"
        )
        replaced = "" if self.before is None else f" instead of {self.before.offset + 1}"
        unknown = "; what the ledger lacks there stays unknown" if self._leaves_history_unknown else ""
        return (
            f"{self.source}: copying continues at source offset {self.after.offset + 1}{replaced}{until}; its target "
            f"offset is {self.after.target_offset}{self._markers}{unknown}"
        )

    @property
    def _markers(self) -> str:
        """With the same offsets each offset of an accepted gap takes a marker, if the target keeps what it has."""
        if self.after is None or self.decision is not Decision.ACCEPT or not has_same_offsets(self.after.copy):
            return ""
        count = self.after.offset + 1 - self.lands_at
        return f" and {counted(count, 'marker')} later (quicker: `mirror gaps fill`)" if count > 0 else ""

    @property
    def _leaves_history_unknown(self) -> bool:
        return any(gap.cause == LedgerBehindError.reason for gap in self.gaps)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` output."""
        return {
            "topic": self.source.topic,
            "partition": self.source.partition,
            "decision": self.decision.value,
            "gaps": [gap.id for gap in self.gaps],
            "position": None if self.before is None else self.before.offset + 1,
            "new_position": None if self.after is None else self.after.offset + 1,
            "target_offset": None if self.after is None else self.after.target_offset,
            "log_end": self.log_end,
            "error": None if self.error is None else self.error.attributes(),
        }


def settled_by_recopying(flow: FlowId, fact: PartitionFacts, gaps: tuple[GapRow, ...]) -> tuple[GapRow, ...]:
    """The gaps of a partition that copying again closes.

    It does not delete keys that exist only on the target: if they are not all, those gaps stay open. Else one that an
    interrupted run prevents from being accepted, and that cannot be closed by copying again, would leave no way on.
    """
    others = tuple(gap for gap in gaps if gap.cause != DeletionsPossiblyLostError.reason)
    return gaps if not others or _is_fresh(find_target_change(flow, fact)) else others


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentCopy:
    """What a decision needs about the present copy of a partition in addition to the facts of a plan.

    Attributes:
        target_end: log end offset of the target partition now.
        run_id: of the decision.
        before: the present position.
        claim: the claim number of the new position.
        merged: several source partitions share the target. The position is closed, since it cannot be taken over.
        same_offsets: the flow's setting, which counts for a copy that begins.
    """

    target_end: int
    run_id: str
    before: Position | None = None
    claim: int = 1
    merged: bool = False
    same_offsets: bool = False


def decide(
    decision: Decision, flow: FlowId, fact: PartitionFacts, gaps: Sequence[GapRow], now: PresentCopy
) -> Position | None:
    """The position that applies a decision, None if the present one stays.

    Args:
        fact: the current facts; they may differ from those at detection.
        gaps: the gaps to resolve, all of one partition.

    Raises:
        ReplicationError: the loss has changed since the gaps were detected.
    """
    changed = find_target_change(flow, fact)
    if decision is Decision.RECOPY and any(gap.cause == DeletionsPossiblyLostError.reason for gap in gaps):
        _check_fresh(flow, fact, changed)
    found = changed or find_loss(flow, fact)
    if decision is Decision.RECOPY:
        start = fact.log_start
    elif decision is not Decision.ACCEPT or found is None or not any(gap.cause in LOSS_REASONS for gap in gaps):
        return None
    else:
        _check_same(found, gaps)
        start = _accepted_start(fact, found)
    another = next_copy(None if _is_fresh(changed) else fact.copy, now.run_id, same_offsets=now.same_offsets)
    decided = Position(
        topic=fact.source.topic,
        partition=fact.source.partition,
        offset=start - 1,
        target_offset=now.target_end,
        state=PositionState.CLOSED,
        run_id=now.run_id,
        topic_id=fact.topic_id,
        claim=now.claim,
        target_topic=fact.target.topic,
        target_topic_id=None if fact.target_now is None else fact.target_now.topic_id,
        clusters=fact.clusters,
        first_partitions=fact.first_partitions,
        # Copying again from the start deletes nothing on the target: pending deletions stay pending. A target without
        # copied records needs no deletion from before now.
        caught_up_at=fact.asked_at if decision is Decision.RECOPY and _is_fresh(changed) else fact.caught_up_at,
        copy=fact.copy if decision is Decision.ACCEPT and _is_expired(found) else another,
    )
    if changed is not None and decision is Decision.ACCEPT:
        decided = _same_source(decided, fact)
    before = now.before
    if now.merged or before is None or before.state is not PositionState.OPEN:
        return decided
    same_history = _is_expired(found)
    return replace(
        decided,
        state=PositionState.OPEN,
        producer_id=before.producer_id,
        epoch=before.epoch,
        skipped=before.skipped if same_history else (),
        runs=before.runs if same_history else (),
    )


def _is_expired(found: FoundLoss | None) -> bool:
    """True if the source has deleted records, and nothing else has changed."""
    return found is not None and isinstance(found.error, RetentionGapError)


def _is_fresh(changed: FoundLoss | None) -> bool:
    """True if the target is another topic than the one with the copied records."""
    return changed is not None and not isinstance(changed.error, TargetTruncatedError)


def _check_fresh(flow: FlowId, fact: PartitionFacts, changed: FoundLoss | None) -> None:
    """Check that the keys with lost deletions are not on the target any more."""
    if not _is_fresh(changed):
        where = Where(flow=str(flow), topic=fact.source.topic, partition=fact.source.partition)
        raise ReplicationError(
            "copying again does not delete the keys that exist only on the target.",
            where=where,
            action=f"`mirror gaps delete-keys {where.selected}` writes their tombstones to the target, `mirror gaps "
            f"accept {where.selected}` keeps them. To start over, delete the target topic and run the flow, which "
            "stops with target-deleted: then repeat this command.",
        )


def _accepted_start(fact: PartitionFacts, found: FoundLoss) -> int:
    if found.error.reason in TARGET_CHANGE_REASONS:
        assert fact.position is not None
        return fact.position
    if isinstance(found.error, SourceTruncatedError | SourceClusterChangedError):
        return min(max(found.loss.first_offset, fact.log_start), fact.log_end)
    return fact.log_start


def _same_source(decided: Position, fact: PartitionFacts) -> Position:
    """Keep the source's facts: a decision about the target does not cover a loss at the source."""
    then, now = None if fact.copied_to is None else fact.copied_to.clusters, fact.clusters
    return replace(
        decided,
        topic_id=fact.position_topic_id,
        leader_epoch=fact.position_leader_epoch,
        last_record=fact.last_record,
        clusters=now if then is None or now is None else now._replace(source=then.source),
    )


def _check_same(found: FoundLoss, gaps: Sequence[GapRow]) -> None:
    if found.error.reason not in {gap.cause for gap in gaps}:
        raise ReplicationError(
            f"the error has changed: {found.error.what}",
            where=found.error.where,
            action="Run the flow, which stores the new gap, and decide about it (`mirror gaps list`).",
        )


def check_tail(
    decision: Decision,
    fact: PartitionFacts,
    known: Mapping[TopicPartition, Position],
    target_end: int,
    where: Where,
) -> None:
    """Check that the records at the end of the target are known, since the new position asserts it without reading.

    Args:
        decision: the decision about the partition of `fact`.
        fact: the partition.
        known: the positions of all source partitions with the same target; more than one in a merge.
        target_end: log end offset of the target partition now.
        where: the location for errors.

    Raises:
        DirtyStartError: an interrupted run or another producer may have appended, or records were removed.
    """
    others = [each for each in known.values() if each.source != fact.source]
    unclosed = next((each for each in others if each.state is not PositionState.CLOSED), None)
    if unclosed is not None:
        raise DirtyStartError(
            f"run {unclosed.run_id or 'unknown'} was interrupted while it copied {unclosed.source} to {fact.target} "
            "too: which of its records are on the target is unknown.",
            where=where,
            action="Run the flow, which finds out, then decide.",
        )
    own = known.get(fact.source)
    interrupted = own is not None and own.state is PositionState.OPEN and own.target_offset is None
    if interrupted and decision is not Decision.RECOPY:
        raise DirtyStartError(
            f"a run was interrupted while it took over {fact.source} from MirrorMaker 2: the last copied offset on "
            f"{fact.target} is unknown.",
            where=where,
            action="`mirror gaps recopy` copies everything again after it, `mirror gaps stop` stops the partition.",
        )
    expected = max((each.target_offset for each in known.values() if each.target_offset is not None), default=None)
    # Copying everything again creates duplicates anyway. MirrorMaker 2 stores no target offset, and is not
    # exactly-once.
    if decision is Decision.RECOPY or expected in (None, target_end):
        return
    raise DirtyStartError(
        f"log end offset of {fact.target} is {target_end}, but positions cover it only up to {expected}: whether the "
        "rest was written by an interrupted run can no longer be determined.",
        where=where,
        action="`mirror gaps recopy` copies everything again after it, `mirror gaps stop` stops the partition.",
    )
