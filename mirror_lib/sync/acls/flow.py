"""ACL sync of a flow between two clusters: read, plan, create, and record in the ledger."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.protocol.kafka_errors import SecurityDisabledError, UnsupportedRequestError
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import AuthorizationError, MirrorError
from mirror_lib.identity.clusters import check_clusters, cluster_pair
from mirror_lib.ledger.rows import AclKind, AclState, ReplicatedAclRow
from mirror_lib.ledger.store import Ledger
from mirror_lib.sync.acls.plan import AclFacts, AclPlan, binding_of, plan_acls, row_of
from mirror_lib.sync.admins import flow_admins
from mirror_lib.sync.due_steps import StepResult, run_if_due
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.topology.acls import AclBinding, AclResource
from mirror_lib.topology.flow_topology import FlowTopology

_log = logging.getLogger(__name__)
#: A log line for each of thousands of ACLs does not help.
_LINES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class AclSync:
    """The plan for a flow's ACLs and, unless it was a dry run, the ACLs that the cluster rejected."""

    plan: AclPlan
    applied: bool = False
    failed: tuple[tuple[AclBinding, MirrorError], ...] = ()

    @property
    def exit_code(self) -> int:
        """0 if nothing was rejected, else the highest exit code of the errors; 1 if denials are skipped."""
        return max((error.exit_code for _, error in self.failed), default=int(bool(self.plan.skipped_denials)))

    @property
    def denials_text(self) -> str | None:
        """A sentence about the skipped denials."""
        if not self.plan.skipped_denials:
            return None
        return (
            f"{len(self.plan.skipped_denials):,} DENY ACLs of the source are not synchronized, such as "
            f"{self.plan.skipped_denials[0]}: on the target, operations that the source denies may be allowed. Set "
            "mirror.acls.patterns = literal,prefixed, or create the DENY ACLs on the target."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            **self.plan.to_dict(),
            "applied": self.applied,
            "failed": [{**error.attributes(), "acl": str(acl)} for acl, error in self.failed],
            "warning": self.denials_text,
        }


def plan_flow_acls(flow: FlowConfig, topology: FlowTopology, ledger: Ledger) -> AclSync:
    """Return the changes that are due. Reads both clusters, changes nothing.

    Raises:
        MirrorError: a cluster or the ledger cannot be used. A cluster without an authorizer gives a plan with a notice.
    """
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        return AclSync(_plan(flow, topology, ledger, source, target))


def apply_flow_acls(flow: FlowConfig, topology: FlowTopology, ledger: Ledger, *, by: str) -> AclSync:
    """Create the ACLs that the target lacks, and update the ledger. A rejected ACL does not stop the others.

    Args:
        flow: the flow.
        topology: its rules about topics, possibly limited to some topics.
        ledger: stores which ACLs were created.
        by: the operator or program, for the ledger.

    Raises:
        MirrorError: as `plan_flow_acls`.
    """
    with flow_admins(flow) as (source, target):
        check_clusters(flow, ledger, cluster_pair(source, target))
        plan = _plan(flow, topology, ledger, source, target)
        return AclSync(plan, applied=True, failed=apply_acls(plan, target, ledger, by=by))


def sync_flow_acls(
    flow: FlowConfig, topology: FlowTopology, ledger: Ledger, *, dry_run: bool, by: str, at_once: bool = False
) -> dict[str, Any]:
    """Run `apply_flow_acls` as a step of a scheduled run (`run_if_due`); log, and return counts and problems.

    Raises:
        MirrorError: as `apply_flow_acls`.
    """

    def run() -> StepResult:
        done = plan_flow_acls(flow, topology, ledger) if dry_run else apply_flow_acls(flow, topology, ledger, by=by)
        _log_sync(done)
        failed = {acl for acl, _ in done.failed}
        report = {
            "skipped": done.plan.notice,
            "created": sum(acl not in failed for acl in done.plan.create),
            "unchanged": done.plan.unchanged,
            "problems": [str(error) for _, error in done.failed[:_LINES_SHOWN]],
            "failed": len(done.failed),
            "skipped_denials": len(done.plan.skipped_denials),
            "notices": [] if done.denials_text is None else [done.denials_text],
        }
        # A run that is limited to some topics leaves the step due for the others.
        return StepResult(report, complete=done.applied and not topology.limits and not done.failed)

    counts = ("created", "unchanged")
    return run_if_due(flow, SyncStep.TOPIC_ACLS, ledger, run, dry_run=dry_run, at_once=at_once, counts=counts)


def gather_acl_facts(flow: FlowConfig, ledger: Ledger, source: ClusterAdmin, target: ClusterAdmin) -> AclFacts:
    """Read what a plan needs: one request per type of resource, regardless of the number of ACLs.

    Raises:
        SecurityDisabledError: one of the clusters has no authorizer.
        MirrorError: a cluster or the ledger cannot be used.
    """
    resources = flow.acl_rules.resources
    return AclFacts(
        source=source.acls(resources) - _fences(flow, ledger),
        target=target.acls(resources),
        source_topics=tuple(source.list_topics()),
        remembered={binding_of(row): row for row in ledger.acls(str(flow.flow))},
    )


def _fences(flow: FlowConfig, ledger: Ledger) -> frozenset[AclBinding]:
    """ACLs that stop writers on the source during a cutover; on the target, they would stop the moved writers."""
    return frozenset(AclBinding.from_dict(each) for each in ledger.handovers.fences(str(flow.flow)))


def apply_acls(
    plan: AclPlan, target: ClusterAdmin, ledger: Ledger, *, by: str
) -> tuple[tuple[AclBinding, MirrorError], ...]:
    """Apply a plan; return the ACLs that the cluster rejected, each with its error.

    An ACL is recorded after it was created: after a crash in between it is an extra ACL that is never deleted, which
    is better than deleting an ACL of another owner.

    Raises:
        MirrorError: the cluster or the ledger cannot be used.
    """
    now = datetime.now(UTC)
    before = {binding_of(row): AclState(row.state) for row in ledger.acls(str(plan.flow))}

    def staged_row(acl: AclBinding, *, withdrawn: bool) -> ReplicatedAclRow:
        state = before.get(acl, AclState.WAITING)
        return row_of(plan.flow, acl, AclKind.STAGED, state, now=now, by=by, withdrawn=withdrawn)

    def copied_row(acl: AclBinding) -> ReplicatedAclRow:
        return row_of(plan.flow, acl, AclKind.COPIED, AclState.CREATED, now=now, by=by)

    ledger.save_acls([staged_row(acl, withdrawn=False) for acl in plan.stage])
    ledger.save_acls([staged_row(acl, withdrawn=True) for acl in plan.withdraw])
    created = target.create_acls(plan.create) if plan.create else {}
    ledger.save_acls([copied_row(acl) for acl, error in created.items() if error is None])
    deleted = target.delete_acls(plan.delete) if plan.delete else {}
    gone = [acl for acl, error in deleted.items() if error is None]
    ledger.forget_acls([copied_row(acl) for acl in (*gone, *plan.forget)])
    outcome = {**created, **deleted}
    return tuple((acl, error) for acl, error in sorted(outcome.items()) if error is not None)


def _plan(
    flow: FlowConfig, topology: FlowTopology, ledger: Ledger, source: ClusterAdmin, target: ClusterAdmin
) -> AclPlan:
    try:
        facts = gather_acl_facts(flow, ledger, source, target)
    except SecurityDisabledError as error:
        notice = f"Cluster {error.where.cluster} has no authorizer: no ACLs are synchronized from {flow.flow.source} to"
        return AclPlan(flow.flow, notice=f"{notice} {flow.flow.target}.")
    except UnsupportedRequestError as error:
        notice = (
            f"Cluster {error.where.cluster} does not list its ACLs: none are synchronized from {flow.flow.source} to"
        )
        return AclPlan(flow.flow, notice=f"{notice} {flow.flow.target}.")
    except AuthorizationError as error:
        raise type(error)(
            error.what,
            where=error.where,
            action=f"{error.action} Or disable the step: sync.topic.acls.enabled=false.",
        ) from error
    # ACLs may be there before their topic.
    with_acls = (acl.name for acl in facts.source if acl.resource is AclResource.TOPIC)
    topology.refuse_empty_choice({*facts.source_topics, *with_acls})
    return plan_acls(flow, topology, facts)


def _log_sync(done: AclSync) -> None:
    flow, verb = done.plan.flow, "will" if done.applied else "would"
    if done.plan.notice is not None:
        _log.info("Flow %s: %s", flow, done.plan.notice)
        return
    steps = [f"create {acl}" for acl in done.plan.create]
    steps += [f"delete {acl}" for acl in done.plan.delete]
    steps += [f"stage for the cutover {acl}" for acl in done.plan.stage]
    for step in steps[:_LINES_SHOWN]:
        _log.info("Flow %s %s %s.", flow, verb, step)
    if len(steps) > _LINES_SHOWN:
        _log.info("... and %d more.", len(steps) - _LINES_SHOWN)
    _log.info("%d ACLs unchanged.", done.plan.unchanged)
    if done.denials_text is not None:
        _log.warning("Flow %s: %s", flow, done.denials_text)
    for _, error in done.failed[:_LINES_SHOWN]:
        _log.error("Flow %s: %s", flow, error)
