"""Offset translation for a flow's consumer groups: plan or apply, by command or as steps of a scheduled run."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.admin.groups import GroupActiveError, GroupAdmin
from mirror_lib.cluster.admin.results import batches
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import CheckpointWriter
from mirror_lib.config.model import FlowConfig, GroupMetadata
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.admins import group_admins, target_admin
from mirror_lib.sync.due_steps import StepResult, run_if_due, why_not_emitted
from mirror_lib.sync.groups.changed_logs import LookScope, choose_logs, with_changed_logs
from mirror_lib.sync.groups.model import GroupPartition, GroupPlan
from mirror_lib.sync.groups.plan import after_applying, plan_groups, with_targets_reread
from mirror_lib.sync.groups.read import gather_group_facts, read_target_groups
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.sync.observed import save_groups
from mirror_lib.sync.topics.internal import checkpoints_topic, ensure_checkpoints_topic
from mirror_lib.topology.flow_topology import FlowTopology

_log = logging.getLogger(__name__)
#: A log line for each of thousands of groups does not help.
_LINES_SHOWN = 50
_PROBLEMS_RETURNED = 10
#: Listing groups costs one request per broker; the commits for one batch follow within a few tenths of a second.
_GROUPS_AT_ONCE = 500
_ALL_DUE = LookScope()
#: How long after the end of a run the logs that it has read and written count as known.
_KNOWN_SECONDS = 600


@dataclass(frozen=True, slots=True)
class GroupSync:
    """The plan for a flow's groups; after it was applied, with the target's responses."""

    plan: GroupPlan
    applied: bool = False

    @property
    def exit_code(self) -> int:
        """0, or 3 if a cluster did not return or accept the offsets of a group: an operator must check."""
        return 3 if self.plan.problems else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {**self.plan.to_dict(), "applied": self.applied}


def plan_flow_groups(
    flow: FlowConfig,
    topology: FlowTopology,
    *,
    commit: bool | None = None,
    ledger: Ledger | None = None,
    scope: LookScope = _ALL_DUE,
) -> GroupSync:
    """Return the changes to a flow's groups that are due. Reads both clusters, changes nothing.

    Args:
        commit: as for `apply_flow_groups`.
        ledger: as for `apply_flow_groups`.
        scope: as for `apply_flow_groups`.

    Raises:
        ConfigurationError: the flow emits no checkpoints.
        MirrorError: a cluster cannot be used, or a topic cannot be read.
    """
    _check_enabled(flow)
    if commit is None:
        commit = flow.sync_group_offsets_enabled
    with group_admins(flow) as (source, target):
        return GroupSync(_plan(flow, topology, source, target, ledger, commit=commit, scope=scope))


def apply_flow_groups(
    flow: FlowConfig,
    topology: FlowTopology,
    *,
    commit: bool | None = None,
    ledger: Ledger | None = None,
    scope: LookScope = _ALL_DUE,
) -> GroupSync:
    """Write checkpoints and, if the flow is configured to, commit offsets on the target. Failures are per group.

    Args:
        commit: commit offsets; None uses `sync.group.offsets.enabled`.
        ledger: has the exact offset maps; without it, groups are always translated by MM2's rule.
        scope: the logs to compare first.

    Raises:
        ConfigurationError: the flow emits no checkpoints.
        MirrorError: a cluster cannot be used, or checkpoints cannot be read or written.
    """
    _check_enabled(flow)
    if commit is None:
        commit = flow.sync_group_offsets_enabled
    with group_admins(flow) as (source, target):
        plan = _plan(flow, topology, source, target, ledger, commit=commit, scope=scope)
        _write_checkpoints(flow, plan)
        return GroupSync(_commit(flow, plan, target), applied=True)


def _plan(
    flow: FlowConfig,
    topology: FlowTopology,
    source: GroupAdmin,
    target: GroupAdmin,
    ledger: Ledger | None,
    *,
    commit: bool,
    scope: LookScope,
) -> GroupPlan:
    facts = gather_group_facts(flow, topology, source, target, ledger, commit=commit)
    plan = plan_groups(topology, facts)
    chosen = choose_logs(facts, plan, scope)
    compared = with_changed_logs(flow, facts, chosen)
    plan = plan if compared is facts else plan_groups(topology, compared)
    return plan.postponed(chosen.later)


def sync_flow_groups(
    flow: FlowConfig,
    topology: FlowTopology,
    ledger: Ledger,
    step: SyncStep,
    *,
    dry_run: bool,
    complete: bool = True,
    at_once: bool = False,
    trigger: str | None = None,
) -> dict[str, Any]:
    """Run a step for groups in a scheduled run (`run_if_due`); log, and return counts, never rows.

    Args:
        step: `CHECKPOINTS` writes checkpoints. `GROUP_OFFSETS` also commits offsets on the target; it reads groups
            again, since they may have moved, and writes the checkpoint of every offset that it commits.
        complete: the topology is that of the whole flow, so that the interval restarts.
        trigger: what has started the run that the step follows; None if it follows none.

    Raises:
        MirrorError: as `apply_flow_groups`.
    """
    commit = step is SyncStep.GROUP_OFFSETS

    def run() -> StepResult:
        work = plan_flow_groups if dry_run else apply_flow_groups
        done = work(flow, topology, commit=commit, ledger=ledger, scope=_scope(flow, ledger, trigger))
        _log_sync(done)
        # The step that commits knows more, and comes later.
        if complete and (commit or not flow.sync_group_offsets_enabled):
            save_groups(ledger, done.plan, applied=done.applied)
        problems = done.plan.problems
        report = {
            **done.plan.summary(),
            "problems": list(problems[:_PROBLEMS_RETURNED]),
            "failed": len(problems),
        }
        return StepResult(report, complete=done.applied and complete and not problems)

    return {"flow": str(flow.flow), **run_if_due(flow, step, ledger, run, dry_run=dry_run, at_once=at_once)}


def _scope(flow: FlowConfig, ledger: Ledger, trigger: str | None) -> LookScope:
    """What a step of a scheduled run compares: what its run has just copied is known."""
    name = str(flow.flow)
    runs = () if trigger is None else ledger.runs(name, 1, trigger=trigger)
    ended = runs[0].finished_at if runs else None
    age = None if ended is None else (datetime.now(UTC) - ended).total_seconds()
    is_known = age is not None and 0 <= age < _KNOWN_SECONDS
    return LookScope(runs[0].id if is_known else None, lambda: ledger.count_runs(name))


def _write_checkpoints(flow: FlowConfig, plan: GroupPlan) -> None:
    with target_admin(flow) as admin:
        ensure_checkpoints_topic(flow, admin)
    checkpoints = list(plan.checkpoints)
    if not checkpoints:
        return
    connection = Connection.from_settings(flow.clients.target_internal)
    with CheckpointWriter(connection, checkpoints_topic(flow).name, timeout=flow.admin_timeout_ms / 1000) as writer:
        writer.write(checkpoints, timestamp_ms=time.time_ns() // 1_000_000)


def _commit(flow: FlowConfig, plan: GroupPlan, target: GroupAdmin) -> GroupPlan:
    """Commit due offsets of groups that have not moved since they were read.

    Kafka has no conditional commit: it rejects only groups that have members at that moment. So a batch of groups is
    re-read right before its commit: a member would have to join, commit and leave in between.
    """
    refused: dict[GroupPartition, MirrorError] = {}
    drops_metadata = flow.group_metadata is GroupMetadata.DROP
    for part in batches(list(plan.commits), _GROUPS_AT_ONCE):
        now = read_target_groups(target, set(part), drops_metadata=drops_metadata)
        plan = with_targets_reread(plan, set(part), now)
        wanted = {group: offsets for group, offsets in plan.commits.items() if group in part}
        refused |= {
            GroupPartition(group, partition): error
            for group, outcome in target.commit(wanted).items()
            for partition, error in outcome.items()
            if error is not None
        }
    active = [key for key, error in refused.items() if isinstance(error, GroupActiveError)]
    return after_applying(plan, refused, active)


def _log_sync(done: GroupSync) -> None:
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
    for notice in (*done.plan.notices, *done.plan.never_translated, *done.plan.remarks):
        _log.warning("Flow %s: %s", summary["flow"], notice)
    for finding in done.plan.findings[:_LINES_SHOWN]:
        _log.warning("Group %s is skipped (%s): %s", finding.group, finding.reason, finding.what)
    explained = [row for row in done.plan.rows if row.what]
    for row in explained[:_LINES_SHOWN]:
        _log.warning("Group %s on %s (%s): %s", row.group, row.source, row.reason, row.what)
    if len(explained) > _LINES_SHOWN:
        _log.warning("... and %d more.", len(explained) - _LINES_SHOWN)


def _check_enabled(flow: FlowConfig) -> None:
    why_not = why_not_emitted(flow)
    if why_not is not None:
        raise ConfigurationError(
            f"the flow has no checkpoints: {why_not}.",
            where=Where(flow=str(flow.flow)),
            action="Remove the setting to translate consumer groups.",
        )
