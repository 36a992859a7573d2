"""Configs and ACLs that a copy should have and has not, by MirrorMaker 2's rules. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from mirror_lib.cluster.admin.model import TopicConfigs
from mirror_lib.config.loader import examine
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.audit.pairs import TopicPair
from mirror_lib.sync.acls.plan import AclFacts, plan_acls
from mirror_lib.sync.configs.plan import ConfigFacts, plan_configs
from mirror_lib.topology.acls import AclBinding
from mirror_lib.topology.filters import TopicFilter
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.policy import IdentityReplicationPolicy
from mirror_lib.topology.rename import RenameRules

_PRESENT, _ABSENT = "present", "absent"
#: MirrorMaker 2's defaults: only the settings that every file has.
_DEFAULTS = b"clusters=source, target\nsource.bootstrap.servers=s:1\ntarget.bootstrap.servers=t:1\n"
_ENABLED = b"source->target.enabled=true\nsource->target.topics=.*\n"


@dataclass(frozen=True, slots=True)
class Difference:
    """A config or an ACL of a copy."""

    #: Of the target; of an ACL the name of its resource.
    topic: str
    #: The name of the config, or the ACL.
    what: str
    #: What the source has, and the target.
    source: str
    target: str

    def to_dict(self) -> dict[str, str]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AuditedFlow:
    """The rules about configs and ACLs: of a flow in MirrorMaker 2's file, else MirrorMaker 2's defaults."""

    config: FlowConfig
    topology: FlowTopology

    @classmethod
    def of_pairs(cls, pairs: Iterable[TopicPair]) -> AuditedFlow:
        """The defaults, for these topics and their copies."""
        (config,) = examine("no file", _DEFAULTS + _ENABLED).config.enabled_flows
        copies = dict(pairs)
        named = RenameRules(explicit=copies, merge=True)
        return cls(config, FlowTopology(config.flow, IdentityReplicationPolicy({}), _Listed(copies), named))


class _Listed(TopicFilter):
    def __init__(self, topics: Collection[str]) -> None:
        self._topics = topics

    def should_replicate_topic(self, topic: str) -> bool:
        return topic in self._topics


def config_differences(
    flow: AuditedFlow,
    pairs: Iterable[TopicPair],
    source: Mapping[str, TopicConfigs],
    target: Mapping[str, TopicConfigs],
) -> Iterator[Difference]:
    """Configs of copies with another effect than the source's, where the rules say that the source's applies.

    Args:
        source: configs by topic; of the target likewise. Topics whose configs could not be read are absent.
    """
    facts = ConfigFacts({each.target: each.source for each in pairs}, source, target)
    for each in plan_configs(flow.config, facts).drift:
        # Where the values are the same now, a later change of the brokers' defaults would not matter to a reader.
        if each.planned and each.source_value != each.target_value:
            yield Difference(each.topic, each.name, each.source_value or _ABSENT, each.target_value or _ABSENT)


def acl_differences(
    flow: AuditedFlow, pairs: Iterable[TopicPair], source: Collection[AclBinding], target: Collection[AclBinding]
) -> Iterator[Difference]:
    """ACLs that the rules copy and the target lacks, and denials whose operations are allowed there.

    Grants to write are not copied: MirrorMaker 2 alone writes copies.
    """
    topics = tuple(each.source for each in pairs)
    plan = plan_acls(flow.config, flow.topology, AclFacts(frozenset(source), frozenset(target), topics))
    for acl in (*plan.create, *plan.skipped_denials):
        yield Difference(acl.name, str(acl), _PRESENT, _ABSENT)
