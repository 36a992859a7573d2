"""Reading what a plan needs: topics, ids, offsets and sizes of both clusters, and the stored positions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from mirror_lib.cluster.admin import ClusterAdmin, OffsetFact, OffsetSpec, TopicDescription
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.internal_topics import PositionSnapshot, PositionStore
from mirror_lib.cluster.raw import open_clients
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.errors import (
    AuthorizationError,
    ClusterError,
    MirrorError,
    TopicMissingError,
    TopologyError,
    UncleanStartError,
    Where,
)
from mirror_lib.relay.model import WHOLE_TOPIC, PartitionFacts, PartitionProblem
from mirror_lib.topology.names import TopicPartition
from mirror_lib.topology.selection import FlowTopology

#: The broker's default for `max.message.bytes`, used when a topic's configs may not be read.
DEFAULT_MAX_MESSAGE_BYTES = 1_048_588


@dataclass(slots=True)
class FlowClusters:
    """The clients that one run of a flow uses on the driver, and what they saw last."""

    flow: FlowConfig
    source_admin: ClusterAdmin
    target_admin: ClusterAdmin
    positions: PositionStore
    source_data: Connection
    target_data: Connection
    positions_at_plan: PositionSnapshot = field(default_factory=PositionSnapshot)
    _sources: dict[TopicPartition, list[TopicPartition]] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    @classmethod
    def connect(cls, flow: FlowConfig) -> FlowClusters:
        """Open the admin clients; nothing is asked yet."""
        clients = flow.clients
        timeout = flow.admin_timeout_ms / 1000
        return cls(
            flow=flow,
            source_admin=ClusterAdmin(Connection.from_settings(clients.source_admin), timeout_seconds=timeout),
            target_admin=ClusterAdmin(Connection.from_settings(clients.target_admin), timeout_seconds=timeout),
            positions=PositionStore(
                Connection.from_settings(clients.target_internal), flow.offset_storage_topic, flow.flow.source
            ),
            source_data=Connection.from_settings(clients.data_consumer),
            target_data=Connection.from_settings(clients.data_producer),
        )

    @property
    def read_committed(self) -> bool:
        """Whether aborted and open transactions of the source are left out."""
        return self.flow.isolation_level is IsolationLevel.READ_COMMITTED

    def sources_of(self, target: TopicPartition) -> Sequence[TopicPartition]:
        """The source partitions of the last plan that go to this target partition; several in a merge."""
        return self._sources.get(target, ())

    def note_sources(self, pairs: Iterable[tuple[TopicPartition, TopicPartition]]) -> None:
        """Remember which source goes to which target."""
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


def gather_facts(
    flow: FlowConfig, topology: FlowTopology, clusters: FlowClusters, *, topics_synced: bool = True
) -> tuple[list[PartitionFacts], tuple[PartitionProblem, ...]]:
    """The facts of every partition that the flow selects, and the partitions that cannot even be planned.

    Args:
        topics_synced: whether a missing target topic or partition is a problem, or one that the topic sync before a
            run would create.
    """
    names = [topic for topic in clusters.source_admin.list_topics() if topology.replicates(topic)]
    sources = clusters.source_admin.describe_topics(names)
    remote = {topic: topology.remote_topic(topic) for topic in sources}
    collisions = topology.name_table({topic: len(each.partitions) for topic, each in sources.items()}).errors(
        str(flow.flow)
    )
    targets = clusters.target_admin.describe_topics(sorted(set(remote.values())))
    clusters.positions_at_plan = clusters.positions.read_all()

    problems = [
        PartitionProblem(TopicPartition(topic, WHOLE_TOPIC), of_flow(flow, error, TopicPartition(topic, WHOLE_TOPIC)))
        for topic, error in sources.errors.items()
        # Deleted since it was listed: there is nothing to copy any more.
        if not isinstance(error, TopicMissingError)
    ]
    pairs: list[tuple[TopicPartition, TopicPartition]] = []
    for topic, description in sorted(sources.items()):
        for pair in _pairs(description, remote[topic]):
            error = (
                collisions.get(topic)
                or _target_problem(
                    flow, pair, targets.get(remote[topic]), targets.errors.get(remote[topic]), synced=topics_synced
                )
                or _position_problem(flow, pair[0], clusters.positions_at_plan)
            )
            if error is None:
                pairs.append(pair)
            else:
                problems.append(PartitionProblem(pair[0], of_flow(flow, error, pair[0])))
    clusters.note_sources((*pairs, *_earlier_pairs(topology, clusters.positions_at_plan, {pair[0] for pair in pairs})))

    wanted = [source for source, _ in pairs]
    starts = clusters.source_admin.list_offsets(wanted, OffsetSpec.EARLIEST)
    last = OffsetSpec.LAST_STABLE if clusters.read_committed else OffsetSpec.LATEST
    ends = dict(clusters.source_admin.list_offsets(wanted, last))
    if clusters.read_committed:
        ends.update(_hidden_ends(clusters, ends))
    behind = {
        source.topic
        for source in wanted
        if _is_behind(source, starts[source], ends[source], clusters.positions_at_plan)
    }
    sizes = _log_sizes(clusters, behind)
    limits = _message_limits(clusters, {remote[topic] for topic in behind if remote[topic] in targets})
    facts = []
    for source, target in pairs:
        unreadable = starts[source].error or ends[source].error
        if unreadable is not None:
            problems.append(PartitionProblem(source, of_flow(flow, unreadable, source)))
            continue
        stored = clusters.positions_at_plan.positions.get(source)
        position = stored.position if stored else None
        facts.append(
            PartitionFacts(
                source=source,
                target=target,
                log_start=starts[source].offset,
                log_end=ends[source].offset,
                topic_id=sources[source.topic].topic_id,
                # A stored offset of -1 says that the partition was opened at 0 and nothing copied yet.
                position=position.offset + 1 if position else None,
                position_topic_id=position.topic_id if position else None,
                log_bytes=sizes.get(source),
                target_max_message_bytes=limits.get(target.topic, DEFAULT_MAX_MESSAGE_BYTES),
            )
        )
    return facts, tuple(problems)


def _hidden_ends(
    clusters: FlowClusters, stable: Mapping[TopicPartition, OffsetFact]
) -> Iterator[tuple[TopicPartition, OffsetFact]]:
    """The positions that lie behind the last stable offset and not behind the log's end: nothing to read there now.

    They come from a time when the flow still copied open transactions.
    """
    stored = clusters.positions_at_plan.positions
    beyond = {
        source: stored[source].position.offset + 1
        for source, fact in stable.items()
        if fact.error is None and source in stored and stored[source].position.offset + 1 > fact.offset
    }
    for source, end in clusters.source_admin.list_offsets(sorted(beyond), OffsetSpec.LATEST).items() if beyond else ():
        if end.error is None and end.offset >= beyond[source]:
            yield source, OffsetFact(offset=beyond[source])


def _earlier_pairs(
    topology: FlowTopology, snapshot: PositionSnapshot, planned: set[TopicPartition]
) -> Iterator[tuple[TopicPartition, TopicPartition]]:
    """What else went into the targets of a merge: from topics that this run leaves out, or that are deleted by now."""
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
) -> MirrorError | None:
    source, wanted = pair
    where = Where(flow=str(flow.flow), topic=source.topic, partition=source.partition)
    if failure is not None and not isinstance(failure, TopicMissingError):
        return of_flow(flow, failure, source)
    if not synced:
        return None
    if target is None:
        return TopicMissingError(
            f"topic {wanted.topic} does not exist on cluster {flow.flow.target}.",
            where=where,
            action="Run the sync_topics task, or `mirror topics apply`.",
        )
    if wanted.partition >= len(target.partitions):
        return TopologyError(
            f"topic {wanted.topic} on cluster {flow.flow.target} has only {len(target.partitions)} partitions.",
            where=where,
            action="Run the sync_topics task, or `mirror topics apply`, to add partitions.",
        )
    return None


def _position_problem(flow: FlowConfig, source: TopicPartition, snapshot: PositionSnapshot) -> MirrorError | None:
    unreadable = snapshot.unreadable.get(source)
    if unreadable is None:
        return None
    return UncleanStartError(
        f"its newest position cannot be read ({unreadable.error.what} in {flow.offset_storage_topic}, partition "
        f"{unreadable.record.partition}, offset {unreadable.record.offset}): what was copied is not known.",
        where=Where(flow=str(flow.flow), topic=source.topic, partition=source.partition),
        action="Find out who writes to the position topic; only MirrorMaker 2 and this program may.",
    )


def of_flow(flow: FlowConfig, error: MirrorError, source: TopicPartition) -> MirrorError:
    """An error of the admin client, told as one of this flow's partition."""
    # Several partitions may share one answer, and each has a place of its own.
    told = copy(error)
    told.where = replace(
        error.where,
        flow=str(flow.flow),
        topic=source.topic,
        partition=None if source.partition == WHOLE_TOPIC else source.partition,
    )
    return told


def _is_behind(source: TopicPartition, start: OffsetFact, end: OffsetFact, snapshot: PositionSnapshot) -> bool:
    if start.error or end.error or start.offset == end.offset:
        return False
    stored = snapshot.positions.get(source)
    return stored is None or stored.position.offset + 1 != end.offset


def _log_sizes(clusters: FlowClusters, topics: set[str]) -> dict[TopicPartition, int]:
    """Bytes on disk; empty when we may not ask, since sizes only balance the bins."""
    if not topics:
        return {}

    async def ask() -> dict[TopicPartition, int]:
        async with open_clients(clusters.source_data) as (client,):
            return await client.log_sizes(topics)

    try:
        return asyncio.run(ask())
    except (AuthorizationError, ClusterError):
        return {}


def _message_limits(clusters: FlowClusters, topics: set[str]) -> dict[str, int]:
    if not topics:
        return {}
    limits = {}
    for topic, configs in clusters.target_admin.topic_configs(sorted(topics)).items():
        limit = configs.value("max.message.bytes")
        if limit is not None:
            limits[topic] = int(limit)
    return limits
