"""Gaps in the ledger: record what a source has lost, and apply an operator's decisions.

The rules of `copy.gaps.resolutions` determine the position that a decision sets. Kafka is written before the ledger:
if the ledger fails, the gap is still open there; deciding again then only records the decision.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.claim.void_syncs import rewind_syncs
from mirror_lib.copy.commit.decided_positions import store_decided
from mirror_lib.copy.commit.poison_gaps import omission_rows
from mirror_lib.copy.gaps.resolutions import (
    STATES,
    Decision,
    PresentCopy,
    Resolution,
    check_tail,
    decide,
    settled_by_recopying,
)
from mirror_lib.errors import (
    POSITION_REASONS,
    MirrorError,
    NoLongerSelectedError,
    RetentionGapError,
    SourceRecreatedError,
    SourceTruncatedError,
    TopicMissingError,
    Where,
    WrittenAfterCutoverError,
)
from mirror_lib.identity.clusters import check_clusters
from mirror_lib.identity.histories import LedgerState
from mirror_lib.identity.ledger_positions import LedgerPositions
from mirror_lib.identity.targets import position_change
from mirror_lib.ledger.rows import GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.gaps import LastCopy
from mirror_lib.planning.backfills import FROM_CUTOVER
from mirror_lib.planning.facts import KnownState, gather_facts, with_flow
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem
from mirror_lib.planning.parted_histories import with_parted_histories
from mirror_lib.planning.source_losses import find_target_change
from mirror_lib.topology.names import FlowId, TopicPartition


def note_losses(
    flow: FlowId, problems: Iterable[PartitionProblem], ledger: Ledger, *, run_id: str
) -> tuple[GapRow, ...]:
    """Ensure that every loss among a plan's problems has an open row in the ledger; return these rows."""
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
    """The row of a loss. Its time window starts with the last copied record and ends when the loss was detected."""
    loss = problem.loss
    if loss is None:
        raise ValueError(f"{problem.source} has lost no records: {problem.error}")
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
    # What retention deleted was written after the last copied record; timestamps are set by producers, though.
    if isinstance(error, RetentionGapError) and 0 <= last_copy.last_timestamp <= now.timestamp() * 1000:
        return datetime.fromtimestamp(last_copy.last_timestamp / 1000, UTC)
    return last_copy.stored_at


def close_settled(
    flow: FlowId,
    facts: Iterable[PartitionFacts],
    problems: Iterable[PartitionProblem],
    ledger: Ledger,
    *,
    by: str,
    run_id: str,
) -> None:
    """Close losses whose cause is gone: a corrected setting or address, a topic that exists again, a set position.

    An open row would wait for a decision for ever, and copying again would then duplicate records.

    Args:
        facts: facts of all partitions that were compared.
        problems: the current problems of some of them.
        by: who started the run.
    """
    waiting = [gap for gap in ledger.open_gaps(str(flow)) if gap.cause in POSITION_REASONS]
    if not waiting:
        return
    wrong = {problem.source for problem in problems}
    sound = {fact.source for fact in facts if not fact.stopped and fact.source not in wrong}
    for gap in waiting:
        if TopicPartition(gap.topic, gap.partition) in sound:
            ledger.decide_gap(gap.id, GapState.ACCEPTED, by=by, note=f"run {run_id} found no more errors")


def truncations(gaps: Iterable[GapRow]) -> dict[tuple[TopicPartition, int], int]:
    """The offsets at which truncated logs ended, by partition and the position after that: the log may grow again.

    Gaps of another position than the present one are those of an earlier decision.
    """
    ends: dict[tuple[TopicPartition, int], int] = {}
    for gap in gaps:
        if gap.cause == SourceTruncatedError.reason and gap.state == GapState.OPEN:
            place = TopicPartition(gap.topic, gap.partition), gap.next_offset
            ends[place] = min(gap.first_offset, ends.get(place, gap.first_offset))
    return ends


def undecided_gaps(ledger: Ledger, flow: str, decision: Decision) -> tuple[GapRow, ...]:
    """The gaps of a flow to which a decision applies, newest first: only a stop can be revoked."""
    if decision is Decision.RESUME:
        return tuple(gap for gap in ledger.gaps(flow, limit=None) if gap.state == GapState.STOPPED)
    return ledger.open_gaps(flow)


def plan_in_ledger(decision: Decision, gaps: Sequence[GapRow]) -> tuple[Resolution, ...]:
    """The resolutions that stop or resume the partitions of these gaps: they are stored only in the ledger."""
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
    """Resolutions that accept these gaps or copy them again, partition by partition; change nothing.

    Args:
        run_id: the run id in the new positions.
    """
    resolutions = []
    for cause, not_by_recopying in _WITHOUT_POSITION.items():
        for source, rows in sorted(_by_partition(gap for gap in gaps if gap.cause == cause).items()):
            error = not_by_recopying(flow, source) if decision is Decision.RECOPY else None
            resolutions.append(Resolution(decision, source, rows, error=error))
    gaps = [gap for gap in gaps if gap.cause not in _WITHOUT_POSITION]
    if not gaps:
        return tuple(resolutions)
    chosen = _by_partition(gaps)
    check_clusters(flow, ledger, clusters.ids())
    topology = flow_topology(flow, [re.escape(topic) for topic in sorted({source.topic for source in chosen})])
    found, problems = gather_facts(
        flow,
        topology,
        clusters,
        KnownState(
            stopped=ledger.stopped_partitions(str(flow.flow)),
            truncations=truncations(ledger.open_gaps(str(flow.flow))),
            ledger=LedgerPositions.read(ledger, flow.flow),
        ),
        # The next run creates what the target lacks.
        topics_synced=False,
    )
    found = with_parted_histories(flow.flow, [fact for fact in found if fact.source in chosen], clusters, ledger)
    facts = {fact.source: fact for fact in found}
    errors = {problem.source: problem.error for problem in problems}
    ends = clusters.target_admin.list_offsets({fact.target for fact in facts.values()}, OffsetSpec.LATEST)
    for source, rows in sorted(chosen.items()):
        before = clusters.positions_at_plan.positions.get(source)
        changed = recreated = restored = False
        after, error = None, errors.get(source) or errors.get(TopicPartition(source.topic, WHOLE_TOPIC))
        fact = facts.get(source)
        try:
            if fact is None or error is not None:
                raise error or _not_there(flow, source)
            if decision is Decision.RECOPY:
                rows = settled_by_recopying(flow.flow, fact, rows)
            end = ends[fact.target]
            if isinstance(end.error, TopicMissingError):
                end = OffsetFact(offset=0)
            if end.error is not None:
                raise with_flow(flow, end.error, source)
            after = decide(
                decision,
                flow.flow,
                fact,
                rows,
                PresentCopy(
                    target_end=end.offset,
                    run_id=run_id,
                    before=None if before is None else before.position,
                    claim=clusters.positions_at_plan.claims.get(source, 0) + 1,
                    merged=len(clusters.sources_of(fact.target)) > 1,
                    same_offsets=flow.copy_settings.same_offsets,
                ),
            )
            changed = find_target_change(flow.flow, fact) is not None
            restored = decision is Decision.ACCEPT and before is not None and _is_restored(fact, before.position)
            recreated = any(gap.cause == SourceRecreatedError.reason for gap in rows)
            # The end of a target log that no longer exists need not be known.
            if after is not None and not changed:
                copied_to = _end_before_filler(flow, clusters, fact, end.offset)
                check_tail(decision, fact, _known_positions(clusters, fact), copied_to, _where(flow, source))
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
                map_is_void=((changed and not restored) or recreated) and after is not None,
                map_ends_at=None if after is None else after.offset + 1 if restored else end_of_history(rows),
                target_restored=restored and after is not None,
            )
        )
    return tuple(resolutions)


def _end_before_filler(flow: FlowConfig, clusters: FlowClusters, fact: PartitionFacts, end: int) -> int:
    """The target's end without the filler that has moved it towards the position, if the log is empty."""
    stored = clusters.positions_at_plan.positions.get(fact.source)
    if not flow.copy_settings.same_offsets or stored is None or (known := stored.position.target_offset) is None:
        return end
    if not known < end <= stored.position.offset + 1:
        return end
    begin = clusters.target_admin.list_offsets([fact.target], OffsetSpec.EARLIEST)[fact.target]
    return known if begin.error is None and begin.offset == end else end


def _is_restored(fact: PartitionFacts, stored: Position) -> bool:
    """True if the target agrees with the position that it has, which is older than that of the ledger."""
    if fact.history.state is not LedgerState.AHEAD or fact.target_now is None or fact.target_record_same is False:
        return False
    return position_change(stored, fact.target_now, fact.clusters) is None


def end_of_history(gaps: Iterable[GapRow]) -> int | None:
    """Return the source offset from which the source has other records than those that were copied, if any."""
    return min((gap.first_offset for gap in gaps if gap.cause == SourceTruncatedError.reason), default=None)


def _known_positions(clusters: FlowClusters, fact: PartitionFacts) -> dict[TopicPartition, Position]:
    stored = clusters.positions_at_plan.positions
    writers = {fact.source, *clusters.sources_of(fact.target)}
    return {writer: stored[writer].position for writer in writers if writer in stored}


def _where(flow: FlowConfig, source: TopicPartition) -> Where:
    return Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)


def _not_by_recopying(flow: FlowConfig, source: TopicPartition) -> MirrorError:
    return WrittenAfterCutoverError(
        "the flow no longer copies the topic, because a cutover has moved its producers.",
        where=_where(flow, source),
        action=f"`mirror backfill run --flow '{flow.flow}' --topics '{source.topic}' --from {FROM_CUTOVER} "
        "--into-suffix .late` copies the records into a separate topic.",
    )


def _not_selected(flow: FlowConfig, source: TopicPartition) -> MirrorError:
    return NoLongerSelectedError(
        "the flow does not select the partition, so nothing can be copied again.",
        where=_where(flow, source),
        action="Correct `topics`, `topics.exclude` or the topic: the next run continues at the position, and closes "
        "the gap. `mirror gaps accept` says that it is meant.",
    )


#: Causes of gaps of partitions that the flow does not copy: no position changes, and why nothing is copied again.
_WITHOUT_POSITION: Mapping[str, Callable[[FlowConfig, TopicPartition], MirrorError]] = {
    WrittenAfterCutoverError.reason: _not_by_recopying,
    NoLongerSelectedError.reason: _not_selected,
}


def _not_there(flow: FlowConfig, source: TopicPartition) -> MirrorError:
    return TopicMissingError(
        "the flow does not have this partition now: it was deleted, stopped, or is no longer selected.",
        where=_where(flow, source),
        action="`mirror gaps resume` undoes a stop; `mirror gaps stop` closes the gap of a deleted partition.",
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
    """Apply the resolutions that have no error, and record in the ledger who decided.

    No run may be copying: take the run lock first.

    Args:
        clusters: needed if positions change.

    Raises:
        MirrorError: the position topic or the ledger cannot be written.
    """
    wanted = [resolution for resolution in resolutions if resolution.error is None]
    moved = [resolution.after for resolution in wanted if resolution.after is not None]
    if moved:
        if clusters is None:
            raise ValueError("positions are stored on the target cluster")
        # Before the positions: in an empty topic these syncs are correct regardless of the decision.
        rewind_syncs(
            flow,
            {each.source: each.lands_at for each in wanted if each.map_is_void},
            dict(_kept_starts(flow, ledger, wanted)),
        )
        before = {each.source: each.before for each in wanted if each.after is not None and each.before is not None}
        store_decided(flow, clusters.positions, ledger, moved, before, run_id=moved[0].run_id or "")
    for resolution in wanted:
        former, after = resolution.before, resolution.after
        if former is not None and after is not None and not after.skipped:
            for row in omission_rows(flow.flow, former.source, former.skipped, run_id=former.run_id or "", by=by):
                ledger.record_gap(row)
        if resolution.map_is_void:
            ledger.replace_segments(str(flow.flow), *resolution.source, [])
        elif resolution.map_ends_at is not None:
            ledger.cut_segments(str(flow.flow), *resolution.source, resolution.map_ends_at)
        for gap in resolution.gaps:
            ledger.decide_gap(gap.id, STATES[resolution.decision], by=by, note=note)


def _kept_starts(
    flow: FlowConfig, ledger: Ledger, resolutions: Iterable[Resolution]
) -> Iterator[tuple[TopicPartition, tuple[int, int]]]:
    """Where the maps begin that restored targets keep."""
    for each in resolutions:
        rows = ledger.segments(str(flow.flow), *each.source) if each.target_restored else ()
        if rows:
            yield each.source, (rows[0].source_first, rows[0].target_first)


def settle_losses(
    flow: FlowConfig,
    clusters: FlowClusters,
    ledger: Ledger,
    gaps: Sequence[GapRow],
    decision: Decision,
    *,
    run_id: str,
    by: str,
) -> tuple[Resolution, ...]:
    """Resolve all losses by the decision of a run's options; those with an error could not be resolved."""
    resolutions = plan_decisions(flow, clusters, ledger, decision, gaps, run_id=run_id)
    apply_decisions(flow, clusters, ledger, resolutions, by=by, note=f"as requested by run {run_id}")
    return resolutions
