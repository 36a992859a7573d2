"""Gaps: noting in the ledger what a source has lost, and carrying out what a person decides about it.

A decision about a loss is a new position behind whatever stands on the target, which is never changed. It is a
`closed` one, so that the next run is an ordinary one; where a run was interrupted it stays `open`, with that run's
writer, so that the next run fences it. It is a claim of its own, which no run that was overtaken can undo.

Kafka is written before the ledger: if the ledger fails, the gap is still open there and can be decided again, which
then only notes it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mirror_lib.cluster.admin import OffsetSpec
from mirror_lib.cluster.positions import Position, PositionState
from mirror_lib.config.flow_topology import flow_topology
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import (
    MirrorError,
    ReplicationError,
    RetentionGapError,
    SourceTruncatedError,
    TopicMissingError,
    UncleanStartError,
    Where,
)
from mirror_lib.ledger.gaps import LastCopy
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.relay.commit import position_row
from mirror_lib.relay.gather import FlowClusters, Truncation, gather_facts, of_flow
from mirror_lib.relay.losses import LOSS_REASONS, FoundLoss, find_loss
from mirror_lib.relay.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem
from mirror_lib.relay.quarantine import omission_rows
from mirror_lib.topology.names import FlowId, TopicPartition


class Decision(StrEnum):
    """What a person can say about a gap."""

    #: Go on behind what is lost.
    ACCEPT = "accept"
    #: Copy the source again from its start, behind what stands on the target.
    RECOPY = "recopy"
    #: Replicate the partition no more.
    STOP = "stop"
    #: Take a stop back; the gap is open again.
    RESUME = "resume"


#: Decisions for which no cluster is asked: they can be made while the source is away, or gone for good.
IN_LEDGER = frozenset({Decision.STOP, Decision.RESUME})

STATES: Mapping[Decision, GapState] = {
    Decision.ACCEPT: GapState.ACCEPTED,
    Decision.RECOPY: GapState.RECOPIED,
    Decision.STOP: GapState.STOPPED,
    Decision.RESUME: GapState.OPEN,
}


@dataclass(frozen=True, slots=True)
class Resolution:
    """What one decision does to one partition; printable before it is carried out."""

    decision: Decision
    source: TopicPartition
    #: The gaps that it closes, or opens again.
    gaps: tuple[GapRow, ...]
    #: Where the partition stands now and what stands there, None where nobody needed to ask.
    before: Position | None = None
    #: What is to be written; None where the ledger alone is to say it.
    after: Position | None = None
    #: Where the source ends, None where nobody needed to ask.
    log_end: int | None = None
    #: Why it cannot be carried out.
    error: MirrorError | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.source}: cannot {self.decision}: {self.error.what}"
        if self.decision is Decision.STOP:
            return f"{self.source}: is not replicated any more"
        if self.decision is Decision.RESUME:
            return f"{self.source}: is replicated again; the gap is open until something else is decided"
        if self.after is None:
            return f"{self.source}: the position stays; the ledger says that the gap is {STATES[self.decision]}"
        until = "" if self.log_end is None else f", where {max(self.log_end - self.after.offset - 1, 0)} offsets wait"
        came = "" if self.before is None else f" instead of {self.before.offset + 1}"
        return (
            f"{self.source}: copying goes on at source offset {self.after.offset + 1}{came}{until}; "
            f"it lands at target offset {self.after.target_offset}"
        )

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


def note_losses(
    flow: FlowId, problems: Iterable[PartitionProblem], ledger: Ledger, *, run_id: str
) -> tuple[GapRow, ...]:
    """Make sure that every loss among a plan's problems has an open row in the ledger; returns these rows."""
    lost = [problem for problem in problems if problem.loss is not None]
    if not lost:
        return ()
    copies = ledger.last_copies(str(flow), {problem.source.topic for problem in lost})
    now = datetime.now(UTC)
    return tuple(
        ledger.record_gap(gap_row(flow, problem, copies.get(problem.source), now, run_id=run_id)) for problem in lost
    )


def gap_row(
    flow: FlowId, problem: PartitionProblem, last_copy: LastCopy | None, now: datetime, *, run_id: str
) -> GapRow:
    """The row of a loss. Its time window begins with what was copied last, and ends with the moment it was noticed."""
    loss = problem.loss
    if loss is None:
        raise ValueError(f"{problem.source} has lost nothing: {problem.error}")
    return GapRow(
        id=str(uuid.uuid4()),
        flow=str(flow),
        topic=problem.source.topic,
        partition=problem.source.partition,
        cause=problem.error.reason,
        first_offset=loss.first_offset,
        next_offset=loss.next_offset,
        first_time=_since(problem.error, last_copy, now),
        last_time=now,
        topic_id=loss.topic_id,
        detail=problem.error.what,
        run_id=run_id,
        found_at=now,
    )


def _since(error: MirrorError, last_copy: LastCopy | None, now: datetime) -> datetime | None:
    if last_copy is None:
        return None
    # What retention deleted was written after the last copied record; a timestamp is what a producer says, though.
    if isinstance(error, RetentionGapError) and 0 <= last_copy.last_timestamp <= now.timestamp() * 1000:
        return datetime.fromtimestamp(last_copy.last_timestamp / 1000, UTC)
    return last_copy.stored_at


def truncations(gaps: Iterable[GapRow]) -> dict[TopicPartition, Truncation]:
    """Of open gaps, those that a source could hide by growing again."""
    return {
        TopicPartition(gap.topic, gap.partition): Truncation(log_end=gap.first_offset, position=gap.next_offset)
        for gap in gaps
        if gap.cause == SourceTruncatedError.reason and gap.state == GapState.OPEN
    }


def decide(
    decision: Decision,
    flow: FlowId,
    fact: PartitionFacts,
    gaps: Sequence[GapRow],
    target_end: int,
    *,
    run_id: str,
    before: Position | None = None,
    claim: int = 1,
    merged: bool = False,
) -> Position | None:
    """The position by which a decision is carried out, None where the present one stays.

    Args:
        fact: what is so now; it may differ from what was found.
        gaps: what is decided about, all of one partition.
        target_end: where the target partition ends now.
        before: the present position.
        claim: the number that the new position gets.
        merged: several source partitions share the target. Such a position cannot be taken over, so it is closed.

    Raises:
        ReplicationError: something else is lost by now than what is decided about.
    """
    found = find_loss(flow, fact)
    if decision is Decision.RECOPY:
        start = fact.log_start
    elif decision is not Decision.ACCEPT or found is None or not any(gap.cause in LOSS_REASONS for gap in gaps):
        return None
    else:
        _check_same(found, gaps)
        start = fact.log_start
        if isinstance(found.error, SourceTruncatedError):
            start = min(max(found.loss.first_offset, fact.log_start), fact.log_end)
    decided = Position(
        topic=fact.source.topic,
        partition=fact.source.partition,
        offset=start - 1,
        target_offset=target_end,
        state=PositionState.CLOSED,
        run_id=run_id,
        topic_id=fact.topic_id,
        claim=claim,
    )
    if merged or before is None or before.state is not PositionState.OPEN:
        return decided
    same_history = found is not None and isinstance(found.error, RetentionGapError)
    return replace(
        decided,
        state=PositionState.OPEN,
        producer_id=before.producer_id,
        epoch=before.epoch,
        left_out=before.left_out if same_history else (),
        runs=before.runs if same_history else (),
    )


def _check_same(found: FoundLoss, gaps: Sequence[GapRow]) -> None:
    if found.error.reason not in {gap.cause for gap in gaps}:
        raise ReplicationError(
            f"something else has happened since: {found.error.what}",
            where=found.error.where,
            action="Run the flow, which notes it, and decide about that (`mirror gaps list`).",
        )


def undecided(ledger: Ledger, flow: str, decision: Decision) -> tuple[GapRow, ...]:
    """The gaps of a flow that a decision can be about, newest first: only a stop can be taken back."""
    if decision is Decision.RESUME:
        return tuple(gap for gap in ledger.gaps(flow, limit=None) if gap.state == GapState.STOPPED)
    return ledger.open_gaps(flow)


def plan_in_ledger(decision: Decision, gaps: Sequence[GapRow]) -> tuple[Resolution, ...]:
    """What stopping or resuming the partitions of these gaps does: it is said in the ledger, and nowhere else."""
    return tuple(Resolution(decision, source, rows) for source, rows in sorted(_by_partition(gaps).items()))


def _by_partition(gaps: Iterable[GapRow]) -> dict[TopicPartition, tuple[GapRow, ...]]:
    chosen: dict[TopicPartition, tuple[GapRow, ...]] = {}
    for gap in gaps:
        source = TopicPartition(gap.topic, gap.partition)
        chosen[source] = (*chosen.get(source, ()), gap)
    return chosen


def plan_decisions(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger,
    decision: Decision,
    gaps: Sequence[GapRow],
    *,
    run_id: str,
) -> tuple[Resolution, ...]:
    """What accepting these gaps or copying again would do, partition by partition; changes nothing.

    Args:
        run_id: whom the new positions are to name as their writer.
    """
    chosen = _by_partition(gaps)
    topology = flow_topology(flow, [re.escape(topic) for topic in sorted({source.topic for source in chosen})])
    found, problems = gather_facts(
        flow,
        topology,
        clusters,
        stopped=ledger.stopped_partitions(str(flow.flow)),
        truncations=truncations(ledger.open_gaps(str(flow.flow))),
    )
    facts = {fact.source: fact for fact in found if fact.source in chosen}
    errors = {problem.source: problem.error for problem in problems}
    ends = clusters.target_admin.list_offsets({fact.target for fact in facts.values()}, OffsetSpec.LATEST)
    resolutions = []
    for source, rows in sorted(chosen.items()):
        before = clusters.positions_at_plan.positions.get(source)
        after, error = None, errors.get(source) or errors.get(TopicPartition(source.topic, WHOLE_TOPIC))
        fact = facts.get(source)
        try:
            if fact is None or error is not None:
                raise error or _not_there(flow, source)
            end = ends[fact.target]
            if end.error is not None:
                raise of_flow(flow, end.error, source)
            after = decide(
                decision,
                flow.flow,
                fact,
                rows,
                end.offset,
                run_id=run_id,
                before=None if before is None else before.position,
                claim=clusters.positions_at_plan.claims.get(source, 0) + 1,
                merged=len(clusters.sources_of(fact.target)) > 1,
            )
            if after is not None:
                check_tail(decision, fact, _known(clusters, fact), end.offset, _where(flow, source))
        except MirrorError as problem:
            after, error = None, problem
        resolutions.append(
            Resolution(
                decision=decision,
                source=source,
                gaps=rows,
                before=None if before is None else before.position,
                after=after,
                log_end=None if fact is None else fact.log_end,
                error=error,
            )
        )
    return tuple(resolutions)


def _known(clusters: FlowClusters, fact: PartitionFacts) -> dict[TopicPartition, Position]:
    stored = clusters.positions_at_plan.positions
    writers = {fact.source, *clusters.sources_of(fact.target)}
    return {writer: stored[writer].position for writer in writers if writer in stored}


def _where(flow: FlowConfig, source: TopicPartition) -> Where:
    return Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)


def _not_there(flow: FlowConfig, source: TopicPartition) -> MirrorError:
    return TopicMissingError(
        "the flow has no such partition now: it is gone, stopped, or not selected any more.",
        where=_where(flow, source),
        action="`mirror gaps resume` takes a stop back; `mirror gaps stop` closes the gap of a partition that is gone.",
    )


def check_tail(
    decision: Decision,
    fact: PartitionFacts,
    known: Mapping[TopicPartition, Position],
    target_end: int,
    where: Where,
) -> None:
    """Whether it is known what stands at the end of the target, since the new position says so without looking.

    Args:
        decision: about the partition of `fact`.
        fact: the partition.
        known: the positions of all source partitions that go to its target; more than one in a merge.
        target_end: where the target partition ends now.
        where: the place for errors.

    Raises:
        UncleanStartError: an interrupted run or somebody else may have left something there, or has taken it away.
    """
    others = [each for each in known.values() if each.source != fact.source]
    unclosed = next((each for each in others if each.state is not PositionState.CLOSED), None)
    if unclosed is not None:
        raise UncleanStartError(
            f"run {unclosed.run_id or 'unknown'} was interrupted while it copied {unclosed.source} to {fact.target} "
            "too: what it left there is not known.",
            where=where,
            action="Run the flow, which finds out, and decide then.",
        )
    own = known.get(fact.source)
    interrupted = own is not None and own.state is PositionState.OPEN and own.target_offset is None
    if interrupted and decision is not Decision.RECOPY:
        raise UncleanStartError(
            f"a run was interrupted while it took {fact.source} over from MirrorMaker 2: how far it came on "
            f"{fact.target} is not known.",
            where=where,
            action="`mirror gaps recopy` copies everything again behind it, `mirror gaps stop` leaves it at that.",
        )
    expected = max((each.target_offset for each in known.values() if each.target_offset is not None), default=None)
    # To copy everything again is to have it twice anyway. MirrorMaker 2 stores no target offset, nor promises once.
    if decision is Decision.RECOPY or expected in (None, target_end):
        return
    raise UncleanStartError(
        f"{fact.target} ends at {target_end}, but positions tell only of what stands there up to {expected}: whether "
        "the rest came from an interrupted run, and must not be copied again, cannot be found out any more.",
        where=where,
        action="`mirror gaps recopy` copies everything again behind it, `mirror gaps stop` leaves it at that.",
    )


def apply_decisions(
    flow: FlowConfig,
    clusters: FlowClusters | None,
    ledger: Ledger,
    resolutions: Sequence[Resolution],
    *,
    by: str,
    note: str | None = None,
) -> None:
    """Carry out the resolutions that have no error, and note in the ledger who decided.

    Nobody else may be copying: take the run lock first.

    Args:
        clusters: needed where positions move.

    Raises:
        MirrorError: the position topic or the ledger cannot be written.
    """
    wanted = [resolution for resolution in resolutions if resolution.error is None]
    moved = [resolution.after for resolution in wanted if resolution.after is not None]
    if moved:
        if clusters is None:
            raise ValueError("positions are on the target cluster")
        clusters.positions.write(moved)
    ledger.save_positions([position_row(flow, position) for position in moved])
    for resolution in wanted:
        before, after = resolution.before, resolution.after
        if before is not None and after is not None and not after.left_out:
            for row in omission_rows(flow.flow, before.source, before.left_out, run_id=before.run_id or "", by=by):
                ledger.record_gap(row)
        for gap in resolution.gaps:
            ledger.decide_gap(gap.id, STATES[resolution.decision], by=by, note=note)


def settle_losses(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger,
    gaps: Sequence[GapRow],
    decision: Decision,
    *,
    run_id: str,
    by: str,
) -> tuple[PartitionProblem, ...]:
    """Decide about losses in one go, for a run that was told to; returns what could not be decided so."""
    resolutions = plan_decisions(flow, clusters, ledger, decision, gaps, run_id=run_id)
    apply_decisions(flow, clusters, ledger, resolutions, by=by, note=f"as run {run_id} was told")
    return tuple(PartitionProblem(each.source, each.error) for each in resolutions if each.error is not None)
