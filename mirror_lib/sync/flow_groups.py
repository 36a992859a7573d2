"""The consumer groups of a flow between two real clusters: read, translated, and moved on the target."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.admin import ClusterAdmin
from mirror_lib.cluster.admin_groups import GroupActiveError, GroupAdmin, GroupKind, GroupState, ListedGroup
from mirror_lib.cluster.checkpoint_topics import CheckpointWriter, read_checkpoints, read_offset_syncs
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.formats import Checkpoint
from mirror_lib.cluster.internal_topics import PositionStore
from mirror_lib.config.flow_topology import group_filter
from mirror_lib.config.model import FlowConfig, GroupTranslation
from mirror_lib.config.name_patterns import named_groups, supposed_groups
from mirror_lib.errors import AuthorizationError, ConfigurationError, MirrorError, Where
from mirror_lib.ledger.store import Ledger
from mirror_lib.offsets.offset_map import OffsetMap
from mirror_lib.offsets.sync_store import LoadMode, OffsetSyncStore
from mirror_lib.offsets.syncs import SyncPoint
from mirror_lib.sync.admins import source_admin
from mirror_lib.sync.due import Interval, SyncStep
from mirror_lib.sync.groups import (
    GroupFacts,
    GroupFinding,
    GroupPartition,
    GroupPlan,
    GroupReason,
    TargetGroups,
    after_applying,
    plan_groups,
    select_groups,
)
from mirror_lib.sync.hidden import Unseen, in_words, unseen_topics
from mirror_lib.sync.internal import checkpoints_topic, ensure_checkpoints_topic, offset_syncs_topic
from mirror_lib.sync.observed import save_groups
from mirror_lib.topology.names import TopicPartition
from mirror_lib.topology.selection import FlowTopology

_log = logging.getLogger(__name__)
#: A log line for each of thousands of groups helps nobody.
_LINES_SHOWN = 50
_PROBLEMS_RETURNED = 10
_UNTRANSLATED_KINDS = (GroupKind.SHARE, GroupKind.STREAMS)


@dataclass(frozen=True, slots=True)
class GroupSync:
    """What was planned for a flow's groups; after it was applied, with what the target said to it."""

    plan: GroupPlan
    applied: bool = False

    @property
    def exit_code(self) -> int:
        """0, or 3 when a cluster did not tell or did not take the offsets of some group: a person has to look."""
        return 3 if self.plan.problems else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {**self.plan.to_dict(), "applied": self.applied}


def plan_flow_groups(
    flow: FlowConfig, topology: FlowTopology, *, commit: bool | None = None, ledger: Ledger | None = None
) -> GroupSync:
    """What would be done for a flow's groups now. Reads both clusters, changes nothing.

    Args:
        commit: as for `apply_flow_groups`.
        ledger: as for `apply_flow_groups`.

    Raises:
        ConfigurationError: the flow emits no checkpoints.
        MirrorError: a cluster cannot be used, or a topic cannot be read.
    """
    _check_enabled(flow)
    if commit is None:
        commit = flow.sync_group_offsets_enabled
    with _groups(flow) as (source, target):
        return GroupSync(
            plan_groups(topology, gather_group_facts(flow, topology, source, target, ledger, commit=commit))
        )


def apply_flow_groups(
    flow: FlowConfig, topology: FlowTopology, *, commit: bool | None = None, ledger: Ledger | None = None
) -> GroupSync:
    """Write checkpoints and, if the flow does so, commit offsets on the target. A group that fails stops no other.

    Args:
        commit: whether offsets are committed; None leaves it to `sync.group.offsets.enabled`.
        ledger: has the exact offset maps; without it groups are translated by MM2's rule whatever the flow says.

    Raises:
        ConfigurationError: the flow emits no checkpoints.
        MirrorError: a cluster cannot be used, or checkpoints cannot be read or written.
    """
    _check_enabled(flow)
    if commit is None:
        commit = flow.sync_group_offsets_enabled
    with _groups(flow) as (source, target):
        plan = plan_groups(topology, gather_group_facts(flow, topology, source, target, ledger, commit=commit))
        _write_checkpoints(flow, plan)
        return GroupSync(_commit(plan, target), applied=True)


def translate_flow_offsets(
    flow: FlowConfig,
    topology: FlowTopology,
    ledger: Ledger,
    *,
    dry_run: bool,
    complete: bool = True,
    at_once: bool = False,
) -> dict[str, Any]:
    """Write checkpoints as a step of a scheduled run, at MM2's interval: tells the log, returns counts, never rows.

    Args:
        complete: whether the topology is that of the whole flow, so that the interval begins anew.
        at_once: whatever the interval says; a step that is switched off stays so.

    Returns:
        Plain data; with `skipped` when nothing was due.

    Raises:
        MirrorError: as `apply_flow_groups`.
    """
    step = _Step(SyncStep.CHECKPOINTS, _emit_interval(flow), commit=False)
    return _scheduled(step, flow, topology, ledger, dry_run=dry_run, complete=complete, at_once=at_once)


def sync_flow_group_offsets(
    flow: FlowConfig,
    topology: FlowTopology,
    ledger: Ledger,
    *,
    dry_run: bool,
    complete: bool = True,
    at_once: bool = False,
) -> dict[str, Any]:
    """Commit offsets on the target, as a step like `translate_flow_offsets`.

    Groups are looked at anew, for some may have moved since; what is committed always has its checkpoint.
    """
    step = _Step(SyncStep.GROUP_OFFSETS, _commit_interval(flow), commit=True)
    return _scheduled(step, flow, topology, ledger, dry_run=dry_run, complete=complete, at_once=at_once)


@dataclass(frozen=True, slots=True)
class _Step:
    step: SyncStep
    interval: Interval
    #: Whether offsets are committed, too.
    commit: bool


def _scheduled(
    step: _Step,
    flow: FlowConfig,
    topology: FlowTopology,
    ledger: Ledger,
    *,
    dry_run: bool,
    complete: bool,
    at_once: bool,
) -> dict[str, Any]:
    now, name = datetime.now(UTC), str(flow.flow)
    last = None if at_once else ledger.last_sync(name, step.step)
    why_not = why_not_emitted(flow) or step.interval.why_not(last, now)
    if why_not:
        _log.info("Flow %s: %s are not looked at: %s.", name, step.step.value, why_not)
        return {"flow": name, "dry_run": dry_run, "skipped": why_not, "problems": [], "failed": 0}
    do = plan_flow_groups if dry_run else apply_flow_groups
    done = do(flow, topology, commit=step.commit, ledger=ledger)
    _tell(done)
    # The step that commits knows more, and comes later.
    if complete and (step.commit or not flow.sync_group_offsets_enabled):
        save_groups(ledger, done.plan, applied=done.applied)
    if done.applied and complete and not done.plan.problems:
        ledger.note_sync(name, step.step, now)
    problems = done.plan.problems
    return {
        **done.plan.summary(),
        "dry_run": dry_run,
        "skipped": None,
        "problems": list(problems[:_PROBLEMS_RETURNED]),
        "failed": len(problems),
    }


def why_not_emitted(flow: FlowConfig) -> str | None:
    """Why the flow emits no checkpoints, in words; None when it does (mm2 `MirrorCheckpointConfig.validate`)."""
    if not flow.emit_checkpoints_enabled:
        return "emit.checkpoints.enabled is false"
    if not flow.emit_offset_syncs_enabled:
        return "emit.offset-syncs.enabled is false, and groups are translated by offset syncs"
    return None


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

    Groups are looked for anew every time, as MM2 does when it starts; so `refresh.groups.*` has no say here.

    Args:
        ledger: has the exact offset maps.
        commit: whether to look at the groups on the target too.

    Raises:
        MirrorError: a cluster cannot be reached, or a topic or the ledger cannot be read.
    """
    takes = group_filter(flow).should_replicate_group
    every = source.list_groups()
    listed = [each for each in every.values() if takes(each.group)]
    checkpoints, notices = _read_checkpoints(flow)
    # Groups that we may not describe are not listed: those that are known from elsewhere are asked for all the same.
    named = named_groups(flow)
    known = named | supposed_groups(flow, every) | {place.group for place in checkpoints or ()}
    unseen = {group for group in known if takes(group)} - every.keys()
    accepted = {each.group for each in listed if each.kind.of_consumers} | unseen
    committed = source.committed(accepted)
    doubtful = Unseen.of({each: error for each, error in committed.errors.items() if each in unseen}, named).doubtful
    groups = select_groups(topology, accepted, committed.offsets)
    syncs, more_notices = _read_syncs(flow, LoadMode.LAST_ONLY if checkpoints is None else LoadMode.FULL)
    copied_to = _copied_to(flow)
    return GroupFacts(
        committed=groups,
        syncs=syncs,
        checkpoints=checkpoints or {},
        target=_target_groups(target, groups) if commit else None,
        copied_to=copied_to,
        maps={} if ledger is None or not commit else _LedgerMaps(str(flow.flow), ledger, groups.values()),
        exact=flow.group_translation is GroupTranslation.EXACT,
        findings=_findings(listed, {each: error for each, error in committed.errors.items() if each not in doubtful}),
        unreadable={GroupPartition(*key): error for key, error in committed.partition_errors.items()},
        notices=(
            *notices,
            *more_notices,
            *in_words("Nothing is translated for group {}", doubtful),
            *_about_hidden_topics(flow, topology, copied_to, ledger),
        ),
    )


class _LedgerMaps(Mapping[TopicPartition, OffsetMap]):
    """The exact offset maps of partitions, each read when it is asked for: together they may not fit into memory."""

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


def _findings(listed: list[ListedGroup], unreadable: Mapping[str, MirrorError]) -> tuple[GroupFinding, ...]:
    kinds = [
        GroupFinding(each.group, GroupReason.GROUP_KIND_NOT_SUPPORTED, f"it is a {each.kind.value} group")
        for each in listed
        if each.kind in _UNTRANSLATED_KINDS
    ]
    errors = [GroupFinding(group, GroupReason.UNREADABLE, str(error)) for group, error in sorted(unreadable.items())]
    return (*kinds, *errors)


def _target_groups(target: GroupAdmin, groups: Mapping[str, object]) -> TargetGroups:
    listed = {name: each for name, each in target.list_groups().items() if name in groups}
    # The offsets of groups with members are their own affair, those of groups that do not exist are none.
    idle = [name for name, each in listed.items() if each.state is not GroupState.ACTIVE and each.kind.of_consumers]
    committed = target.committed(idle)
    errors = dict(committed.errors)
    for (group, _), error in committed.partition_errors.items():
        # Not knowing where it stands, we could set it back.
        errors.setdefault(group, error)
    return TargetGroups(listed, committed.offsets, errors)


def _read_checkpoints(flow: FlowConfig) -> tuple[dict[GroupPartition, Checkpoint] | None, list[str]]:
    """The last checkpoint of every group and partition; None where we may not read them (KAFKA-15905)."""
    topic = checkpoints_topic(flow).name
    connection = Connection.from_settings(flow.clients.target_internal)
    try:
        found = read_checkpoints(connection, topic, timeout=_timeout(flow))
    except AuthorizationError as error:
        return None, [f"{error} Without earlier checkpoints only the newest offset sync of a partition can be used."]
    newest = {GroupPartition(each.group, TopicPartition(each.topic, each.partition)): each for each in found.entries}
    return newest, _about_unreadable(found.unreadable, topic, flow.flow.target)


def _read_syncs(flow: FlowConfig, mode: LoadMode) -> tuple[OffsetSyncStore, list[str]]:
    topic = offset_syncs_topic(flow).name
    connection = Connection.from_settings(flow.clients.offset_syncs_consumer)
    found = read_offset_syncs(connection, topic, timeout=_timeout(flow))
    store = OffsetSyncStore(mode)
    for sync in found.entries:
        store.add(TopicPartition(sync.topic, sync.partition), SyncPoint(sync.upstream_offset, sync.downstream_offset))
    store.loaded()
    return store, _about_unreadable(found.unreadable, topic, connection.cluster)


def _about_unreadable(count: int, topic: str, cluster: str) -> list[str]:
    if not count:
        return []
    return [
        f"{count} records of {topic} on cluster {cluster} are not of MirrorMaker's format and were passed over; "
        "a record without a value stops MirrorMaker's own readers."
    ]


def _about_hidden_topics(
    flow: FlowConfig, topology: FlowTopology, copied_to: Iterable[TopicPartition], ledger: Ledger | None
) -> Iterator[str]:
    """A group's offsets come without those on topics that we may not describe."""
    stopped = ledger.stopped_partitions(str(flow.flow)) if ledger is not None else ()
    with source_admin(flow) as admin:
        unseen = unseen_topics(admin, flow, topology, admin.list_topics(), copied_to, stopped)
    for error in unseen.refused.values():
        yield f"Nothing is known of groups' offsets there: {error}"
    yield from in_words("Nothing is known of groups' offsets on {}", unseen.doubtful)


def _copied_to(flow: FlowConfig) -> dict[TopicPartition, int]:
    connection = Connection.from_settings(flow.clients.target_internal)
    with PositionStore(connection, flow.offset_storage_topic, flow.flow.source, timeout=_timeout(flow)) as store:
        positions = store.read_all().positions
    return {partition: stored.position.offset + 1 for partition, stored in positions.items()}


def _write_checkpoints(flow: FlowConfig, plan: GroupPlan) -> None:
    with ClusterAdmin(Connection.from_settings(flow.clients.target_admin), _timeout(flow)) as admin:
        ensure_checkpoints_topic(flow, admin)
    checkpoints = list(plan.checkpoints)
    if not checkpoints:
        return
    connection = Connection.from_settings(flow.clients.target_internal)
    with CheckpointWriter(connection, checkpoints_topic(flow).name, timeout=_timeout(flow)) as writer:
        writer.write(checkpoints, timestamp_ms=time.time_ns() // 1_000_000)


def _commit(plan: GroupPlan, target: GroupAdmin) -> GroupPlan:
    wanted = plan.commits
    if not wanted:
        return plan
    refused: dict[GroupPartition, MirrorError] = {
        GroupPartition(group, partition): error
        for group, outcome in target.commit(wanted).items()
        for partition, error in outcome.items()
        if error is not None
    }
    active = [key for key, error in refused.items() if isinstance(error, GroupActiveError)]
    return after_applying(plan, refused, active)


def _tell(done: GroupSync) -> None:
    summary = done.plan.summary()
    _log.info(
        "Flow %s: %s %d checkpoints and %d committed offsets, of %d groups on %d partitions.",
        summary["flow"],
        "wrote" if done.applied else "would write",
        summary["checkpoints"],
        summary["commits"],
        summary["groups"],
        summary["partitions"],
    )
    for reason, count in summary["reasons"].items():
        _log.info("%s: %d", reason, count)
    for notice in done.plan.notices:
        _log.warning("Flow %s: %s", summary["flow"], notice)
    for finding in done.plan.findings[:_LINES_SHOWN]:
        _log.warning("Group %s is left out (%s): %s", finding.group, finding.reason, finding.what)
    spoken = [row for row in done.plan.rows if row.what]
    for row in spoken[:_LINES_SHOWN]:
        _log.warning("Group %s on %s (%s): %s", row.group, row.source, row.reason, row.what)
    if len(spoken) > _LINES_SHOWN:
        _log.warning("... and %d more.", len(spoken) - _LINES_SHOWN)


def _emit_interval(flow: FlowConfig) -> Interval:
    return Interval(
        "emit.checkpoints.enabled",
        flow.emit_checkpoints_enabled,
        "emit.checkpoints.interval.seconds",
        flow.emit_checkpoints_interval_seconds,
    )


def _commit_interval(flow: FlowConfig) -> Interval:
    return Interval(
        "sync.group.offsets.enabled",
        flow.sync_group_offsets_enabled,
        "sync.group.offsets.interval.seconds",
        flow.sync_group_offsets_interval_seconds,
    )


def _check_enabled(flow: FlowConfig) -> None:
    why_not = why_not_emitted(flow)
    if why_not is not None:
        raise ConfigurationError(
            f"the flow has no checkpoints: {why_not}.",
            where=Where(flow=str(flow.flow)),
            action="Remove the setting to have consumer groups translated.",
        )


def _timeout(flow: FlowConfig) -> float:
    return flow.admin_timeout_ms / 1000


@contextmanager
def _groups(flow: FlowConfig) -> Iterator[tuple[GroupAdmin, GroupAdmin]]:
    timeout = _timeout(flow)
    with ExitStack() as opened:
        source = opened.enter_context(GroupAdmin(Connection.from_settings(flow.clients.source_admin), timeout))
        target = opened.enter_context(GroupAdmin(Connection.from_settings(flow.clients.target_admin), timeout))
        yield source, target
