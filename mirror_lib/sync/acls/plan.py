"""Plan of ACLs on the target: what the source's ACLs mean there, what must be created, and what differs. Pure.

As in MM2, ACLs are added and not removed. The ledger records which ACLs this program created; only those are ever
deleted, and only with `mirror.acls.delete.enabled`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from mirror_lib.config.model import FlowConfig
from mirror_lib.ledger.rows import AclKind, AclState, ReplicatedAclRow
from mirror_lib.sync.acls.rewrite import AclRewrite
from mirror_lib.topology.acls import ALL, WILDCARD, AclBinding, AclPattern, AclPermission, AclResource
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import FlowId


class AclDifference(StrEnum):
    """How an ACL of the target differs from the source's."""

    #: On the source and not on the target: it will be created.
    MISSING = "missing"
    #: As MISSING, but the replicator created it before: it was deleted on the target. It will be created again.
    DELETED = "deleted on the target"
    #: The replicator created it, and the source no longer has it.
    WITHDRAWN = "withdrawn at the source"
    #: It is on a remote topic of the flow, neither from the source nor created by the replicator: it stays.
    FOREIGN = "only on the target"


class AclWinner(StrEnum):
    """The side whose ACL the next sync keeps."""

    SOURCE = "source"
    TARGET = "target"


@dataclass(frozen=True, slots=True)
class AclDrift:
    """One ACL that differs between source and target, and which side wins."""

    acl: AclBinding
    difference: AclDifference
    winner: AclWinner

    def __str__(self) -> str:
        return f"{self.acl}: {self.difference.value}, {self.winner.value} wins"


@dataclass(frozen=True, slots=True)
class AclFacts:
    """The ACLs and topics of both clusters and the ledger's rows for one flow."""

    source: frozenset[AclBinding]
    target: frozenset[AclBinding]
    #: All topics of the source.
    source_topics: tuple[str, ...] = ()
    #: The ledger's rows of the flow, by ACL.
    remembered: Mapping[AclBinding, ReplicatedAclRow] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AclPlan:
    """Changes to a flow's ACLs. Two plans are equal if they make the same changes and report the same."""

    flow: FlowId
    create: tuple[AclBinding, ...] = ()
    #: Created by the replicator, withdrawn at the source; only with `mirror.acls.delete.enabled`.
    delete: tuple[AclBinding, ...] = ()
    #: Grants to write that are new to the ledger, or whose `withdrawn` mark changes.
    stage: tuple[AclBinding, ...] = ()
    withdraw: tuple[AclBinding, ...] = ()
    #: Obsolete rows: the ACL is gone on both sides.
    forget: tuple[AclBinding, ...] = ()
    drift: tuple[AclDrift, ...] = ()
    #: Grants to write that wait for the cutover, and released ones, after this plan is applied.
    waiting: tuple[AclBinding, ...] = ()
    released: tuple[AclBinding, ...] = ()
    #: Denials of the source without a counterpart on the target, where the forbidden operations are thus allowed.
    skipped_denials: tuple[AclBinding, ...] = ()
    #: ACLs without a change.
    unchanged: int = 0
    #: Set if there is nothing to do because a cluster has no authorizer.
    notice: str | None = None

    def __str__(self) -> str:
        if self.notice is not None:
            return self.notice
        lines = [f"create {acl}" for acl in self.create]
        lines += [f"delete {acl}" for acl in self.delete]
        lines += [f"stage for the cutover {acl}" for acl in self.stage]
        lines.append(f"{self.unchanged} ACLs unchanged")
        if self.waiting or self.released:
            counts = len(self.waiting), len(self.released)
            lines.append(f"{counts[0]} WRITE grants staged for the cutover, {counts[1]} released")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "flow": str(self.flow),
            "create": [asdict(acl) for acl in self.create],
            "delete": [asdict(acl) for acl in self.delete],
            "stage": [asdict(acl) for acl in self.stage],
            "withdraw": [asdict(acl) for acl in self.withdraw],
            "drift": [
                {**asdict(row.acl), "difference": row.difference.value, "winner": row.winner.value}
                for row in self.drift
            ],
            "waiting": [asdict(acl) for acl in self.waiting],
            "released": [asdict(acl) for acl in self.released],
            "skipped_denials": [asdict(acl) for acl in self.skipped_denials],
            "unchanged": self.unchanged,
            "notice": self.notice,
        }


def plan_acls(flow: FlowConfig, topology: FlowTopology, facts: AclFacts) -> AclPlan:
    """Plan the changes to a flow's ACLs.

    A topology that is limited to some topics only adds ACLs: one that is missing there may belong to other topics.

    Raises:
        ConfigurationError: the group filter cannot be used.
    """
    rewrite = AclRewrite(flow, topology, facts.source_topics)
    rewritten = rewrite.of(facts.source)
    copied = {acl: row for acl, row in facts.remembered.items() if row.kind == AclKind.COPIED}
    held = {acl: row for acl, row in facts.remembered.items() if row.kind == AclKind.STAGED}
    whole = not topology.limits
    missing = rewritten.wanted - facts.target
    gone = frozenset(acl for acl in copied if whole and acl not in rewritten.wanted)
    withdrawn = gone & facts.target
    stage = frozenset(acl for acl in rewritten.staged if acl not in held or held[acl].withdrawn)
    # Without the setting, the source's grants are not known.
    looked = whole and flow.acl_rules.stage_writes
    withdraw = frozenset(
        acl for acl, row in held.items() if looked and acl not in rewritten.staged and not row.withdrawn
    )
    released = {acl for acl, row in held.items() if row.state != AclState.WAITING}
    return AclPlan(
        flow.flow,
        create=tuple(sorted(missing)),
        delete=tuple(sorted(withdrawn)) if flow.acl_rules.delete else (),
        stage=tuple(sorted(stage)),
        withdraw=tuple(sorted(withdraw)),
        forget=tuple(sorted(gone - facts.target)),
        drift=tuple(_drift(flow, topology, facts, rewritten.wanted, missing, withdrawn)),
        waiting=tuple(sorted((stage | held.keys()) - released)),
        released=tuple(sorted(released)),
        skipped_denials=tuple(_skipped_denials(flow, rewrite, facts, rewritten.wanted)),
        unchanged=len(rewritten.wanted & facts.target),
    )


def _skipped_denials(
    flow: FlowConfig, rewrite: AclRewrite, facts: AclFacts, wanted: frozenset[AclBinding]
) -> Iterable[AclBinding]:
    """Denials that the target lacks for at least one of their topics, regardless of who creates them there."""
    there = [acl for acl in facts.target | wanted if acl.permission is AclPermission.DENY]
    for acl in sorted(facts.source):
        principal = flow.acl_rules.principals.get(acl.principal, acl.principal)
        same = [
            each
            for each in there
            if (each.resource, each.principal, each.host) == (acl.resource, principal, acl.host)
            and each.operation in (acl.operation, ALL)
        ]
        if any(not any(each.matches(topic) for each in same) for topic in rewrite.denied_topics(acl)):
            yield acl


def _drift(
    flow: FlowConfig,
    topology: FlowTopology,
    facts: AclFacts,
    wanted: frozenset[AclBinding],
    missing: frozenset[AclBinding],
    withdrawn: frozenset[AclBinding],
) -> Iterable[AclDrift]:
    for acl in sorted(missing):
        known = facts.remembered.get(acl)
        deleted = known is not None and known.state == AclState.CREATED
        yield AclDrift(acl, AclDifference.DELETED if deleted else AclDifference.MISSING, AclWinner.SOURCE)
    for acl in sorted(withdrawn):
        winner = AclWinner.SOURCE if flow.acl_rules.delete else AclWinner.TARGET
        yield AclDrift(acl, AclDifference.WITHDRAWN, winner)
    remote = {topology.remote_topic(topic) for topic in facts.source_topics if topology.replicates(topic)}
    for acl in sorted(facts.target - wanted - facts.remembered.keys()):
        on_remote = acl.resource is AclResource.TOPIC and acl.pattern is AclPattern.LITERAL and acl.name in remote
        if on_remote and acl.name != WILDCARD:
            yield AclDrift(acl, AclDifference.FOREIGN, AclWinner.TARGET)


def binding_of(row: ReplicatedAclRow) -> AclBinding:
    """The ACL of a row."""
    return AclBinding(
        AclResource(row.resource),
        row.name,
        AclPattern(row.pattern),
        row.principal,
        row.host,
        row.operation,
        AclPermission(row.permission),
    )


def row_of(
    flow: FlowId, acl: AclBinding, kind: AclKind, state: AclState, *, now: datetime, by: str, withdrawn: bool = False
) -> ReplicatedAclRow:
    """The row of an ACL."""
    return ReplicatedAclRow(
        flow=str(flow),
        resource=acl.resource.value,
        name=acl.name,
        pattern=acl.pattern.value,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission=acl.permission.value,
        kind=kind.value,
        state=state.value,
        withdrawn=withdrawn,
        changed_at=now,
        changed_by=by,
    )
