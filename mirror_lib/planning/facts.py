"""Read the input of a plan: topics, ids, offsets and sizes of both clusters, and the stored positions."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetFact
from mirror_lib.cluster.admin.model import OffsetSpec, TopicDescription
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.position_format import SOURCE_CONNECTOR, ClusterPair, Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore, StoredPosition
from mirror_lib.config.first_start import first_starts
from mirror_lib.config.gc_pause import collections_paused
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.errors import DirtyStartError, MirrorError, TopicMissingError, TopologyError, Where
from mirror_lib.identity.clusters import cluster_pair
from mirror_lib.identity.ledger_positions import LedgerPositions, Past
from mirror_lib.identity.targets import CopiedTo, TargetPartition, copied_to
from mirror_lib.planning.altered_positions import AlteredPosition, altered_position, with_altered
from mirror_lib.planning.markers import WrittenRanges
from mirror_lib.planning.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem, ProducerMemory
from mirror_lib.planning.next_steps import after_malformed_position
from mirror_lib.planning.open_transactions import longest_transaction_seconds
from mirror_lib.planning.producer_expiry import producer_memory
from mirror_lib.planning.source_logs import SourceLogs, read_source_logs
from mirror_lib.planning.target_records import compare_targets
from mirror_lib.planning.topic_limits import DEFAULT_MAX_MESSAGE_BYTES, TopicLimits, read_limits, read_rules
from mirror_lib.records.rules import ANY_RECORD, RecordRules
from mirror_lib.sync.admins import source_admin, target_admin
from mirror_lib.sync.hidden_by_acls import in_words, unseen_topics
from mirror_lib.sync.loops.flow import namesake_notes, refuse_own_copies
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_NO_LIMITS = TopicLimits()
_NO_TRUNCATIONS: Mapping[tuple[TopicPartition, int], int] = MappingProxyType({})


@dataclass(slots=True)
class FlowClusters:
    """The clients that one run of a flow uses on the driver, and the state that they read last."""

    flow: FlowConfig
    source_admin: ClusterAdmin
    target_admin: ClusterAdmin
    positions: PositionStore
    positions_connection: Connection
    source_data: Connection
    target_data: Connection
    #: What was written to both clusters behind the copies of the flows.
    source_writes: WrittenRanges
    target_writes: WrittenRanges
    positions_at_plan: PositionSnapshot = field(default_factory=PositionSnapshot)
    #: Topics already reported as not visible: once in a run is enough.
    reported_unseen: set[str] = field(default_factory=set)
    #: Topics that the source has, selected or not.
    listed: Collection[str] = ()
    #: Topics that the configuration names and the source does not have.
    missing_topics: tuple[str, ...] = ()
    #: Sentences about the source for the plan.
    notes: tuple[str, ...] = ()
    #: Source topics with lag whose target replaces timestamps.
    replaced_timestamps: Sequence[str] = ()
    #: Positions that an operator has altered in Connect's form.
    altered: Sequence[AlteredPosition] = ()
    #: By cluster, the partitions whose last copied record was found there: checking once in a run is enough.
    known_again: defaultdict[str, set[TopicPartition]] = field(default_factory=lambda: defaultdict(set))
    #: Epoch milliseconds: when these clients last saw a partition copied to its end. A run stores nothing about that.
    idle_at: dict[TopicPartition, int] = field(default_factory=dict)
    #: Number of plans made with these clients: the rounds of a run.
    plans: int = 0
    _sources: dict[TopicPartition, list[TopicPartition]] = field(default_factory=dict)
    _memory: ProducerMemory | None = None
    _longest_transaction: float | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def connect(
        cls, flow: FlowConfig, *, connector: str = SOURCE_CONNECTOR, admin_seconds: float | None = None
    ) -> FlowClusters:
        """Create the admin clients without sending a request.

        Args:
            connector: connector name of the positions: the flow's own, or a backfill's.
            admin_seconds: timeout of each call of the admin clients; default `admin.timeout.ms`.
        """
        clients = flow.clients
        internal = Connection.from_settings(clients.target_internal)
        source_data = Connection.from_settings(clients.data_consumer)
        target_data = Connection.from_settings(clients.data_producer)
        return cls(
            flow=flow,
            source_admin=source_admin(flow, admin_seconds),
            target_admin=target_admin(flow, admin_seconds),
            positions=PositionStore(internal, flow.offset_storage_topic, flow.source_alias, connector=connector),
            positions_connection=internal,
            source_data=source_data,
            target_data=target_data,
            source_writes=WrittenRanges(source_data),
            target_writes=WrittenRanges(target_data),
        )

    @property
    def read_committed(self) -> bool:
        """True if aborted and open transactions of the source are skipped."""
        return self.flow.isolation_level is IsolationLevel.READ_COMMITTED

    def producer_memory(self) -> ProducerMemory:
        """Expiration of producer state on the target's brokers; requested once."""
        if self._memory is None:
            self._memory = producer_memory(self.target_admin)
        return self._memory

    def longest_transaction_seconds(self) -> float:
        """Maximum seconds that a transaction may stay open on the source; requested once."""
        if self._longest_transaction is None:
            self._longest_transaction = longest_transaction_seconds(self.source_admin)
        return self._longest_transaction

    def ids(self) -> ClusterPair | None:
        """The ids of both clusters; None if one of them has none (before Kafka 0.10.1)."""
        return cluster_pair(self.source_admin, self.target_admin)

    def sources_of(self, target: TopicPartition) -> Sequence[TopicPartition]:
        """The source partitions of the last plan with this target partition; several in a merge."""
        return self._sources.get(target, ())

    def note_sources(self, pairs: Iterable[tuple[TopicPartition, TopicPartition]]) -> None:
        """Remember the target partition of each source partition."""
        self._sources.clear()
        for source, target in pairs:
            self._sources.setdefault(target, []).append(source)

    def __enter__(self) -> Self:
        for client in (self.source_admin, self.target_admin, self.positions):
            self._stack.enter_context(client)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


@collections_paused()
def gather_facts(
    flow: FlowConfig,
    topology: FlowTopology,
    clusters: FlowClusters,
    *,
    topics_synced: bool = True,
    stopped: Collection[TopicPartition] = (),
    truncations: Mapping[tuple[TopicPartition, int], int] = _NO_TRUNCATIONS,
    runs_before: Callable[[], int] | None = None,
    known_topics: Collection[str] | None = None,
    ledger: LedgerPositions | None = None,
) -> tuple[list[PartitionFacts], tuple[PartitionProblem, ...]]:
    """The facts of every partition that the flow selects, and the partitions that cannot be planned.

    Args:
        topics_synced: whether a missing target topic or partition is a problem; if False, the topic sync before a run
            would create it.
        stopped: partitions that are not replicated any more; nothing is requested for them.
        truncations: the lowest log end offset that earlier runs found before a position, if no operator has decided.
        runs_before: the number of earlier runs, if not all idle partitions are to be compared in each plan.
        ledger: what the ledger has; None if there is none.

    Raises:
        ConfigurationError: a batch cannot follow this `auto.offset.reset`.
    """
    with clusters.positions.reading_all() as positions:
        listed = clusters.source_admin.list_topics()
        clusters.listed = frozenset(listed)
        names = [topic for topic in listed if topology.replicates(topic)]
        sources = clusters.source_admin.describe_topics(names)
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

    problems = [
        PartitionProblem(TopicPartition(topic, WHOLE_TOPIC), with_flow(flow, error, TopicPartition(topic, WHOLE_TOPIC)))
        for topic, error in sources.errors.items()
        # Deleted since it was listed: there is nothing to copy any more.
        if not isinstance(error, TopicMissingError)
    ]
    problems += _unseen(flow, topology, clusters, listed, stopped)
    pairs: list[tuple[TopicPartition, TopicPartition]] = []
    facts = []
    for topic, description in sorted(sources.items()):
        for pair in _pairs(description, remote[topic]):
            if pair[0] in stopped:
                facts.append(_stopped_facts(pair, description))
                continue
            error = (
                collisions.get(topic)
                or _target_problem(
                    flow,
                    pair,
                    targets.get(remote[topic]),
                    targets.errors.get(remote[topic]),
                    synced=topics_synced,
                    position=clusters.positions_at_plan.positions.get(pair[0]),
                )
                or _position_problem(flow, pair[0], clusters.positions_at_plan)
            )
            if error is None:
                pairs.append(pair)
            else:
                problems.append(PartitionProblem(pair[0], with_flow(flow, error, pair[0])))
    clusters.note_sources((*pairs, *_earlier_pairs(topology, clusters.positions_at_plan, {pair[0] for pair in pairs})))
    turn = None if runs_before is None else lambda: runs_before() + clusters.plans
    # Both clusters take their time with thousands of partitions.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="target-ends") as pool:
        asked = pool.submit(_target_ends, clusters, pairs, targets, ledger.rows if ledger is not None else ())
        refused = _resolve_altered(flow, clusters, pairs, asked.result)
        problems += refused
        pairs = [pair for pair in pairs if pair[0] not in {problem.source for problem in refused}]
        logs = read_source_logs(
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
        logs.ends,
        ends,
        known_again=clusters.known_again[clusters.target_data.cluster],
        turn=turn,
    )
    clusters.plans += 1
    first_counts = _first_partitions(sources, clusters.positions_at_plan)
    limited = {topic: remote[topic] for topic in logs.behind if remote[topic] in targets}
    limits = read_limits(clusters.target_admin, limited.values())
    rules = read_rules(clusters.source_admin, limits, limited)
    clusters.replaced_timestamps = sorted(
        topic for topic, target in limited.items() if target in limits and limits[target].log_append_time
    )
    altered = {each.after.source for each in clusters.altered}
    for pair in pairs:
        end = ends.get(pair[1])
        there_too = on_target.get(pair[0])
        error = logs.error(pair[0]) or (end.error if end else None)
        error = error or (there_too if isinstance(there_too, MirrorError) else None)
        if error is None:
            limit, demands = limits.get(pair[1].topic, _NO_LIMITS), rules.get(pair[0].topic, ANY_RECORD)
            stored = clusters.positions_at_plan.positions.get(pair[0])
            position = stored.position if stored else None
            there = targets.get(pair[1].topic)
            past = Past.of(position, ledger, pair[0], altered=pair[0] in altered)
            target = _Target(
                TargetPartition(pair[1].topic, there.topic_id if there else None, end.offset if end else None),
                past.copied_to(_copied_to(clusters, pair, position)),
                ids,
                first_counts[pair[0].topic],
                there_too if isinstance(there_too, bool) else None,
                limit.max_batch_bytes(flow.copy_settings),
                demands,
            )
            remembered = _Remembered(
                past,
                altered=pair[0] in altered,
                is_new=position is None and known_topics is not None and pair[0].topic not in known_topics,
                was_begun=past.was_begun and pair[0] not in clusters.positions_at_plan.reset,
                caught_up_at=max(_caught_up_at(stored) or 0, clusters.idle_at.get(pair[0], 0)) or None,
            )
            fact = _facts(pair, sources[pair[0].topic], logs, position, truncations, target, remembered)
            facts.append(fact)
            if fact.position == fact.log_end:
                clusters.idle_at[pair[0]] = logs.asked_at
        else:
            problems.append(PartitionProblem(pair[0], with_flow(flow, error, pair[0])))
    return facts, tuple(problems)


def _resolve_altered(
    flow: FlowConfig,
    clusters: FlowClusters,
    pairs: Iterable[tuple[TopicPartition, TopicPartition]],
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


def _copied_to(
    clusters: FlowClusters, pair: tuple[TopicPartition, TopicPartition], position: Position | None
) -> CopiedTo | None:
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
    pairs: Iterable[tuple[TopicPartition, TopicPartition]],
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
    listed: Collection[str],
    stopped: Collection[TopicPartition],
) -> Iterator[PartitionProblem]:
    """Named topics that the flow is not authorized to see. Others may be deleted: those are only logged."""
    copied = clusters.positions_at_plan.positions
    unseen = unseen_topics(clusters.source_admin, flow, topology, listed, copied, stopped)
    for topic, refusal in unseen.refused.items():
        whole = TopicPartition(topic, WHOLE_TOPIC)
        yield PartitionProblem(whole, with_flow(flow, refusal, whole))
    clusters.missing_topics = unseen.missing
    news = {topic: error for topic, error in unseen.doubtful.items() if topic not in clusters.reported_unseen}
    clusters.reported_unseen.update(news)
    for line in in_words("No records are copied from {}", news):
        _log.warning("Flow %s: %s", flow.flow, line)


def _earlier_pairs(
    topology: FlowTopology, snapshot: PositionSnapshot, planned: set[TopicPartition]
) -> Iterator[tuple[TopicPartition, TopicPartition]]:
    """Other source partitions with targets in a merge: of topics that this run does not copy, or that are deleted."""
    if topology.rename.merge:
        for source in (*snapshot.positions, *snapshot.unreadable):
            if source not in planned:
                yield source, TopicPartition(topology.remote_topic(source.topic), source.partition)


def _pairs(description: TopicDescription, remote: str) -> list[tuple[TopicPartition, TopicPartition]]:
    return [
        (TopicPartition(description.name, partition.partition), TopicPartition(remote, partition.partition))
        for partition in description.partitions
    ]


def _target_problem(
    flow: FlowConfig,
    pair: tuple[TopicPartition, TopicPartition],
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
    pair: tuple[TopicPartition, TopicPartition],
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


def _stopped_facts(pair: tuple[TopicPartition, TopicPartition], topic: TopicDescription) -> PartitionFacts:
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
