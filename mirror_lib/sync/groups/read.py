"""Reads the input of a plan for a flow's consumer groups from both clusters and the ledger: `groups.facts.GroupFacts`.

Missing permissions become findings or notices if the rest can be planned without that input.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from mirror_lib.cluster.admin.client import ClusterAdmin, PerTopic
from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin, GroupKind, GroupState, ListedGroup
from mirror_lib.cluster.admin.model import OffsetSpec, TopicDescription
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import read_checkpoints, read_offset_syncs
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.model import FlowConfig, GroupMetadata, GroupTranslation, UncommittedPartitions
from mirror_lib.config.name_patterns import named_groups, supposed_groups
from mirror_lib.config.named_exclusions import about_excluded_groups
from mirror_lib.config.topology import group_filter
from mirror_lib.errors import (
    LOSS_REASONS,
    POSITION_REASONS,
    UNKNOWN_REASONS,
    AuthorizationError,
    MirrorError,
    SourceRecreatedError,
    TopicMissingError,
    Where,
)
from mirror_lib.identity.clusters import check_clusters, cluster_pair
from mirror_lib.identity.ledger_positions import compared_positions, lacks_history, open_histories
from mirror_lib.identity.positions import AvailablePositions, positions_in
from mirror_lib.identity.targets import TargetPartition, is_other_topic, position_change
from mirror_lib.ledger.rows import DISASTER, POSITION_SET, REPEATED, SOURCE_DELETED, GapRow, GapState
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.ranges import unite
from mirror_lib.offsets.sync_store import LoadMode, OffsetSyncStore
from mirror_lib.offsets.syncs import SyncPoint
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.groups.facts import GroupFacts, TargetGroups, select_groups
from mirror_lib.sync.groups.model import GroupFinding, GroupPartition
from mirror_lib.sync.groups.uncommitted import PartitionSizes, TopicSize
from mirror_lib.sync.hidden_by_acls import Unseen, in_words, unseen_topics
from mirror_lib.sync.topics.internal import checkpoints_topic, offset_syncs_topic
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import TopicPartition

_UNTRANSLATED_KINDS = (GroupKind.SHARE, GroupKind.STREAMS)


def gather_group_facts(
    flow: FlowConfig,
    topology: FlowTopology,
    source: GroupAdmin,
    target: GroupAdmin,
    ledger: Ledger | None = None,
    *,
    commit: bool,
) -> GroupFacts:
    """Read what a plan needs: a few requests for thousands of groups.

    Groups are discovered every time, as MM2 does at its start; `refresh.groups.*` does not apply.

    Args:
        ledger: has the exact offset maps.
        commit: read the groups on the target, too.

    Raises:
        MirrorError: a cluster cannot be reached, or a topic or the ledger cannot be read.
    """
    takes = group_filter(flow).should_replicate_group
    every = source.list_groups()
    listed = [each for each in every.values() if takes(each.group)]
    gaps = () if ledger is None else ledger.gaps(str(flow.flow), limit=None)
    begun = _copies_begun(topology, gaps)
    checkpoints, outdated, notices = _read_checkpoints(flow, begun)
    drops_metadata = flow.group_metadata is GroupMetadata.DROP
    if drops_metadata:
        checkpoints = checkpoints and {key: replace(each, metadata="") for key, each in checkpoints.items()}
    # Groups without permission to describe are not listed: those known from elsewhere are requested by name.
    named = named_groups(flow)
    known = named | supposed_groups(flow, every) | {place.group for place in (*(checkpoints or ()), *outdated)}
    unseen = {group for group in known if takes(group)} - every.keys()
    accepted = {each.group for each in listed if each.kind.of_consumers} | unseen
    committed = source.fetch_committed(accepted)
    doubtful = Unseen.of({each: error for each, error in committed.errors.items() if each in unseen}, named).doubtful
    groups = select_groups(topology, accepted, committed.offsets)
    if drops_metadata:
        groups = {name: _without_metadata(offsets) for name, offsets in groups.items()}
    syncs, more_notices = _read_syncs(flow, LoadMode.LAST_ONLY if checkpoints is None else LoadMode.FULL)
    taken = topology.topic_filter.should_replicate_topic
    stored = AvailablePositions(flow, source.leader_wait)
    positions, unsound = (
        (positions_in(stored.read()), {})
        if ledger is None
        else compared_positions(flow.flow, ledger, stored.read, taken)
    )
    lacking = {each: lacks_history(flow.flow, each, history) for each, history in unsound.items()}
    next_offsets = {partition: position.offset + 1 for partition, position in positions.items()}
    partitions = {partition for offsets in groups.values() for partition in offsets}
    is_exact = flow.group_translation is GroupTranslation.EXACT
    # The maps of large topics take long to read; if only a later step uses them, that step reads them.
    counting = ledger if commit or is_exact or not flow.sync_group_offsets_enabled else None
    with flow_admins(flow) as admins:
        targets = _targets(flow, topology, admins, ledger, positions, partitions)
        unknown = {each: error for each in targets.read if (error := stored.why_unknown(each)) is not None}
        hidden = list(_about_hidden_topics(flow, topology, admins[0], next_offsets, ledger))
    return GroupFacts(
        committed=groups,
        syncs=syncs,
        checkpoints=checkpoints or {},
        outdated=outdated,
        target=read_target_groups(target, groups, drops_metadata=drops_metadata) if commit else None,
        positions=positions,
        copied_to=next_offsets,
        written_to={at: each.target_offset for at, each in positions.items() if each.target_offset is not None},
        target_errors={**lacking, **targets.errors, **unknown},
        lacking={} if ledger is None else open_histories(flow.flow, ledger),
        target_ends=targets.ends,
        target_starts=targets.starts,
        source_starts=targets.source_starts,
        source_ends=targets.source_ends,
        skipped={} if counting is None else _skipped_ranges(gaps),
        maps={} if counting is None else _LedgerMaps(str(flow.flow), counting, groups.values()),
        exact=is_exact,
        findings=_findings(listed, {each: error for each, error in committed.errors.items() if each not in doubtful}),
        routed={topic for topic in {place.topic for place in partitions} if flow.transforms.chain_of(topic).may_route},
        unreadable={GroupPartition(*key): error for key, error in committed.partition_errors.items()},
        partitions=targets.partitions,
        from_start=flow.group_uncommitted is UncommittedPartitions.EARLIEST,
        remarks=tuple(about_excluded_groups(flow)),
        notices=(
            *notices,
            *more_notices,
            *in_words("No offset is translated for group {}", doubtful),
            *(
                f"Whether records were copied to this topic {topic} or to an earlier one of the same name is "
                f"unknown: {error}"
                for topic, error in sorted(targets.refused.items())
            ),
            *hidden,
        ),
    )


class _LedgerMaps(Mapping[TopicPartition, OffsetMap]):
    """Exact offset maps of partitions, each read on access: together they may not fit into memory."""

    def __init__(self, flow: str, ledger: Ledger, committed: Iterable[Iterable[TopicPartition]]) -> None:
        self._flow, self._ledger = flow, ledger
        self._partitions = sorted({partition for offsets in committed for partition in offsets})

    def __getitem__(self, partition: TopicPartition) -> OffsetMap:
        rows = self._ledger.segments(self._flow, *partition)
        if not rows:
            raise KeyError(partition)
        return OffsetMap.of_segments(rows)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)


def _without_metadata(offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
    return {place: each._replace(metadata="") if each.metadata else each for place, each in offsets.items()}


def _findings(listed: list[ListedGroup], unreadable: Mapping[str, MirrorError]) -> tuple[GroupFinding, ...]:
    kinds = [
        GroupFinding(each.group, GroupReason.GROUP_KIND_NOT_SUPPORTED, f"it is a {each.kind.value} group")
        for each in listed
        if each.kind in _UNTRANSLATED_KINDS
    ]
    errors = [GroupFinding(group, GroupReason.UNREADABLE, str(error)) for group, error in sorted(unreadable.items())]
    return (*kinds, *errors)


def read_target_groups(target: GroupAdmin, groups: Collection[str], *, drops_metadata: bool) -> TargetGroups:
    """Read the groups on the target, states first: a member that has joined since then cannot have committed yet.

    Raises:
        MirrorError: the target cannot be read.
    """
    listed = {name: each for name, each in target.list_groups().items() if name in groups}
    # Groups with members commit their own offsets, and groups that do not exist have none.
    idle = [name for name, each in listed.items() if each.state is not GroupState.ACTIVE and each.kind.of_consumers]
    # A group that is not listed may have a coordinator that does not respond: its offsets are unknown, not missing.
    absent = [name for name in groups if name not in listed]
    committed = target.fetch_committed((*idle, *absent))
    errors = dict(committed.errors)
    for (group, _), error in committed.partition_errors.items():
        # Without its committed offset, the group could be set back.
        errors.setdefault(group, error)
    return TargetGroups(listed, committed.offsets, errors, drops_metadata)


def _copies_begun(topology: FlowTopology, gaps: Iterable[GapRow]) -> dict[TopicPartition, int]:
    """Epoch milliseconds of the last decision about each target partition: another log or position counts since."""
    found: dict[TopicPartition, int] = {}
    for gap in gaps:
        if gap.decided_at is None or gap.state not in (GapState.ACCEPTED, GapState.RECOPIED):
            continue
        if gap.cause in POSITION_REASONS or gap.cause == POSITION_SET:
            target = TopicPartition(topology.checkpointed_topic(gap.topic), gap.partition)
            found[target] = max(int(gap.decided_at.timestamp() * 1000), found.get(target, 0))
    return found


def _read_checkpoints(
    flow: FlowConfig, begun: Mapping[TopicPartition, int]
) -> tuple[dict[GroupPartition, Checkpoint] | None, dict[GroupPartition, Checkpoint], list[str]]:
    """The last checkpoint of every group and partition: of the present copy, and of former ones.

    None without permission to read them (KAFKA-15905).
    """
    topic = checkpoints_topic(flow).name
    connection = Connection.from_settings(flow.clients.target_internal)
    try:
        found = read_checkpoints(connection, topic, timeout=_timeout(flow))
    except AuthorizationError as error:
        return (
            None,
            {},
            [f"{error} Without earlier checkpoints only the newest offset-sync of a partition can be used."],
        )
    newest: dict[GroupPartition, Checkpoint] = {}
    outdated: dict[GroupPartition, Checkpoint] = {}
    for each, written_at in zip(found.entries, found.times, strict=True):
        key = GroupPartition(each.group, TopicPartition(each.topic, each.partition))
        is_former = written_at is not None and written_at < begun.get(key.partition, 0)
        for places, holds in ((newest, not is_former), (outdated, is_former)):
            places.pop(key, None)
            if holds:
                places[key] = each
    return newest, outdated, _about_unreadable(found.unreadable, topic, flow.flow.target)


def _read_syncs(flow: FlowConfig, mode: LoadMode) -> tuple[OffsetSyncStore, list[str]]:
    topic = offset_syncs_topic(flow).name
    connection = Connection.from_settings(flow.clients.offset_syncs_consumer)
    found = read_offset_syncs(connection, topic, timeout=_timeout(flow))
    store = OffsetSyncStore(mode)
    for sync in found.entries:
        store.add(TopicPartition(sync.topic, sync.partition), SyncPoint(sync.upstream_offset, sync.downstream_offset))
    store.mark_loaded()
    return store, _about_unreadable(found.unreadable, topic, connection.cluster)


def _about_unreadable(count: int, topic: str, cluster: str) -> list[str]:
    if not count:
        return []
    return [
        f"{count} records of {topic} on cluster {cluster} are not in MirrorMaker's format and were skipped; a record "
        "without a value stops MirrorMaker's own consumers."
    ]


def _about_hidden_topics(
    flow: FlowConfig,
    topology: FlowTopology,
    admin: ClusterAdmin,
    copied_to: Iterable[TopicPartition],
    ledger: Ledger | None,
) -> Iterator[str]:
    """A group's offsets are returned without topics that the user may not describe."""
    stopped = ledger.stopped_partitions(str(flow.flow)) if ledger is not None else ()
    unseen = unseen_topics(admin, flow, topology, admin.list_topics(), copied_to, stopped)
    for error in unseen.refused.values():
        yield f"The groups' offsets there are unknown: {error}"
    yield from in_words("The groups' offsets are unknown on {}", unseen.doubtful)


class _Targets(NamedTuple):
    """The target partitions of the groups' partitions, by source partition."""

    errors: Mapping[TopicPartition, MirrorError]
    ends: Mapping[TopicPartition, int]
    #: Target topics that the user may not describe: nothing is compared there.
    refused: Mapping[str, MirrorError]
    starts: Mapping[TopicPartition, int]
    source_starts: Mapping[TopicPartition, int]
    source_ends: Mapping[TopicPartition, int]
    partitions: PartitionSizes
    #: The partitions that were read.
    read: Collection[TopicPartition] = ()


def _skipped_ranges(gaps: Iterable[GapRow]) -> dict[TopicPartition, list[tuple[int, int]]]:
    """Source offsets that were skipped although the source has their records."""
    found: dict[TopicPartition, list[tuple[int, int]]] = {}
    for gap in gaps:
        is_skipped = gap.cause not in LOSS_REASONS | UNKNOWN_REASONS | {DISASTER, REPEATED, SOURCE_DELETED}
        if is_skipped and gap.next_offset > gap.first_offset:
            place = TopicPartition(gap.topic, gap.partition)
            found.setdefault(place, []).append((gap.first_offset, gap.next_offset))
    return {place: unite(ranges) for place, ranges in found.items()}


def _targets(
    flow: FlowConfig,
    topology: FlowTopology,
    admins: tuple[ClusterAdmin, ClusterAdmin],
    ledger: Ledger | None,
    positions: Mapping[TopicPartition, Position],
    partitions: Iterable[TopicPartition],
) -> _Targets:
    """Compare the positions of the partitions of the groups' topics with the target's present state.

    Args:
        partitions: with committed offsets; groups read the other partitions of these topics, too.

    Raises:
        ReplicationError: the ledger belongs to other clusters.
        MirrorError: a cluster or the ledger cannot be used.
    """
    taken = topology.topic_filter.should_replicate_topic
    remote = {each.topic: topology.checkpointed_topic(each.topic) for each in partitions if taken(each.topic)}
    sharing: dict[TopicPartition, list[Position]] = {}
    for each, position in positions.items():
        sharing.setdefault(TopicPartition(topology.checkpointed_topic(each.topic), each.partition), []).append(position)
    source, target = admins
    ids = cluster_pair(source, target)
    check_clusters(flow, ledger, ids)
    if not remote:
        return _Targets({}, {}, {}, {}, {}, {}, PartitionSizes())
    described = target.describe_topics(set(remote.values()))
    on_source = source.describe_topics(remote)
    sizes = PartitionSizes(
        {
            topic: TopicSize(len(on_source[topic].partitions), _count(described, there))
            for topic, there in remote.items()
            if topic in on_source
        }
    )
    committed = [each for each in partitions if each.topic in remote]
    targets = {
        each: TopicPartition(remote[each.topic], each.partition)
        for each in sorted((*committed, *sizes.missing(committed)))
    }
    recreated = _recreated_topics(on_source, targets, positions)
    there = {
        each
        for each in targets.values()
        if each.topic in described and each.partition < len(described[each.topic].partitions)
    }
    found = target.list_offsets(there, OffsetSpec.LATEST)
    begins = target.list_offsets(there, OffsetSpec.EARLIEST)
    sources = [each for each in targets if sizes.on_source(each)]
    source_begins = source.list_offsets(sources, OffsetSpec.EARLIEST)
    source_finishes = source.list_offsets(sources, OffsetSpec.LATEST)
    errors: dict[TopicPartition, MirrorError] = {}
    refused: dict[str, MirrorError] = {}
    ends: dict[TopicPartition, int] = {}
    for each, place in targets.items():
        unknown = on_source.errors.get(each.topic)
        if unknown is not None and not isinstance(unknown, TopicMissingError):
            errors[each] = unknown
            continue
        if each in recreated:
            errors[each] = recreated[each]
            continue
        error = described.errors.get(place.topic)
        fact = found.get(place)
        if fact is not None and fact.error is None:
            ends[each] = fact.offset
        elif (error := error or (fact.error if fact else None)) is not None and not isinstance(
            error, TopicMissingError
        ):
            # Writing checkpoints does not need access to the topic; committing offsets on it does.
            if isinstance(error, AuthorizationError):
                refused[place.topic] = error
            else:
                errors[each] = error
            continue
        own = positions.get(each)
        if own is None:
            # Without a position, nothing is committed after the log end offset.
            ends.setdefault(each, 0)
            continue
        topic_id = described[place.topic].topic_id if place.topic in described else None
        now = TargetPartition(place.topic, topic_id, ends.get(each))
        changed = position_change(own, now, ids, sharing[place])
        if changed is not None:
            changed.where = Where(flow=str(flow.flow), topic=each.topic, partition=each.partition)
            errors[each] = changed
    starts = {each: begins[place].offset for each, place in targets.items() if place in begins}
    return _Targets(
        errors,
        ends,
        refused,
        {each: offset for each, offset in starts.items() if offset >= 0},
        {each: fact.offset for each, fact in source_begins.items() if fact.error is None},
        {each: fact.offset for each, fact in source_finishes.items() if fact.error is None},
        sizes,
        targets.keys(),
    )


def _count(described: PerTopic[TopicDescription], topic: str) -> int:
    return len(described[topic].partitions) if topic in described else 0


def _recreated_topics(
    described: PerTopic[TopicDescription],
    partitions: Iterable[TopicPartition],
    positions: Mapping[TopicPartition, Position],
) -> dict[TopicPartition, MirrorError]:
    """Partitions whose source topic has another id than the copied one: the map has the offsets of the old topic."""
    copied = {each: topic_id for each in partitions if each in positions and (topic_id := positions[each].topic_id)}
    errors: dict[TopicPartition, MirrorError] = {}
    for each, topic_id in copied.items():
        now = described[each.topic].topic_id if each.topic in described else None
        if is_other_topic(topic_id, now):
            errors[each] = SourceRecreatedError(
                f"the source topic was deleted and created again: it had id {topic_id} when it was copied last, and "
                f"has {now} now.",
                where=Where(topic=each.topic, partition=each.partition),
                action="Run the flow, and decide about the partition (`mirror gaps list`).",
            )
    return errors


def _timeout(flow: FlowConfig) -> float:
    return flow.admin_timeout_ms / 1000
