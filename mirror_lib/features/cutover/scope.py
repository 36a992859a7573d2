"""The present cutover scope on both clusters: topics, their log ends, and groups. Reads, changes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin, GroupState
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology, group_filter
from mirror_lib.errors import TopicMissingError, Where
from mirror_lib.identity.clusters import check_clusters, cluster_pair
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.groups.facts import select_groups
from mirror_lib.topology.handovers import UNRESTRICTED
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.names import TopicPartition


@dataclass(frozen=True, slots=True)
class ScopeTopic:
    """A topic that moves."""

    source: str
    target: str
    partitions: int
    #: 0 where it does not exist on the target.
    target_partitions: int

    @property
    def pairs(self) -> Iterable[tuple[TopicPartition, TopicPartition]]:
        """Its partitions on both sides."""
        return ((TopicPartition(self.source, n), TopicPartition(self.target, n)) for n in range(self.partitions))


@dataclass(frozen=True, slots=True)
class LogEnds:
    """Log end offsets, by source partition: the next offset to be written."""

    source: Mapping[TopicPartition, int]
    target: Mapping[TopicPartition, int]
    #: Start of the first open transaction of the source; the log end if there is none.
    stable: Mapping[TopicPartition, int]
    #: Log start offsets of the source.
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)

    def behind(self, positions: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Return partitions with lag.

        Args:
            positions: the next source offset to copy; a partition that was never copied has none.
        """
        return sorted(
            place
            for place, end in self.source.items()
            if (positions[place] if place in positions else self.starts.get(place, 0)) < end
        )

    @property
    def open_transactions(self) -> list[TopicPartition]:
        """Partitions with records that are neither committed nor aborted."""
        return sorted(place for place, end in self.source.items() if self.stable.get(place, end) < end)


@dataclass(frozen=True, slots=True)
class ScopeGroup:
    """A group that moves."""

    name: str
    on_source: GroupState
    on_target: GroupState
    #: On the source, for partitions of the scope.
    committed: Mapping[TopicPartition, CommittedOffset]


def without_handovers(flow: FlowConfig) -> FlowConfig:
    """Return the flow as its file has it, without hand-overs: the scope must not depend on what has moved."""
    return flow.model_copy(update={"handovers": UNRESTRICTED})


def exactly(names: Iterable[str]) -> tuple[str, ...]:
    """Return Java regexes that match just these names."""
    # Java knows `\\Q...\\E`; re.escape escapes characters that Java takes with a backslash, too.
    return tuple(re.escape(name) for name in names)


def scope_topics(flow: FlowConfig, patterns: Sequence[str], ledger: Ledger | None = None) -> tuple[ScopeTopic, ...]:
    """Return the topics of a flow that match one of the patterns, by name.

    Args:
        flow: as it runs now.
        ledger: must belong to the clusters of the flow's aliases; None if it is not used.

    Raises:
        ReplicationError: the ledger belongs to other clusters.
        MirrorError: a request to a cluster failed.
    """
    topology = flow_topology(flow, patterns)
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        names = [
            name
            for name in source.list_topics()
            if topology.replicates(name) and not topology.policy.is_heartbeats_topic(name)
        ]
        remote = {name: topology.remote_topic(name) for name in names}
        described = source.describe_topics(names)
        on_target = target.describe_topics(sorted(set(remote.values())))
    for error in [*described.errors.values(), *on_target.errors.values()]:
        if not isinstance(error, TopicMissingError):
            raise error
    return tuple(
        ScopeTopic(
            name,
            remote[name],
            len(topic.partitions),
            len(on_target[remote[name]].partitions) if remote[name] in on_target else 0,
        )
        for name, topic in sorted(described.items())
    )


def log_ends(flow: FlowConfig, topics: Iterable[ScopeTopic]) -> LogEnds:
    """Return the present log end offsets. The target is read before the source, so that a complete copy is certain.

    Raises:
        MirrorError: a partition has no offset.
    """
    pairs = [pair for topic in topics for pair in topic.pairs if pair[1].partition < topic.target_partitions]
    sources = [source for source, _ in pairs]
    with flow_admins(flow) as (source, target):
        target_ends = _offsets(target, [each for _, each in pairs], OffsetSpec.LATEST)
        starts = _offsets(source, sources, OffsetSpec.EARLIEST)
        stable = _offsets(source, sources, OffsetSpec.LAST_STABLE)
        ends = _offsets(source, sources, OffsetSpec.LATEST)
    return LogEnds(ends, {pair[0]: target_ends[pair[1]] for pair in pairs}, stable, starts)


def _offsets(admin: ClusterAdmin, partitions: Sequence[TopicPartition], which: OffsetSpec) -> dict[TopicPartition, int]:
    found = admin.list_offsets(partitions, which) if partitions else {}
    for place, fact in found.items():
        if fact.error is not None:
            raise fact.error
        if fact.offset < 0:
            raise TopicMissingError(
                "the cluster did not return the log end offset of the partition.",
                where=Where(cluster=admin.cluster, topic=place.topic, partition=place.partition),
            )
    return {place: fact.offset for place, fact in found.items()}


def scope_groups(flow: FlowConfig, topics: Sequence[ScopeTopic], patterns: Sequence[str]) -> tuple[ScopeGroup, ...]:
    """Return the groups of the flow with a position in one of the topics whose names match one of the patterns.

    Raises:
        MirrorError: a request to a cluster failed.
    """
    takes, wanted = group_filter(flow).should_replicate_group, compile_list(tuple(patterns))
    places = {pair[0] for topic in topics for pair in topic.pairs}
    source_connection = Connection.from_settings(flow.clients.source_admin)
    target_connection = Connection.from_settings(flow.clients.target_admin)
    seconds = flow.admin_timeout_ms / 1000
    with GroupAdmin(source_connection, seconds) as source, GroupAdmin(target_connection, seconds) as target:
        listed = {
            name: each
            for name, each in source.list_groups().items()
            if each.kind.of_consumers and takes(name) and wanted is not None and wanted.fullmatch(name)
        }
        committed = source.fetch_committed(listed)
        for error in committed.errors.values():
            raise error
        on_target = target.list_groups()
    chosen = select_groups(flow_topology(without_handovers(flow)), listed, committed.offsets)
    groups = []
    for name, offsets in chosen.items():
        mine = {place: offset for place, offset in offsets.items() if place in places}
        if mine:
            there = on_target[name].state if name in on_target else GroupState.DEAD
            groups.append(ScopeGroup(name, listed[name].state, there, mine))
    return tuple(groups)


def pending_offsets(flow: FlowConfig, groups: Collection[str]) -> list[str]:
    """Return the source partitions whose offset an open transaction of a group will replace, by group.

    Raises:
        MirrorError: a request to the source failed.
    """
    if not groups:
        return []
    with GroupAdmin(Connection.from_settings(flow.clients.source_admin), flow.admin_timeout_ms / 1000) as admin:
        return [f"{group} on {place}" for group, place in admin.pending_offsets(groups)]
