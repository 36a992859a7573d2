"""Keeping writers from topics by ACLs that forbid everybody to write; taken away again by a rollback or failback."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mirror_lib.cluster.kafka_errors import SecurityDisabledError
from mirror_lib.config.model import FlowConfig
from mirror_lib.runbook.gates import named
from mirror_lib.runbook.model import Gate
from mirror_lib.sync.admins import source_admin
from mirror_lib.topology.acls import WILDCARD, WRITE, AclBinding, AclPattern, AclPermission, AclResource

_EVERYBODY = "User:*"
_ACTION = "Stop the writers yourself, and begin the cutover with fence=operator."


@dataclass(frozen=True, slots=True)
class Fenced:
    """What was forbidden, and whether everything was."""

    gate: Gate
    #: Those that stand on the cluster because of us.
    acls: tuple[AclBinding, ...] = ()

    def to_facts(self) -> list[dict[str, Any]]:
        """Plain data for the ledger."""
        return [asdict(acl) for acl in self.acls]


def fence_acls(topics: Iterable[str]) -> tuple[AclBinding, ...]:
    """What forbids everybody to write to topics. Super users are above all ACLs."""
    return tuple(
        AclBinding(AclResource.TOPIC, topic, AclPattern.LITERAL, _EVERYBODY, WILDCARD, WRITE, AclPermission.DENY)
        for topic in sorted(topics)
    )


def raise_fence(flow: FlowConfig, topics: Sequence[str]) -> Fenced:
    """Forbid writing to topics of the flow's source.

    ACLs that stand there already are somebody else's, and stay when the fence is taken away.

    Raises:
        MirrorError: the source cannot be reached.
    """
    wanted = fence_acls(topics)
    with source_admin(flow) as source:
        try:
            present = source.acls([AclResource.TOPIC])
        except SecurityDisabledError:
            text = f"cluster {flow.flow.source} has no authorizer: nobody can be forbidden to write."
            return Fenced(Gate("fence", False, text, _ACTION))
        ours = [acl for acl in wanted if acl not in present]
        outcome = source.create_acls(ours) if ours else {}
    failed = [f"{acl.name} ({error})" for acl, error in outcome.items() if error is not None]
    done = tuple(acl for acl, error in outcome.items() if error is None)
    good = f"{len(wanted):,} topics may be written to by super users only."
    what = good if not failed else f"not fenced: {named(failed)}"
    return Fenced(Gate("fence", not failed, what, _ACTION), done)


def lower_fence(flow: FlowConfig, facts: Sequence[Mapping[str, Any]]) -> Gate:
    """Take away what `raise_fence` put on the flow's source.

    Args:
        facts: as `Fenced.to_facts` gave them.

    Raises:
        MirrorError: the source cannot be reached.
    """
    acls = [_binding(each) for each in facts]
    with source_admin(flow) as source:
        outcome = source.delete_acls(acls) if acls else {}
    failed = [f"{acl.name} ({error})" for acl, error in outcome.items() if error is not None]
    what = f"{len(acls):,} ACLs of the fence are taken away." if not failed else f"still fenced: {named(failed)}"
    return Gate("fence", not failed, what, "Take these ACLs away by kafka-acls.sh.")


def _binding(facts: Mapping[str, Any]) -> AclBinding:
    return AclBinding(
        AclResource(facts["resource"]),
        facts["name"],
        AclPattern(facts["pattern"]),
        facts["principal"],
        facts["host"],
        facts["operation"],
        AclPermission(facts["permission"]),
    )
