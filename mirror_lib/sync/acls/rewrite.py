"""Rewrites an ACL of the source to ACLs of the target. Pure.

MM2's rewrite (`MirrorSourceConnector.targetAclBinding`): literal ACLs on topics that the flow replicates, with the
remote topic's name; grants to write are dropped, so that only the replicator writes remote topics; grants of all
operations become grants to read; everything else is unchanged. The rest is `mirror.acls.*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import group_filter
from mirror_lib.topology.acls import ALL, READ, WILDCARD, AclBinding, AclPattern, AclPermission, AclResource
from mirror_lib.topology.flow_topology import FlowTopology


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The target's ACLs for ACLs of the source."""

    #: To be created now.
    wanted: frozenset[AclBinding]
    #: Grants to write, to be created after the cutover.
    staged: frozenset[AclBinding]


class AclRewrite:
    """The rewrite of one flow."""

    def __init__(self, flow: FlowConfig, topology: FlowTopology, source_topics: Iterable[str]) -> None:
        """Take the flow's settings.

        Args:
            flow: the flow.
            topology: its rules about topics, possibly limited to some topics.
            source_topics: all topics of the source; only ACLs on several topics depend on them.

        Raises:
            ConfigurationError: the group filter cannot be used.
        """
        self._rules = flow.acl_rules
        self._topology = topology
        self._groups = group_filter(flow)
        self._topics: Sequence[str] = sorted(topic for topic in source_topics if topology.replicates(topic))

    def of(self, acls: Iterable[AclBinding]) -> Rewritten:
        """Rewrite the source's ACLs for the target."""
        wanted: set[AclBinding] = set()
        staged: set[AclBinding] = set()
        for acl in acls:
            places = self._places(acl)
            if not places:
                continue
            mapped = replace(acl, principal=self._rules.principals.get(acl.principal, acl.principal))
            moved = [replace(mapped, name=name, pattern=pattern) for name, pattern in places]
            if acl.grants_writes:
                staged.update(moved if self._rules.stage_writes else ())
                moved = [replace(each, operation=READ) for each in moved if each.operation == ALL]
            wanted.update(moved)
        return Rewritten(frozenset(wanted), frozenset(staged))

    def denied_topics(self, acl: AclBinding) -> frozenset[str]:
        """The remote topics that a denial of the source applies to; empty for other ACLs."""
        if acl.permission is not AclPermission.DENY or acl.resource is not AclResource.TOPIC:
            return frozenset()
        return frozenset(self._topology.remote_topic(topic) for topic in self._topics if acl.matches(topic))

    def _places(self, acl: AclBinding) -> list[tuple[str, AclPattern]]:
        """Names and patterns on the target; empty if the ACL is not copied."""
        if acl.resource not in self._rules.resources:
            return []
        prefixes = AclPattern.PREFIXED in self._rules.patterns
        if acl.resource is not AclResource.TOPIC:
            return [(acl.name, acl.pattern)] if self._keeps_its_name(acl) else []
        if prefixes and (acl.pattern is AclPattern.PREFIXED or acl.name == WILDCARD):
            return self._of_many_topics(acl)
        if acl.pattern not in self._rules.patterns or not self._topology.replicates(acl.name):
            return []
        return [(self._topology.remote_topic(acl.name), AclPattern.LITERAL)]

    def _keeps_its_name(self, acl: AclBinding) -> bool:
        if acl.pattern not in self._rules.patterns:
            return False
        # A filter of whole names cannot check a prefix; it grants nothing on groups that do not exist.
        filtered = acl.resource is AclResource.GROUP and acl.pattern is AclPattern.LITERAL and acl.name != WILDCARD
        return not filtered or self._groups.should_replicate_group(acl.name)

    def _of_many_topics(self, acl: AclBinding) -> list[tuple[str, AclPattern]]:
        """One prefix for the remote topics whose names start with the renamed prefix; one literal name for each other.

        Empty if the flow replicates no topic under the prefix: the target's own topics may be there.
        """
        covered = [topic for topic in self._topics if acl.matches(topic)]
        if not covered:
            return []
        prefix = self._topology.policy.format_remote_topic(
            self._topology.source_alias, "" if acl.name == WILDCARD else acl.name
        )
        remote = [self._topology.remote_topic(topic) for topic in covered]
        others = [(name, AclPattern.LITERAL) for name in remote if not name.startswith(prefix)]
        if len(others) == len(remote):
            return others
        return [(prefix, AclPattern.PREFIXED) if prefix else (WILDCARD, AclPattern.LITERAL), *others]
