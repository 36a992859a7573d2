"""Read the input of a plan: topics, ids, offsets and sizes of both clusters, and the stored positions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec, PerTopic, TopicDescription
from mirror_lib.cluster.topics.position_format import ClusterPair, Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionSnapshot, StoredPosition
from mirror_lib.config.first_start import first_starts
from mirror_lib.config.gc_pause import collections_paused
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import DirtyStartError, MirrorError, TopicMissingError, TopologyError, Where
from mirror_lib.identity.ledger_positions import LedgerPositions, Past
from mirror_lib.identity.targets import CopiedTo, TargetPartition, copied_to
from mirror_lib.planning.altered_positions import AlteredPosition, altered_position, with_altered
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem
from mirror_lib.planning.next_steps import after_malformed_position
from mirror_lib.planning.source_logs import SourceLogs, read_source_logs
from mirror_lib.planning.target_records import compare_targets
from mirror_lib.planning.topic_limits import DEFAULT_MAX_MESSAGE_BYTES, TopicLimits, read_limits, read_rules
from mirror_lib.records.rules import ANY_RECORD, RecordRules
from mirror_lib.sync.hidden_by_acls import in_words, unseen_topics
from mirror_lib.sync.loops.flow import namesake_notes, refuse_own_copies
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_NO_LIMITS = TopicLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownState:
    """What a flow has stored, as far as its plan asks for it."""

    #: Partitions that are not replicated any more; nothing is requested for them.
    stopped: Collection[TopicPartition] = ()
    #: The lowest log end offset that earlier runs found before a position, if no operator has decided.
    truncations: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    #: The number of earlier runs, if not all idle partitions are to be compared in each plan.
    runs_before: Callable[[], int] | None = None
    #: Topics that the source had at the last run.
    topics: Collection[str] | None = None
    #: What the ledger has; None if there is none.
    ledger: LedgerPositions | None = None


NOTHING_KNOWN = KnownState()
_Pair = tuple[TopicPartition, TopicPartition]


@collections_paused()
def gather_facts(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    known: KnownState = NOTHING_KNOWN,
    *,
    topics_synced: bool = True,
) -> tuple[list[PartitionFacts], tuple[PartitionProblem, ...]]:
    """The facts of every partition that the flow selects, and the partitions that cannot be planned.

    Args:
        topics_synced: whether a missing target topic or partition is a problem; if False, the topic sync before a run
            would create it.

    Raises:
        ConfigurationError: a batch cannot follow this `auto.offset.reset`.
    """
    topics = _read_topics(flow, topology, clusters)
    facts, pairs, problems = _sort_out(flow, topics, clusters.positions_at_plan, known, topics_synced=topics_synced)
    problems = [*topics.problems(flow), *_unseen(flow, topology, clusters, known.stopped), *problems]
    clusters.note_sources((*pairs, *_earlier_pairs(topology, clusters.positions_at_plan, {pair[0] for pair in pairs})))
    logs, refused = _read_logs(flow, clusters, pairs, topics, known)
    problems += refused
    facts += _combine(flow, clusters, topics, logs, known, problems)
    return facts, tuple(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topics:
    """The selected topics of the source, and their remote topics."""

    sources: PerTopic[TopicDescription]
    targets: PerTopic[TopicDescription]
    #: Remote topic by source topic.
    remote: Mapping[str, str]
    ids: ClusterPair | None
    #: Names that the flow cannot use, by source topic.
    collisions: Mapping[str, MirrorError]

    def problems(self, flow: FlowConfig) -> Iterator[PartitionProblem]:
        """Source topics that cannot be described."""
        for topic, error in self.sources.errors.items():
            # Deleted since it was listed: there is nothing to copy any more.
            if not isinstance(error, TopicMissingError):
                whole = TopicPartition(topic, WHOLE_TOPIC)
                yield PartitionProblem(whole, with_flow(flow, error, whole))


def _read_topics(flow: FlowConfig, topology: FlowTopology, clusters: FlowClusters) -> _Topics:
    with clusters.positions.reading_all() as positions:
        listed = clusters.source_admin.list_topics()
        clusters.listed = frozenset(listed)
        sources = clusters.source_admin.describe_topics([topic for topic in listed if topology.replicates(topic)])
        remote = {topic: topology.remote_topic(topic) for topic in sources}
        ids = clusters.ids()
        refuse_own_copies(topology, ids, remote)
        clusters.notes = namesake_notes(flow, topology, clusters.ids, listed, remote)
        targets = clusters.target_admin.describe_topics(sorted(set(remote.values())))
        # The target's other topics matter only if a name is missing there.
        missing = any(isinstance(error, TopicMissingError) for error in targets.errors.values())
        existing = clusters.target_admin.list_topics() if missing else targets
        counts = {topic: len(each.partitions) for topic, each in sources.items()}
        collisions = topology.name_table(counts, set(existing)).errors(str(flow.flow))
        clusters.positions_at_plan = positions()
    return _Topics(sources=sources, targets=targets, remote=remote, ids=ids, collisions=collisions)


def _sort_out(
    flow: FlowConfig, topics: _Topics, snapshot: PositionSnapshot, known: KnownState, *, topics_synced: bool
) -> tuple[list[PartitionFacts], list[_Pair], list[PartitionProblem]]:
    """The facts of stopped partitions, the pairs to read, and the partitions that cannot be planned."""
    facts: list[PartitionFacts] = []
    pairs: list[_Pair] = []
    problems: list[PartitionProblem] = []
    for topic, description in sorted(topics.sources.items()):
        remote = topics.remote[topic]
        for pair in _pairs(description, remote):
            if pair[0] in known.stopped:
                facts.append(_stopped_facts(pair, description))
                continue
            error = (
                topics.collisions.get(topic)
                or _target_problem(
                    flow,
                    pair,
                    topics.targets.get(remote),
                    topics.targets.errors.get(remote),
                    synced=topics_synced,
                    position=snapshot.positions.get(pair[0]),
                )
                or _position_problem(flow, pair[0], snapshot)
            )
            if error is None:
                pairs.append(pair)
            else:
                problems.append(PartitionProblem(pair[0], with_flow(flow, error, pair[0])))
    return facts, pairs, problems


@dataclass(frozen=True, slots=True)
class _Logs:
    """What the logs of both clusters say about the pairs."""

    pairs: list[_Pair]
    source: SourceLogs
    ends: Mapping[TopicPartition, OffsetFact]
    #: By source partition, whether the target has the record of the position, or why that is not known.
    on_target: Mapping[TopicPartition, bool | MirrorError]


def _read_logs(
    flow: FlowConfig, clusters: FlowClusters, pairs: list[_Pair], topics: _Topics, known: KnownState
) -> tuple[_Logs, list[PartitionProblem]]:
    runs_before = known.runs_before
    turn = None if runs_before is None else lambda: runs_before() + clusters.plans
    in_ledger = known.ledger.rows if known.ledger is not None else ()
    # Both clusters take their time with thousands of partitions.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="target-ends") as pool:
        asked = pool.submit(_target_ends, clusters, pairs, topics.targets, in_ledger)
        refused = _resolve_altered(flow, clusters, pairs, asked.result)
        pairs = [pair for pair in pairs if pair[0] not in {problem.source for problem in refused}]
        source = read_source_logs(
            clusters.source_admin,
            clusters.source_data,
            [source for source, _ in pairs],
            clusters.positions_at_plan.positions,
            read_committed=clusters.read_committed,
            first_starts=first_starts(flow),
            known_again=clusters.known_again[clusters.source_data.cluster],
            turn=turn,
        )
        ends = asked.result()
    on_target = compare_targets(
        clusters.target_data,
        pairs,
        clusters.positions_at_plan.positions,
        source.ends,
        ends,
        known_again=clusters.known_again[clusters.target_data.cluster],
        turn=turn,
    )
    clusters.plans += 1
    return _Logs(pairs, source, ends, on_target), refused


def _combine(
    flow: FlowConfig,
    clusters: FlowClusters,
    topics: _Topics,
    logs: _Logs,
    known: KnownState,
    problems: list[PartitionProblem],
) -> Iterator[PartitionFacts]:
    """Yield the facts of the partitions whose logs could be read; the others are added to the problems."""
    snapshot = clusters.positions_at_plan
    first_counts = _first_partitions(topics.sources, snapshot)
    limited = {topic: topics.remote[topic] for topic in logs.source.behind if topics.remote[topic] in topics.targets}
    limits = read_limits(clusters.target_admin, limited.values())
    rules = read_rules(clusters.source_admin, limits, limited)
    clusters.replaced_timestamps = sorted(
        topic for topic, target in limited.items() if target in limits and limits[target].log_append_time
    )
    altered = {each.after.source for each in clusters.altered}
    topics_before = known.topics if known.topics is not None else _topics_of_lost_ledger(clusters, logs.pairs, known)
    for pair in logs.pairs:
        source, target = pair
        end, there_too = logs.ends.get(target), logs.on_target.get(source)
        error = logs.source.error(source) or (end.error if end else None)
        error = error or (there_too if isinstance(there_too, MirrorError) else None)
        if error is not None:
            problems.append(PartitionProblem(source, with_flow(flow, error, source)))
            continue
        limit, demands = limits.get(target.topic, _NO_LIMITS), rules.get(source.topic, ANY_RECORD)
        stored = snapshot.positions.get(source)
        position = stored.position if stored else None
        there = topics.targets.get(target.topic)
        past = Past.of(position, known.ledger, source, altered=source in altered)
        on_target = _Target(
            TargetPartition(target.topic, there.topic_id if there else None, end.offset if end else None),
            past.copied_to(_copied_to(clusters, pair, position)),
            topics.ids,
            first_counts[source.topic],
            there_too if isinstance(there_too, bool) else None,
            limit.max_batch_bytes(flow.copy_settings),
            demands,
        )
        remembered = _Remembered(
            past,
            altered=source in altered,
            is_new=position is None and topics_before is not None and source.topic not in topics_before,
            was_begun=past.was_begun and source not in snapshot.reset,
            caught_up_at=max(_caught_up_at(stored) or 0, clusters.idle_at.get(source, 0)) or None,
        )
        description = topics.sources[source.topic]
        fact = _facts(pair, description, logs.source, position, known.truncations, on_target, remembered)
        if fact.position == fact.log_end:
            clusters.idle_at[source] = logs.source.asked_at
        yield fact


def _topics_of_lost_ledger(clusters: FlowClusters, pairs: Iterable[_Pair], known: KnownState) -> Collection[str] | None:
    """The topics that have positions, if another ledger has noted which ones there were; None at a first run."""
    stored = clusters.positions_at_plan.positions
    found = [(source, stored[source].position) for source, _ in pairs if source in stored]
    rows = () if known.ledger is None else known.ledger.rows
    is_lost = any(
        position.claim is not None and (source not in rows or Past.of(position, known.ledger, source).history.is_gap)
        for source, position in found
    )
    return {source.topic for source, _ in found} if is_lost else None


def _resolve_altered(
    flow: FlowConfig,
    clusters: FlowClusters,
    pairs: Iterable[_Pair],
    target_ends: Callable[[], Mapping[TopicPartition, OffsetFact]],
) -> list[PartitionProblem]:
    """Add missing fields to positions altered in Connect's form; return the errors of those that are refused.

    Args:
        target_ends: log end offsets of the target; requested only if there are such positions.
    """
    known = clusters.positions_at_plan
    altered: list[AlteredPosition] = []
    refused = []
    for source, target in pairs:
        stored = known.positions.get(source)
        if stored is None or stored.altered is None:
            continue
        end = target_ends().get(target)
        found = altered_position(flow.flow, source, stored, end.offset if end and not end.error else None)
        if isinstance(found, AlteredPosition):
            altered.append(found)
        elif found is not None:
            refused.append(PartitionProblem(source, found))
    clusters.altered = altered
    if altered:
        clusters.positions_at_plan = replace(known, positions=with_altered(known.positions, altered))
    return refused


def _first_partitions(sources: Mapping[str, TopicDescription], snapshot: PositionSnapshot) -> dict[str, int]:
    """Number of partitions of each topic when it was first copied; for a new topic the current number.

    Positions of MirrorMaker 2 and of version 0.1.0 do not have it. Partitions are added at the end, so those up to the
    last one with a position existed.
    """
    recorded: dict[str, int] = {}
    seen: dict[str, int] = {}
    for source, stored in snapshot.positions.items():
        count = stored.position.first_partitions
        if count is not None:
            recorded[source.topic] = min(count, recorded.get(source.topic, count))
        seen[source.topic] = max(source.partition + 1, seen.get(source.topic, 0))
    return {name: recorded.get(name) or seen.get(name) or len(topic.partitions) for name, topic in sources.items()}


def _copied_to(clusters: FlowClusters, pair: _Pair, position: Position | None) -> CopiedTo | None:
    if position is None:
        return None
    sharing = clusters.sources_of(pair[1])
    if len(sharing) < 2:
        return copied_to(position)
    stored = clusters.positions_at_plan.positions
    return copied_to(position, [stored[each].position for each in sharing if each in stored])


class _Target(NamedTuple):
    """The target of a source partition, as far as it is known."""

    now: TargetPartition
    copied_to: CopiedTo | None
    clusters: ClusterPair | None
    first_partitions: int
    #: Whether it has the record of the position; None if not requested or unknown.
    record_same: bool | None
    max_batch_bytes: int
    rules: RecordRules


class _Remembered(NamedTuple):
    """What the ledger, the position and earlier plans of the run say about a source partition."""

    past: Past
    altered: bool
    is_new: bool
    was_begun: bool
    caught_up_at: int | None


def _target_ends(
    clusters: FlowClusters,
    pairs: Iterable[_Pair],
    targets: Mapping[str, TopicDescription],
    in_ledger: Container[TopicPartition],
) -> Mapping[TopicPartition, OffsetFact]:
    """Log end offsets of the existing target partitions to which records were copied.

    Args:
        in_ledger: source partitions that the ledger knows: their positions may be lost.
    """
    known = {
        target
        for source, target in pairs
        if (source in clusters.positions_at_plan.positions or source in in_ledger)
        and target.topic in targets
        and target.partition < len(targets[target.topic].partitions)
    }
    return clusters.target_admin.list_offsets(known, OffsetSpec.LATEST) if known else {}


def _unseen(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    stopped: Collection[TopicPartition],
) -> Iterator[PartitionProblem]:
    """Named topics that the flow is not authorized to see. Others may be deleted: those are only logged."""
    copied = clusters.positions_at_plan.positions
    unseen = unseen_topics(clusters.source_admin, flow, topology, clusters.listed, copied, stopped)
    for topic, refusal in unseen.refused.items():
        whole = TopicPartition(topic, WHOLE_TOPIC)
        yield PartitionProblem(whole, with_flow(flow, refusal, whole))
    clusters.missing_topics = unseen.missing
    news = {topic: error for topic, error in unseen.doubtful.items() if topic not in clusters.reported_unseen}
    clusters.reported_unseen.update(news)
    for line in in_words("No records are copied from {}", news):
        _log.warning("Flow %s: %s", flow.flow, line)


def _earlier_pairs(topology: FlowTopology, snapshot: PositionSnapshot, planned: set[TopicPartition]) -> Iterator[_Pair]:
    """Other source partitions with targets in a merge: of topics that this run does not copy, or that are deleted."""
    if topology.rename.merge:
        for source in (*snapshot.positions, *snapshot.unreadable):
            if source not in planned:
                yield source, TopicPartition(topology.remote_topic(source.topic), source.partition)


def _pairs(description: TopicDescription, remote: str) -> list[_Pair]:
    return [
        (TopicPartition(description.name, partition.partition), TopicPartition(remote, partition.partition))
        for partition in description.partitions
    ]


def _target_problem(
    flow: FlowConfig,
    pair: _Pair,
    target: TopicDescription | None,
    failure: MirrorError | None,
    *,
    synced: bool,
    position: StoredPosition | None,
) -> MirrorError | None:
    source, wanted = pair
    if failure is not None and not isinstance(failure, TopicMissingError):
        return with_flow(flow, failure, source)
    if not synced or (target is not None and wanted.partition < len(target.partitions)):
        return None
    if position is not None and copied_to(position.position) is not None:
        # It existed: the plan reports what has become of it.
        return None
    where = Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)
    if target is None:
        return TopicMissingError(
            f"topic {wanted.topic} does not exist on cluster {flow.flow.target}.",
            where=where,
            action="Run the sync_topics task, or `mirror topics apply`.",
        )
    return TopologyError(
        f"topic {wanted.topic} on cluster {flow.flow.target} has only {len(target.partitions)} partitions.",
        where=where,
        action="Run the sync_topics task, or `mirror topics apply`, to add partitions.",
    )


def _position_problem(flow: FlowConfig, source: TopicPartition, snapshot: PositionSnapshot) -> MirrorError | None:
    unreadable = snapshot.unreadable.get(source)
    if unreadable is None:
        return None
    where = Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)
    return DirtyStartError(
        f"its latest position is malformed ({unreadable.error.what} in {flow.offset_storage_topic}, partition "
        f"{unreadable.record.partition}, offset {unreadable.record.offset}): the last copied offset is unknown.",
        where=where,
        action=after_malformed_position(where),
    )


def with_flow(flow: FlowConfig, error: MirrorError, source: TopicPartition) -> MirrorError:
    """An error of the admin client with a partition of this flow as its location."""
    partition = None if source.partition == WHOLE_TOPIC else source.partition
    return error.located(replace(error.where, flow=str(flow.flow), topic=source.topic, partition=partition))


def _facts(
    pair: _Pair,
    topic: TopicDescription,
    logs: SourceLogs,
    position: Position | None,
    truncations: Mapping[tuple[TopicPartition, int], int],
    on_target: _Target,
    remembered: _Remembered,
) -> PartitionFacts:
    source, target = pair
    # A stored offset of -1 means that the partition was claimed at 0 and nothing copied yet.
    next_offset = position.offset + 1 if position else None
    hidden = logs.hidden.get(source)
    return PartitionFacts(
        source=source,
        target=target,
        log_start=logs.starts[source].offset,
        log_end=logs.ends[source].offset,
        topic_id=topic.topic_id,
        position=next_offset,
        position_topic_id=position.topic_id if position else None,
        log_bytes=logs.sizes.get(source),
        target_max_message_bytes=on_target.max_batch_bytes,
        target_rules=on_target.rules,
        position_leader_epoch=position.leader_epoch if position else None,
        leader_epoch_end=logs.epoch_end(source),
        last_record=position.last_record if position else None,
        last_record_same=logs.last_record_same(source),
        target_record=position.target_record if position else None,
        target_record_same=on_target.record_same,
        first_offset=logs.first_offset(source),
        # If the position has changed since, an operator has decided.
        truncated_to=None if next_offset is None else truncations.get((source, next_offset)),
        interrupted=position is not None and position.state is PositionState.OPEN,
        target_now=on_target.now,
        copied_to=on_target.copied_to,
        clusters=on_target.clusters,
        first_partitions=on_target.first_partitions,
        is_new=remembered.is_new,
        was_begun=remembered.was_begun,
        caught_up_at=remembered.caught_up_at,
        altered=remembered.altered,
        copy=remembered.past.copy,
        history=remembered.past.history,
        asked_at=logs.asked_at,
        hidden=hidden if hidden is not None and hidden.end > max(next_offset or 0, logs.ends[source].offset) else None,
    )


def _caught_up_at(stored: StoredPosition | None) -> int | None:
    """When the copy was last at the end of the log; of MirrorMaker 2's positions it is known when they were stored."""
    if stored is None:
        return None
    position = stored.position
    return stored.stored_at if position.caught_up_at is None and position.claim is None else position.caught_up_at


def _stopped_facts(pair: _Pair, topic: TopicDescription) -> PartitionFacts:
    return PartitionFacts(
        source=pair[0],
        target=pair[1],
        log_start=0,
        log_end=0,
        topic_id=topic.topic_id,
        position=None,
        position_topic_id=None,
        log_bytes=None,
        target_max_message_bytes=DEFAULT_MAX_MESSAGE_BYTES,
        stopped=True,
    )
