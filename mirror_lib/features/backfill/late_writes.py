"""Late records: written to the source of a topic after a cutover has moved the topic's writers to the target.

No flow copies them, and no consumer on the target sees that they are missing. So each observation of a flow compares
the end of every source partition that was handed over with the end of the known records: the cut, what the opposite
flow has written after it, and what an operator has fetched or accepted since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.topics.position_format import PositionState
from mirror_lib.cluster.topics.position_store import StoredPosition
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import Where, WrittenAfterCutoverError
from mirror_lib.features.backfill.tables import Backfills
from mirror_lib.ledger.cutover_rows import HandedOverRow
from mirror_lib.ledger.rows import GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.planning.backfills import FROM_CUTOVER, backfill_id
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.handed_over import AfterCutover
from mirror_lib.planning.model import PartitionFacts, PartitionProblem, SourceLoss
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import FlowId, TopicPartition

_NAMED = 3


@dataclass(frozen=True, slots=True)
class LateWrites:
    """Source records [first, following) of one partition, written after its cutover."""

    source: TopicPartition
    first: int
    following: int
    topic_id: str | None
    target_topic: str
    #: The cutover that has moved the writers.
    cutover: str

    def problem(self, flow: FlowId) -> PartitionProblem:
        """The records as a problem of the flow that no longer copies the topic."""
        error = WrittenAfterCutoverError(
            f"offsets {self.first} to {self.following - 1} were produced to the source after cutover {self.cutover} "
            f"had moved the topic's producers to {self.target_topic} on {flow.target}: no flow copies them.",
            where=Where(flow=str(flow), topic=self.source.topic, partition=self.source.partition, offset=self.first),
            action=_find_and_fetch(flow, self.source.topic),
        )
        return PartitionProblem(self.source, error, SourceLoss(self.first, self.following, self.topic_id))


def _find_and_fetch(flow: FlowId, topic: str) -> str:
    return (
        "Find that producer and move it. Then copy the records into a separate topic: `mirror backfill run --flow "
        f"'{flow}' --topics '{topic}' --from {FROM_CUTOVER} --into-suffix .late`; or leave them on the source: "
        f"`mirror gaps accept --flow '{flow}' --topic {topic}`."
    )


def after_cutover(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    facts: Sequence[PartitionFacts],
    ledger: Ledger,
) -> AfterCutover:
    """Return what late records mean for a flow (`Hook.AFTER_CUTOVER`)."""
    late = find_late_writes(topology, clusters, ledger)
    moved, refused = late_writes_on_target(flow, clusters, facts, ledger)
    return AfterCutover(
        late=tuple(each.problem(flow.flow) for each in late.writes),
        notes=tuple(doubtful_notes(flow.flow, late)),
        refused=refused,
        moved=moved,
    )


class LateFindings(NamedTuple):
    """The late records of a flow, by topic and partition."""

    writes: tuple[LateWrites, ...] = ()
    #: Partitions that have grown while it is not known by whom: a run of the opposite flow was interrupted.
    doubtful: tuple[TopicPartition, ...] = ()


def doubtful_notes(flow: FlowId, found: LateFindings) -> Iterator[str]:
    """A sentence about partitions whose late records cannot be distinguished from the opposite flow's, if any."""
    if found.doubtful:
        named = ", ".join(str(each) for each in found.doubtful[:_NAMED])
        more = f", and {len(found.doubtful) - _NAMED:,} more" if len(found.doubtful) > _NAMED else ""
        yield (
            f"Whether records were produced to {flow.source} after the cutover is unknown on {named}{more}: the last "
            f"run of flow {flow.opposite} was interrupted, and may have written them. Run that flow, which finds out."
        )


def find_late_writes(topology: FlowTopology, clusters: FlowClusters, ledger: Ledger | None) -> LateFindings:
    """The late records of all topics that cutovers have removed from a flow.

    Args:
        topology: the flow's; only its limit to some topics is used.

    Raises:
        MirrorError: the source does not respond, or the ledger cannot be used.
    """
    flow = FlowId(topology.flow.source, topology.flow.target)
    rows = {
        row.topic: row
        for row in (ledger.handovers.handed_over(str(flow)) if ledger else ())
        if all(limit.fullmatch(row.topic) for limit in topology.limits)
    }
    if ledger is None or not rows:
        return LateFindings()
    described = clusters.source_admin.describe_topics(sorted(rows))
    sources = [
        TopicPartition(name, partition.partition)
        for name, topic in sorted(described.items())
        for partition in topic.partitions
    ]
    # Read the ends first: later writes of the opposite flow must not look like late records.
    ends = clusters.source_admin.list_offsets(sources, OffsetSpec.LATEST)
    known = accounted_for(ledger, flow, rows.values())
    written_back = _written_back(ledger, flow)
    found: list[LateWrites] = []
    doubtful: list[TopicPartition] = []
    for source in sources:
        row, end = rows[source.topic], ends[source]
        expected = known.get(source)
        back = written_back.get(TopicPartition(row.target_topic, source.partition))
        if back is not None:
            if back.target_offset is None and end.offset > (expected or 0):
                # A run of the opposite flow writes now, or was interrupted: that flow finds out whose records these
                # are.
                if not back.is_running:
                    doubtful.append(source)
                continue
            expected = max(expected or 0, back.target_offset or 0)
        if expected is None and _was_cut(ledger, row):
            # A partition that was added since the cutover.
            expected = 0
        if end.error is None and expected is not None and end.offset > expected:
            topic_id = described[source.topic].topic_id
            found.append(LateWrites(source, expected, end.offset, topic_id, row.target_topic, row.cutover))
    written = clusters.source_writes.with_records({each.source: (each.first, each.following) for each in found})
    return LateFindings(tuple(each for each in found if each.source in written), tuple(doubtful))


def accounted_for(ledger: Ledger, flow: FlowId, rows: Iterable[HandedOverRow]) -> dict[TopicPartition, int]:
    """Source offsets up to which no record is late: cuts, accepted records, and records that backfills have fetched.

    Args:
        flow: the flow that no longer copies the topics of `rows`.
    """
    topics = {row.topic for row in rows}
    ends = {
        TopicPartition(cut.topic, cut.partition): cut.source_end
        for cutover in {row.cutover for row in rows}
        for cut in ledger.handovers.cuts(cutover)
        if cut.topic in topics
    }
    settled = [
        (TopicPartition(gap.topic, gap.partition), gap.next_offset)
        for gap in ledger.gaps(str(flow), limit=None)
        if gap.cause == WrittenAfterCutoverError.reason and gap.state != GapState.OPEN and gap.topic in topics
    ]
    for backfill in Backfills(ledger).of_flow(str(flow)):
        if backfill.definition["request"]["from"] == FROM_CUTOVER:
            name = backfill_id(flow, backfill.name)
            settled += [
                (TopicPartition(each.topic, each.partition), each.offset + 1)
                for each in ledger.positions(str(name))
                if each.topic in topics
            ]
    for source, end in settled:
        ends[source] = max(end, ends.get(source, 0))
    return ends


@dataclass(frozen=True, slots=True)
class _WrittenBack:
    #: Target offset up to which the opposite flow has written; None if it is not certain.
    target_offset: int | None
    #: A run of that flow is active.
    is_running: bool


def _written_back(ledger: Ledger, flow: FlowId) -> Mapping[TopicPartition, _WrittenBack]:
    """End of the opposite flow's writes on this source, by the partitions of its own source."""
    back = str(flow.opposite)
    running = ledger.lock_holder(back) is not None
    return {
        TopicPartition(row.topic, row.partition): _WrittenBack(
            None if running or row.state != PositionState.CLOSED.value else row.target_offset, running
        )
        for row in ledger.positions(back)
    }


def _was_cut(ledger: Ledger, row: HandedOverRow) -> bool:
    return any(cut.topic == row.topic for cut in ledger.handovers.cuts(row.cutover))


class _Grown(NamedTuple):
    """A partition at home with target offsets [first, following) after what was copied to it."""

    fact: PartitionFacts
    row: HandedOverRow
    stored: StoredPosition
    offsets: tuple[int, int]


def late_writes_on_target(
    flow: FlowConfig, clusters: FlowClusters, facts: Sequence[PartitionFacts], ledger: Ledger | None
) -> tuple[Mapping[TopicPartition, StoredPosition], tuple[PartitionProblem, ...]]:
    """Late records on the target of the opposite flow, after the records that it has written there: `moved` and
    `refused` of `AfterCutover`.

    Only clean starts are checked: an open position may be followed by the records of an interrupted run.
    """
    here = flow.handovers.here
    behind = [
        fact
        for fact in facts
        if fact.source.topic in here and not fact.interrupted and fact.position is not None and _has_grown(fact)
    ]
    if ledger is None or not behind:
        return {}, ()
    led_here = flow.flow.opposite
    rows = ledger.handovers.handed_over(str(led_here))
    known = accounted_for(ledger, led_here, rows)
    by_home = {row.topic: row for row in rows}
    # A run may have begun between reading positions and reading ends.
    since = {stored.position.source for stored in clusters.positions.read_since(clusters.positions_at_plan)}
    grown: list[_Grown] = []
    for fact in behind:
        row = by_home.get(fact.target.topic)
        stored = clusters.positions_at_plan.positions.get(fact.source)
        if row is None or stored is None or fact.source in since or fact.target_now is None:
            continue
        offsets = (stored.position.target_offset or 0, fact.target_now.log_end or 0)
        grown.append(_Grown(fact, row, stored, offsets))
    written = clusters.target_writes.with_records(
        {each.fact.target: each.offsets for each in grown if each.offsets[1] > known.get(each.fact.target, 0)}
    )
    moved, problems = {}, []
    for fact, row, stored, (first, end) in grown:
        if fact.target not in written:
            moved[fact.source] = replace(stored, position=replace(stored.position, target_offset=end))
            continue
        error = WrittenAfterCutoverError(
            f"offsets {first} to {end - 1} of {fact.target} were produced to {flow.flow.target} after cutover "
            f"{row.cutover} had moved the topic's producers to {flow.flow.source}: nothing is copied after them yet.",
            where=Where(flow=str(flow.flow), topic=fact.source.topic, partition=fact.source.partition),
            action=_find_and_fetch(led_here, fact.target.topic)
            + f" Then flow {flow.flow} continues after these records.",
        )
        problems.append(PartitionProblem(fact.source, error))
    return moved, tuple(problems)


def _has_grown(fact: PartitionFacts) -> bool:
    then, now = fact.copied_to, fact.target_now
    # A partition that was empty at the cut has no records yet.
    written_to = 0 if then is None else then.log_end
    if written_to is None or now is None or now.log_end is None:
        return False
    return now.log_end > written_to
