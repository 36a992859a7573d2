"""Positions without a selected partition: an open gap reports them once, until an operator accepts it.

Nothing else stops for it: the flow copies what it selects.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

from mirror_lib.cluster.topics.position_format import ClusterPair
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.errors import NoLongerSelectedError, Where
from mirror_lib.identity.clusters import ledger_name
from mirror_lib.identity.ledger_positions import LedgerPositions
from mirror_lib.identity.unselected import Selection, Unselected, find_unselected
from mirror_lib.ledger.rows import SOURCE_DELETED, GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem, RunPlan
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import FlowId, TopicPartition

_NAMED = 3
_SETTLED = "deleted at the source, after being copied up to the log end that was observed last"
#: Gaps that still say something about a partition.
_LIVING = (GapState.OPEN, GapState.ACCEPTED)


def unselected_partitions(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    facts: Sequence[PartitionFacts],
    problems: Iterable[PartitionProblem],
    *,
    known: LedgerPositions | None,
    ledger: Ledger | None,
    stopped: AbstractSet[TopicPartition],
) -> tuple[Unselected, ...]:
    """Return the partitions that the flow has copied and selects no longer, unless an operator has accepted it.

    Args:
        facts: facts of all selected partitions that could be read.
        problems: those that could not.
        known: the ledger's positions; None if there is no ledger yet.
        stopped: partitions that an operator has stopped.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    if ledger is None or known is None:
        return ()
    rest = known.rows.keys() - {fact.source for fact in facts} - stopped
    if not rest:
        return ()
    snapshot, selection = clusters.positions_at_plan, _selection_of(flow, topology, clusters, facts, problems)
    lost = [each for each in rest if not selection.selects(each)]
    meant = {topic: selection.why_meant(topic) for topic in {each.topic for each in lost}}
    positions = {}
    for each in lost:
        stored = snapshot.positions.get(each)
        if not selection.judges(each.topic) or meant[each.topic] is not None:
            continue
        if stored is None and each in snapshot.reset:
            continue
        positions[each] = (known.rows[each].offset if stored is None else stored.position.offset) + 1
    if not positions:
        return ()
    name = str(selection.flow.flow)
    return tuple(
        find_unselected(
            selection,
            positions,
            gaps=_living_gaps(ledger, name),
            topic_ids=lambda each: snapshot.positions[each].position.topic_id if each in snapshot.positions else None,
            observations=lambda: ledger.observations.partitions(name),
        )
    )


def _living_gaps(ledger: Ledger, flow: str) -> tuple[GapRow, ...]:
    causes = (NoLongerSelectedError.reason, SOURCE_DELETED)
    return tuple(gap for cause in causes for gap in ledger.gaps_of_cause(flow, cause, _LIVING))


def renamed_notes(
    flow: FlowId, clusters: ClusterPair | None, known: LedgerPositions | None, ledger: Ledger | None
) -> Iterator[str]:
    """A sentence about other flows between the same clusters, if this one has copied nothing: its alias may be new."""
    if ledger is None or clusters is None or known is None or known.rows:
        return
    same = set(ledger.cluster_pairs.between(*clusters)) - {ledger_name(flow)}
    for each in ledger.copied_flows() if same else ():
        if each.flow in same:
            yield (
                f"Flow {flow} has copied nothing, but the ledger has flow {each.flow} between the same clusters "
                f"({counted(each.partitions, 'partition')}, last copied on {each.updated_at:%Y-%m-%d at %H:%M}Z). If "
                f"{flow} is that flow with another alias: its positions do not count, and all topics begin anew (by "
                "mirror.first.start, under the target names of the new alias). Restore the alias to continue."
            )


def unselected_error(flow: FlowId, each: Unselected) -> NoLongerSelectedError:
    """The state of one such partition, with what to do."""
    where = Where(flow=str(flow), topic=each.source.topic, partition=each.source.partition)
    return NoLongerSelectedError(each.detail, where=where, action=_action(flow, each.source.topic))


def unselected_notes(flow: FlowId, found: Sequence[Unselected]) -> Iterator[str]:
    """A sentence about partitions that are selected no longer, and one about deleted topics, if there are any."""
    yield from deleted_notes(flow, found)
    found = [each for each in found if each.needs_decision]
    if found:
        worst = sorted(found, key=lambda each: -each.left)
        named = ", ".join(f"{each.source} ({each.progress})" for each in worst[:_NAMED])
        more = f", and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
        gone = counted(len(found), "copied partition is", "copied partitions are")
        topics = {each.source.topic for each in found}
        yield (
            f"{gone} no longer selected: {named}{more}. What was written later is unknown. "
            f"{_action(flow, topics.pop() if len(topics) == 1 else 'TOPIC')}"
        )


def deleted_notes(flow: FlowId, found: Iterable[Unselected]) -> Iterator[str]:
    """A sentence about topics that were deleted after their copy, if there are any."""
    observed: dict[str, datetime] = {}
    for each in found:
        if not each.needs_decision and each.observed_at is not None:
            observed[each.source.topic] = min(each.observed_at, observed.get(each.source.topic, each.observed_at))
    if observed:
        named = ", ".join(f"{topic} ({at:%Y-%m-%d at %H:%M:%S}Z)" for topic, at in sorted(observed.items())[:_NAMED])
        more = f", and {len(observed) - _NAMED:,} more" if len(observed) > _NAMED else ""
        yield (
            f"{counted(len(observed), 'topic was', 'topics were')} deleted on {flow.source}, after being copied up to "
            f"the log end that was observed last: {named}{more}. What was written after that is unknown. The copies "
            "on the target stay. `mirror gaps list` keeps this note."
        )


def _action(flow: FlowId, topic: str) -> str:
    return (
        "If it is a mistake, correct `topics`, `topics.exclude` or the topic, and the copy continues. If it is meant: "
        f"`mirror gaps accept --flow '{flow}' --topic {topic}` (a run records the gap first)."
    )


def note_unselected(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    plan: RunPlan,
    facts: Sequence[PartitionFacts],
    ledger: Ledger,
    *,
    run_id: str,
    by: str,
) -> None:
    """Store each partition that a plan selects no longer as one open gap, and close gaps of which this is over.

    Args:
        facts: facts of all partitions of the plan.
        by: who started the run.

    Raises:
        LedgerError: the ledger cannot be used.
    """
    name, now = str(flow.flow), datetime.now(UTC)
    rows = _living_gaps(ledger, name)
    if not rows and not plan.unselected:
        return
    waiting = {TopicPartition(gap.topic, gap.partition): gap.id for gap in rows if gap.state == GapState.OPEN}
    ledger.add_gaps([_gap_row(name, each, now, run_id, by) for each in plan.unselected if each.source not in waiting])
    settled = [waiting[each.source] for each in plan.unselected if not each.needs_decision and each.source in waiting]
    ledger.decide_gaps(settled, GapState.ACCEPTED, by=by, note=f"run {run_id}: {_SETTLED}")
    wrong = {problem.source for problem in plan.problems}
    sound = {fact.source for fact in facts if not fact.stopped and fact.source not in wrong}
    # Accepted ones too: if it leaves the selection another time, that is another question.
    again = [gap.id for gap in rows if TopicPartition(gap.topic, gap.partition) in sound]
    note = f"run {run_id}: the flow selects the partition again, and continues at its position"
    ledger.decide_gaps(again, GapState.RECOPIED, by=by, note=note)
    selection = _selection_of(flow, topology, clusters, facts, plan.problems)
    for source, gap_id in waiting.items():
        why = None if selection.selects(source) else selection.why_meant(source.topic)
        if why is not None:
            ledger.decide_gap(gap_id, GapState.ACCEPTED, by=by, note=f"run {run_id}: {why}")


def _selection_of(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    facts: Iterable[PartitionFacts],
    problems: Iterable[PartitionProblem],
) -> Selection:
    """Return what a flow selects, by the facts of a plan and the problems that were found while they were read."""
    partitions: dict[str, int | None] = {}
    for source in (*(fact.source for fact in facts), *(problem.source for problem in problems)):
        count = partitions.get(source.topic, 0)
        if source.partition == WHOLE_TOPIC:
            partitions[source.topic] = None
        elif count is not None:
            partitions[source.topic] = max(count, source.partition + 1)
    return Selection(flow, topology, clusters.listed, clusters.reported_unseen, partitions)


def _gap_row(flow: str, each: Unselected, now: datetime, run_id: str, by: str) -> GapRow:
    settled: dict[str, str | datetime] = {}
    if not each.needs_decision:
        settled = {"state": GapState.ACCEPTED.value, "decided_by": by, "decided_at": now, "note": _SETTLED}
    return GapRow(
        id=str(uuid.uuid4()),
        flow=flow,
        topic=each.source.topic,
        partition=each.source.partition,
        cause=NoLongerSelectedError.reason if each.needs_decision else SOURCE_DELETED,
        first_offset=each.position,
        next_offset=each.following,
        last_time=each.observed_at,
        topic_id=each.topic_id,
        detail=each.detail,
        run_id=run_id,
        found_at=now,
        **settled,  # type: ignore[arg-type]
    )
