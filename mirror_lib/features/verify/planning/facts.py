"""Read the input of a plan: map and gaps from the ledger; offsets, policies and sizes from both clusters."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from mirror_lib.cluster.admin.client import ClusterAdmin, OffsetFact, PerTopic
from mirror_lib.cluster.admin.model import OffsetSpec, TopicConfigs
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics.position_format import Position, PositionState
from mirror_lib.cluster.topics.position_store import PositionSnapshot, PositionStore
from mirror_lib.config.first_start import EARLIEST, first_starts
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.config.topology import flow_topology
from mirror_lib.errors import (
    UNKNOWN_REASONS,
    AuthorizationError,
    ClusterError,
    MirrorError,
    OffsetMapError,
    SourceRecreatedError,
    TargetRecreatedError,
    TargetTruncatedError,
    TopicMissingError,
    Where,
    WrittenAfterCutoverError,
)
from mirror_lib.features.backfill.tables import Backfills
from mirror_lib.features.transforms.model import TransformChain, transforms_of
from mirror_lib.features.transforms.tables import RoutedRangeRow, RoutedRanges
from mirror_lib.features.verify.findings import PartitionVerdict, VerifiedMark
from mirror_lib.features.verify.model import NO_CHAIN, KnownGap, Obstacle, OppositeFacts, VerifyFacts
from mirror_lib.features.verify.planning.routed_plan import NO_ROUTED_FACTS, RoutedFacts, RoutedTarget, target_of
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.identity.clusters import about_one_cluster, check_clusters, cluster_pair
from mirror_lib.identity.histories import LedgerState
from mirror_lib.identity.ledger_positions import LedgerPositions, Past
from mirror_lib.identity.targets import TargetPartition, is_other_topic, position_change
from mirror_lib.ledger.directions import MapPart, map_parts
from mirror_lib.ledger.rows import DISASTER, REPEATED
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.runs import OffsetRun, Segment, merge
from mirror_lib.sync.admins import source_admin, target_admin
from mirror_lib.sync.hidden_by_acls import in_words, unseen_topics
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition


def routed_targets_of(rows: Iterable[RoutedRangeRow], target: ClusterAdmin) -> Mapping[TopicPartition, RoutedTarget]:
    """Return the facts of the target cluster about partitions that records are routed to.

    Raises:
        MirrorError: the cluster cannot be reached.
    """
    places = {target_of(row) for row in rows if not row.own}
    if not places:
        return {}
    # Records that a run has written and not committed are not read.
    ends = target.list_offsets(places, OffsetSpec.LAST_STABLE)
    starts = target.list_offsets(places, OffsetSpec.EARLIEST)
    configs = target.topic_configs({place.topic for place in places})
    found = {}
    for place in places:
        error = starts[place].error or ends[place].error or configs.errors.get(place.topic)
        if error is not None:
            found[place] = RoutedTarget(obstacle=_obstacle(error))
            continue
        values = configs[place.topic]
        policy = values.value("cleanup.policy") or ""
        found[place] = RoutedTarget(
            start=starts[place].offset,
            end=ends[place].offset,
            compacted="compact" in [part.strip() for part in policy.split(",")],
            timed=not values.has_append_times,
        )
    return found


def is_ahead(position: Position, known: int | None) -> bool:
    """Return True if the target may hold more of a source partition than is known.

    Args:
        known: of `RoutedFacts.known_to`.
    """
    if position.state is not PositionState.CLOSED:
        return True
    return known is not None and position.offset + 1 > known


def _obstacle(error: MirrorError) -> Obstacle:
    return Obstacle(error.reason, str(error))


_log = logging.getLogger(__name__)

_Pair = tuple[TopicPartition, TopicPartition]
#: Causes of gaps for records that only the source of a flow has, between records that the opposite flow writes there.
_ONLY_THERE = frozenset({DISASTER, REPEATED, WrittenAfterCutoverError.reason})


@dataclass(frozen=True, slots=True)
class Gathered:
    """The facts of every partition that can be planned, and the others with the reason why not."""

    facts: tuple[VerifyFacts, ...]
    unverifiable: tuple[PartitionVerdict, ...]
    routed: RoutedFacts = NO_ROUTED_FACTS
    #: The copy of each partition, as in its position.
    copies: Mapping[TopicPartition, str | None] = field(default_factory=dict)


def gather(flow: FlowConfig, ledger: Ledger, topics: Sequence[str] = ()) -> Gathered:
    """Read both clusters and the ledger; changes nothing.

    Args:
        topics: Java regexes; empty takes all topics of the flow.

    Raises:
        ConfigurationError: the flow takes none of the topics.
        MirrorError: a cluster cannot be reached, or the ledger cannot be used.
    """
    topology = flow_topology(flow, topics)
    internal = Connection.from_settings(flow.clients.target_internal)
    with ExitStack() as stack:
        source = stack.enter_context(source_admin(flow))
        target = stack.enter_context(target_admin(flow))
        ids = cluster_pair(source, target)
        check_clusters(flow, ledger, ids)
        for sentence in about_one_cluster(flow.flow, ids):
            _log.warning("Flow %s: %s", flow.flow, sentence)
        positions = stack.enter_context(PositionStore(internal, flow.offset_storage_topic, flow.source_alias))
        return _Gathering(flow, ledger, topology, source, target, positions).run()


@dataclass(slots=True)
class _Gathering:
    _flow: FlowConfig
    _ledger: Ledger
    _topology: FlowTopology
    _source: ClusterAdmin
    _target: ClusterAdmin
    _positions: PositionStore
    _unverifiable: list[PartitionVerdict] = field(default_factory=list)
    _topic_ids: dict[str, str | None] = field(default_factory=dict)
    _target_ids: dict[str, str | None] = field(default_factory=dict)
    _listed: list[str] = field(default_factory=list)
    _parts: dict[TopicPartition, tuple[MapPart, ...]] = field(default_factory=dict)
    #: Pairs without a target partition.
    _missing: list[_Pair] = field(default_factory=list)

    @property
    def _name(self) -> str:
        return str(self._flow.flow)

    def run(self) -> Gathered:
        pairs = self._pairs()
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        # In this order: what the map has was written before the ends are read, and what a position calls settled was
        # settled when the target's end was read.
        maps = self._maps(pairs)
        # Before Kafka's: an unfinished run must not look like the history of another ledger.
        known = LedgerPositions.read(self._ledger, self._flow.flow)
        routed_rows = RoutedRanges(self._ledger).of_flow(self._name)
        routed_targets = routed_targets_of(routed_rows, self._target)
        end_of_target = OffsetSpec.LAST_STABLE if self._flow.transactions else OffsetSpec.LATEST
        target_ends = self._target.list_offsets(set(targets), end_of_target)
        target_starts = self._target.list_offsets(set(targets), OffsetSpec.EARLIEST)
        snapshot = self._read_positions()
        past = {each: Past.of(stored.position, known, each) for each, stored in snapshot.positions.items()}
        # A map of another copy would compare other records; a longer one shows what a restored target lacks.
        other = {each for each, found in past.items() if found.history.state is LedgerState.OTHER_COPY}
        restored = {each for each, found in past.items() if found.history.state is LedgerState.AHEAD}
        maps = {each: () if each in other else runs for each, runs in maps.items()}
        self._parts |= dict.fromkeys(other & maps.keys(), ())
        for pair in self._missing:
            stored = snapshot.positions.get(pair[0])
            missing = self._missing_error(pair, stored.position if stored else None)
            self._unverifiable.append(PartitionVerdict.for_error(*pair, missing))
        committed = self._flow.isolation_level is IsolationLevel.READ_COMMITTED
        source_ends = self._source.list_offsets(sources, OffsetSpec.LAST_STABLE if committed else OffsetSpec.LATEST)
        source_starts = self._source.list_offsets(sources, OffsetSpec.EARLIEST)
        source_configs = self._source.topic_configs({each.topic for each in sources})
        target_configs = self._target.topic_configs({each.topic for each in targets})
        sizes = asyncio.run(_log_sizes(self._flow, {each.topic for each in sources}))
        opposite = str(self._flow.flow.opposite)
        gaps, back_gaps = self._gaps(self._name), self._gaps(opposite)
        foreign, back_filled = _foreign(back_gaps), self._backfilled_targets(opposite)
        marks = {
            TopicPartition(row.topic, row.partition): VerifiedMark(row.source_next, row.target_next)
            for row in Verifications(self._ledger).verified_up_to(self._name)
            if TopicPartition(row.topic, row.partition) not in other | restored
        }
        sharing, backfilled, chains = Counter(targets), self._backfilled_targets(self._name), self._chains(sources)
        routed = self._routed_facts(routed_rows, routed_targets, snapshot, backfilled)
        met = routed.routed_targets()
        starts = first_starts(self._flow)
        facts = []
        for pair in pairs:
            offsets = (source_starts[pair[0]], source_ends[pair[0]], target_starts[pair[1]], target_ends[pair[1]])
            stored = snapshot.positions.get(pair[0])
            position = stored.position if stored else None
            refused = source_configs.errors.get(pair[0].topic) or target_configs.errors.get(pair[1].topic)
            error = (
                _error(offsets)
                or self._recreated_error(pair[0], position)
                or self._another_target(pair, position, offsets[3].offset)
                or _of_authorization(refused)
            )
            if error is not None and pair[0] in maps:
                self._unverifiable.append(PartitionVerdict.for_error(*pair, error))
                continue
            if pair[0] not in maps:
                continue
            facts.append(
                VerifyFacts(
                    source=pair[0],
                    target=pair[1],
                    runs=maps[pair[0]],
                    source_start=offsets[0].offset,
                    source_end=offsets[1].offset,
                    target_start=offsets[2].offset,
                    target_end=offsets[3].offset,
                    settled=_settled_mark(position),
                    source_compacted=_is_compacted(source_configs, pair[0].topic),
                    target_compacted=_is_compacted(target_configs, pair[1].topic),
                    source_bytes=sizes.get(pair[0]),
                    verified=marks.get(pair[0]),
                    known_gaps=(*gaps.get(pair[0], ()), *_skipped_gaps(position)),
                    known_foreign=foreign.get(pair[1], ()),
                    shared_target=sharing[pair[1]] > 1
                    or self._topology.rename.merge
                    or pair[1] in backfilled
                    or pair[1] in met,
                    chain=chains.get(pair[0].topic, NO_CHAIN),
                    copied_to=None if position is None else position.offset + 1,
                    starts_late=starts.of(pair[0].topic) != EARLIEST,
                    parts=self._parts[pair[0]],
                    opposite=OppositeFacts(tuple(back_gaps.get(pair[1], ())), pair[0] in back_filled),
                )
            )
        self._note_hidden(snapshot)
        if not self._unverifiable:
            self._topology.refuse_empty_choice(self._listed)
        copies = {each: found.copy for each, found in past.items()}
        return Gathered(tuple(facts), tuple(self._unverifiable), routed, copies)

    def _routed_facts(
        self,
        rows: Sequence[RoutedRangeRow],
        targets: Mapping[TopicPartition, RoutedTarget],
        snapshot: PositionSnapshot,
        backfilled: Set[TopicPartition],
    ) -> RoutedFacts:
        """Return the facts about records that transforms send to other partitions."""
        if not rows:
            return NO_ROUTED_FACTS
        # Including topics that are not compared this time.
        whole = flow_topology(self._flow)
        others = {
            place
            for name, place in RoutedRanges(self._ledger).of_others(self._name)
            if f"->{self._flow.flow.target}" in name
        }
        chains = self._chains(snapshot.positions)
        found = RoutedFacts(
            rows=tuple(rows),
            targets=targets,
            copied_to=frozenset(whole.remote_topic(topic) for topic in self._listed if whole.replicates(topic)),
            shared=frozenset(others | backfilled),
        )
        writing = any(
            chains.get(source.topic, NO_CHAIN).may_route and is_ahead(stored.position, found.known_to(source))
            for source, stored in snapshot.positions.items()
        )
        return replace(found, writing=writing)

    def _note_hidden(self, snapshot: PositionSnapshot) -> None:
        """Note topics that were copied but are not visible any more, so they cannot be compared. Many are deleted."""
        stopped = self._ledger.stopped_partitions(self._name)
        unseen = unseen_topics(self._source, self._flow, self._topology, self._listed, snapshot.positions, stopped)
        copied = sorted(place for place in snapshot.positions if place not in stopped)
        for place in copied:
            if place.topic in unseen.refused:
                target = TopicPartition(self._topology.remote_topic(place.topic), place.partition)
                self._unverifiable.append(PartitionVerdict.for_error(place, target, unseen.refused[place.topic]))
        topics = {place.topic for place in copied}
        doubtful = {topic: error for topic, error in unseen.doubtful.items() if topic in topics}
        for line in in_words("No partition is verified of {}", doubtful):
            _log.warning("Flow %s: %s", self._name, line)

    def _backfilled_targets(self, flow: str) -> set[TopicPartition]:
        """Return target partitions that backfills also wrote to: their records are not in the flow's own map."""
        return {
            TopicPartition(each["target_topic"], each["partition"])
            for row in Backfills(self._ledger).of_flow(flow)
            if row.definition["into_live"]
            for each in row.definition["ranges"]
        }

    def _chains(self, sources: Iterable[TopicPartition]) -> Mapping[str, TransformChain]:
        """Return the transform chain of each topic that is not copied unchanged."""
        transforms, is_heartbeats = transforms_of(self._flow), self._topology.policy.is_heartbeats_topic
        if not transforms:
            return {}
        topics = {source.topic for source in sources}
        return {topic: transforms.chain_of(topic, heartbeats=is_heartbeats(topic)) for topic in topics}

    def _pairs(self) -> list[_Pair]:
        """Return the partitions that both sides have."""
        self._listed = self._source.list_topics()
        names = [topic for topic in self._listed if self._topology.replicates(topic)]
        sources = self._source.describe_topics(names)
        remote = {topic: self._topology.remote_topic(topic) for topic in sources}
        targets = self._target.describe_topics(sorted(set(remote.values())))
        pairs = []
        for topic, description in sorted(sources.items()):
            self._topic_ids[topic] = description.topic_id
            there = targets.get(remote[topic])
            self._target_ids[remote[topic]] = there.topic_id if there is not None else None
            held = len(there.partitions) if there is not None else 0
            for partition in description.partitions:
                pair = TopicPartition(topic, partition.partition), TopicPartition(remote[topic], partition.partition)
                if partition.partition < held:
                    pairs.append(pair)
                else:
                    error = targets.errors.get(remote[topic])
                    if error is None or isinstance(error, TopicMissingError):
                        self._missing.append(pair)
                    else:
                        self._unverifiable.append(PartitionVerdict.for_error(*pair, error))
        return pairs

    def _missing_error(self, pair: _Pair, position: Position | None) -> MirrorError:
        """Return the error of a pair without a target partition: the next run creates it, unless it held a copy."""
        deleted = self._another_target(pair, position, None)
        if deleted is not None:
            return deleted
        return TopicMissingError(
            f"the target has no partition {pair[1].partition} of {pair[1].topic}.",
            where=Where(flow=self._name, topic=pair[0].topic, partition=pair[0].partition),
            action="The next run creates it and copies its records; then verify again.",
        )

    def _recreated_error(self, source: TopicPartition, position: Position | None) -> MirrorError | None:
        if position is None or not is_other_topic(position.topic_id, self._topic_ids.get(source.topic)):
            return None
        return SourceRecreatedError(
            "the source topic was deleted and created again since it was copied: the offset map belongs to the "
            "deleted topic.",
            where=Where(flow=self._name, topic=source.topic, partition=source.partition),
            action="See `mirror gaps list` for the resolutions.",
        )

    def _another_target(self, pair: _Pair, position: Position | None, log_end: int | None) -> MirrorError | None:
        """Return an error if the map belongs to another topic or cluster.

        For a topic that was truncated or created again, comparing shows what is missing, or that it was restored.
        """
        if position is None:
            return None
        source, target = pair
        now = TargetPartition(target.topic, self._target_ids.get(target.topic), log_end)
        found = position_change(position, now, cluster_pair(self._source, self._target))
        if found is None or isinstance(found, TargetRecreatedError | TargetTruncatedError):
            return None
        found.where = Where(flow=self._name, topic=source.topic, partition=source.partition)
        found.action = "See `mirror gaps list` for the resolutions."
        return found

    def _read_positions(self) -> PositionSnapshot:
        try:
            return self._positions.read_all()
        except TopicMissingError:
            return PositionSnapshot()

    def _maps(self, pairs: Iterable[_Pair]) -> Mapping[TopicPartition, tuple[OffsetRun, ...]]:
        """Return the maps that can be read; the others are noted as unverifiable."""
        maps = {}
        for pair in pairs:
            try:
                maps[pair[0]] = self._runs(pair[0])
            except OffsetMapError as damage:
                self._unverifiable.append(PartitionVerdict.for_error(*pair, damage))
        return maps

    def _runs(self, source: TopicPartition) -> tuple[OffsetRun, ...]:
        rows = self._ledger.segments(self._name, source.topic, source.partition)
        self._parts[source] = map_parts(rows)
        return merge(
            run
            for row in rows
            for run in Segment.restore(
                source_first=row.source_first,
                source_next=row.source_next,
                target_first=row.target_first,
                target_next=row.target_next,
                runs=row.runs,
            ).runs
        )

    def _gaps(self, flow: str) -> Mapping[TopicPartition, list[KnownGap]]:
        found: dict[TopicPartition, list[KnownGap]] = {}
        for row in self._ledger.gaps(flow, limit=None):
            if row.cause in UNKNOWN_REASONS:
                continue
            gap = KnownGap(row.first_offset, row.next_offset, row.cause)
            found.setdefault(TopicPartition(row.topic, row.partition), []).append(gap)
        return found


def _foreign(
    back_gaps: Mapping[TopicPartition, Sequence[KnownGap]],
) -> Mapping[TopicPartition, Sequence[tuple[int, int]]]:
    """Return records that only the target has as the source of the failback flow, by that flow's gaps: they are not
    copied.
    """
    return {
        place: [(gap.first_offset, gap.next_offset) for gap in gaps if gap.cause in _ONLY_THERE]
        for place, gaps in back_gaps.items()
    }


def _error(offsets: Iterable[OffsetFact]) -> MirrorError | None:
    return next((fact.error for fact in offsets if fact.error is not None), None)


def _settled_mark(position: Position | None) -> VerifiedMark | None:
    if position is None or position.state is not PositionState.CLOSED or position.target_offset is None:
        return None
    return VerifiedMark(position.offset + 1, position.target_offset)


def _skipped_gaps(position: Position | None) -> Iterator[KnownGap]:
    """Yield what a run skipped but did not record in the ledger before it ended."""
    for each in position.skipped if position is not None else ():
        yield KnownGap(each.first_offset, each.next_offset, each.cause)


def _of_authorization(error: MirrorError | None) -> MirrorError | None:
    """Return authorization errors: without knowing if a log is compacted, its holes would look like losses."""
    return error if isinstance(error, AuthorizationError) else None


def _is_compacted(configs: PerTopic[TopicConfigs], topic: str) -> bool:
    found = configs.get(topic)
    policy = found.value("cleanup.policy") if found is not None else None
    return "compact" in [part.strip() for part in (policy or "").split(",")]


async def _log_sizes(flow: FlowConfig, topics: set[str]) -> Mapping[TopicPartition, int]:
    """Return bytes on disk; empty without the right to describe them."""
    if not topics:
        return {}
    try:
        async with open_clients(Connection.from_settings(flow.clients.data_consumer)) as (client,):
            return await client.log_sizes(topics)
    except ClusterError:
        return {}
