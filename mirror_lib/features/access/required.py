"""The minimum rights of a flow's user, task by task, derived from the flow's settings alone. Pure.

Kafka's documentation lists the right that each request requires ("Operations and Resources on Protocols"). Which
requests a task sends depends on this program: tests/integration/access removes one right after the other, and expects
the task to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from mirror_lib.config import name_patterns as patterns
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.model import Fencing, FlowConfig, MirrorConfig, OffsetSyncsLocation
from mirror_lib.config.name_patterns import NamePattern
from mirror_lib.config.topology import flow_topology, offset_syncs_topic, quarantine_topic, replication_policy
from mirror_lib.features.access.model import ON_DEMAND, AccessTask, RequiredAccess, Side
from mirror_lib.sync.due_steps import why_not_emitted
from mirror_lib.sync.heartbeats.rules import emitting_flows
from mirror_lib.topology.access import Grant, Operation, Resource, without_covered
from mirror_lib.topology.acls import WILDCARD, AclPattern

#: Since this version, producers without a transactional id may write idempotently wherever they may write (KIP-679).
_FREE_IDEMPOTENCE = "2.8"


def required_access(config: MirrorConfig, flow: FlowConfig) -> tuple[RequiredAccess, ...]:
    """Every right that a flow's tasks need on both clusters; disabled tasks need none.

    Within a task and a cluster no right implies another; across tasks some do (`access.model.grants_by_cluster`).

    Args:
        config: the file; this flow's runs also write the heartbeats of its other flows.

    Raises:
        ConfigurationError: a class or a regex of the flow cannot be used.
    """
    names = _Names.of(flow)
    found = [each for task, needs in _TASKS.items() for each in _necessary(needs(names, task))]
    return tuple(_in_order([*found, *_necessary(_heartbeat_access(config, flow))]))


def scheduled_access(flow: FlowConfig, required: Iterable[RequiredAccess]) -> tuple[RequiredAccess, ...]:
    """Rights for the flow's scheduled runs, without those for tasks that an operator starts."""
    on_demand = ON_DEMAND - ({AccessTask.VERIFY} if flow.verify_schedule is not None else set())
    return tuple(each for each in required if each.task not in on_demand)


def transactional_id_prefix(flow: FlowConfig) -> str:
    """The common prefix of the transactional ids of a flow's writers."""
    return f"mirror:{flow.flow}:"


def backfill_id_prefix(flow: FlowConfig) -> str:
    """The common prefix of the transactional ids of the writers of a flow's backfills."""
    return f"mirror:{flow.flow}#backfill-"


@dataclass(frozen=True, slots=True)
class _Names:
    """The resource names in the rights of a flow."""

    flow: FlowConfig
    sources: tuple[NamePattern, ...]
    targets: tuple[NamePattern, ...]
    groups: tuple[NamePattern, ...]

    @classmethod
    def of(cls, flow: FlowConfig) -> _Names:
        return cls(flow, patterns.source_topics(flow), patterns.target_topics(flow), patterns.groups(flow))

    @property
    def positions(self) -> tuple[NamePattern]:
        return (patterns.literal(self.flow.offset_storage_topic),)

    @property
    def checkpoints(self) -> tuple[NamePattern]:
        return (patterns.literal(replication_policy(self.flow).checkpoints_topic(self.flow.source_alias)),)

    @property
    def quarantine(self) -> tuple[NamePattern, ...]:
        quarantines = self.flow.copy_settings.poison_policy is PoisonPolicy.QUARANTINE
        return (patterns.literal(quarantine_topic(self.flow)),) if quarantines else ()

    @property
    def syncs(self) -> tuple[NamePattern, ...]:
        return (patterns.literal(offset_syncs_topic(self.flow)),) if self.flow.emit_offset_syncs_enabled else ()

    @property
    def syncs_side(self) -> Side:
        on_source = self.flow.offset_syncs_topic_location is OffsetSyncsLocation.SOURCE
        return Side.SOURCE if on_source else Side.TARGET

    def topics(
        self,
        task: AccessTask,
        side: Side,
        operation: Operation,
        names: Iterable[NamePattern],
        why: str,
        *,
        mirror_maker: bool = True,
    ) -> Iterator[RequiredAccess]:
        for each in names:
            grant = Grant(Resource.TOPIC, each.name, each.pattern, operation)
            yield self.access(task, side, grant, why, mirror_maker=mirror_maker)

    def of_groups(
        self, task: AccessTask, side: Side, operation: Operation, why: str, *, mirror_maker: bool = True
    ) -> Iterator[RequiredAccess]:
        for each in self.groups:
            grant = Grant(Resource.GROUP, each.name, each.pattern, operation)
            yield self.access(task, side, grant, why, mirror_maker=mirror_maker)

    def access(
        self,
        task: AccessTask,
        side: Side,
        grant: Grant,
        why: str,
        *,
        mirror_maker: bool = True,
        before: str | None = None,
        hides: bool = False,
    ) -> RequiredAccess:
        cluster = self.flow.flow.source if side is Side.SOURCE else self.flow.flow.target
        return RequiredAccess(task, side, cluster, grant, why, mirror_maker, before, hides)


def _sync_topics(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    see, configs = "read topics and their partitions", "create target topics with the source's configs"
    yield from names.topics(task, Side.SOURCE, Operation.DESCRIBE, names.sources, see)
    yield from names.topics(task, Side.SOURCE, Operation.DESCRIBE_CONFIGS, names.sources, configs)
    target = Side.TARGET
    yield from names.topics(task, target, Operation.CREATE, names.targets, "create target topics")
    yield from names.topics(task, target, Operation.ALTER, names.targets, "add partitions to target topics")
    if names.flow.copy_settings.same_offsets:
        for operation, why in (
            (Operation.WRITE, "fill new partitions up to the source's first offset"),
            (Operation.READ, "recognise the filler of a killed step"),
            (Operation.DELETE, "delete the filler"),
            (Operation.ALTER_CONFIGS, "let topics that compact delete the filler"),
        ):
            yield from names.topics(task, target, operation, names.targets, why, mirror_maker=False)
        yield from _fencing_access(names, task, transactional_id_prefix(names.flow))
    why = "create the position topic"
    yield from _creation_access(names, task, target, names.positions, why)
    # Connect works without this permission (`TopicAdmin.describeTopicConfigs`).
    why = "check that the position topic is compacted"
    yield from names.topics(task, target, Operation.DESCRIBE_CONFIGS, names.positions, why, mirror_maker=False)
    why = "check whether missing target topics were deleted"
    yield from names.topics(task, target, Operation.READ, names.positions, why, mirror_maker=False)
    yield from _creation_access(
        names, task, target, names.quarantine, "create the quarantine topic", mirror_maker=False
    )
    yield from _creation_access(names, task, names.syncs_side, names.syncs, "create the offset-syncs topic")


def _creation_access(
    names: _Names,
    task: AccessTask,
    side: Side,
    topics: Iterable[NamePattern],
    why: str,
    *,
    mirror_maker: bool = True,
) -> Iterator[RequiredAccess]:
    """Describing a topic comes before creating it."""
    for operation in (Operation.DESCRIBE, Operation.CREATE):
        yield from names.topics(task, side, operation, topics, why, mirror_maker=mirror_maker)


def _copy(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    yield from names.topics(task, Side.SOURCE, Operation.READ, names.sources, "fetch the records")
    target = Side.TARGET
    yield from names.topics(task, target, Operation.WRITE, names.targets, "produce the records")
    yield from _positions(names, task)
    yield from _quarantine_access(names, task)
    yield from names.topics(task, names.syncs_side, Operation.WRITE, names.syncs, "produce offset-syncs")
    yield from _fencing_access(names, task, transactional_id_prefix(names.flow))


def _positions(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    for operation, why in ((Operation.READ, "read positions"), (Operation.WRITE, "store positions")):
        yield from names.topics(task, Side.TARGET, operation, names.positions, why)
    idempotent = Grant.on_cluster(Operation.IDEMPOTENT_WRITE)
    why = "produce each record once"
    yield names.access(task, Side.TARGET, idempotent, why, mirror_maker=False, before=_FREE_IDEMPOTENCE)


def _quarantine_access(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    why = "quarantine poison records"
    yield from names.topics(task, Side.TARGET, Operation.WRITE, names.quarantine, why, mirror_maker=False)


def _comparison_access(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    why = "compare the records of an interrupted run, recognise the target's log"
    yield from names.topics(task, Side.TARGET, Operation.READ, names.targets, why, mirror_maker=False)


def _fencing_access(names: _Names, task: AccessTask, prefix: str) -> Iterator[RequiredAccess]:
    if names.flow.fencing is Fencing.TRANSACTIONAL:
        writers = patterns.prefix_pattern(prefix)
        grant = Grant(Resource.TRANSACTIONAL_ID, writers.name, writers.pattern, Operation.WRITE)
        yield names.access(task, Side.TARGET, grant, "fence writers of earlier runs", mirror_maker=False)


def _take_over(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    yield from _comparison_access(names, task)
    why = "find the last record that MirrorMaker 2 copied"
    yield from names.topics(task, names.syncs_side, Operation.READ, names.syncs, why, mirror_maker=False)


def _check_heartbeats(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    topology = flow_topology(names.flow)
    heartbeats = topology.policy.heartbeats_topic()
    if topology.replicates(heartbeats):
        topic = patterns.literal(topology.remote_topic(heartbeats))
        why = "read received heartbeats"
        yield from names.topics(task, Side.TARGET, Operation.READ, (topic,), why, mirror_maker=False)


def _sync_topic_configs(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    if not names.flow.sync_topic_configs_enabled:
        return
    for side, topics in ((Side.SOURCE, names.sources), (Side.TARGET, names.targets)):
        yield from names.topics(task, side, Operation.DESCRIBE, topics, "list topics")
    yield from names.topics(task, Side.SOURCE, Operation.DESCRIBE_CONFIGS, names.sources, "read topic configs")
    yield from names.topics(task, Side.TARGET, Operation.ALTER_CONFIGS, names.targets, "read and set topic configs")


def _sync_topic_acls(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    if not names.flow.sync_topic_acls_enabled:
        return
    yield names.access(task, Side.SOURCE, Grant.on_cluster(Operation.DESCRIBE), "list the ACLs")
    yield names.access(task, Side.TARGET, Grant.on_cluster(Operation.ALTER), "list and create ACLs")


def _translate_offsets(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    if why_not_emitted(names.flow) is not None:
        return
    yield from names.of_groups(task, Side.SOURCE, Operation.DESCRIBE, "read committed offsets of groups")
    yield from names.topics(task, Side.SOURCE, Operation.DESCRIBE, names.sources, "read committed offsets of groups")
    yield from names.topics(task, names.syncs_side, Operation.READ, names.syncs, "translate by offset-syncs")
    target = Side.TARGET
    for operation, why in (
        (Operation.CREATE, "create the checkpoints topic"),
        (Operation.READ, "read earlier checkpoints"),
        (Operation.WRITE, "emit checkpoints"),
    ):
        yield from names.topics(task, target, operation, names.checkpoints, why)
    why = "read how far topics are copied"
    yield from names.topics(task, target, Operation.READ, names.positions, why, mirror_maker=False)
    why = "check the identity of the target topics"
    yield from names.topics(task, target, Operation.DESCRIBE, names.targets, why, mirror_maker=False)


def _sync_group_offsets(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    if not names.flow.sync_group_offsets_enabled or why_not_emitted(names.flow) is not None:
        return
    yield from names.of_groups(task, Side.TARGET, Operation.READ, "commit offsets for groups")
    yield from names.topics(task, Side.TARGET, Operation.READ, names.targets, "commit offsets on the topics")


def _observe(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    yield from names.topics(
        task, Side.SOURCE, Operation.DESCRIBE, names.sources, "read log end offsets", mirror_maker=False
    )
    yield from names.topics(
        task,
        Side.SOURCE,
        Operation.DESCRIBE_CONFIGS,
        names.sources,
        "read retention for the forecast",
        mirror_maker=False,
    )
    yield from names.topics(
        task, Side.TARGET, Operation.DESCRIBE, names.targets, "check whether target topics exist", mirror_maker=False
    )
    yield from names.topics(task, Side.TARGET, Operation.READ, names.positions, "read positions", mirror_maker=False)


def _verify(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    for side, topics in ((Side.SOURCE, names.sources), (Side.TARGET, names.targets)):
        yield from names.topics(task, side, Operation.READ, topics, "compare the records", mirror_maker=False)
        yield from names.topics(
            task, side, Operation.DESCRIBE_CONFIGS, topics, "find compacted topics", mirror_maker=False
        )
    yield from names.topics(task, Side.TARGET, Operation.READ, names.positions, "read positions", mirror_maker=False)


def _delete_keys(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    for side, topics in ((Side.SOURCE, names.sources), (Side.TARGET, names.targets)):
        why = "compare the newest record of each key"
        yield from names.topics(task, side, Operation.READ, topics, why, mirror_maker=False)
        why = "find compacted topics"
        yield from names.topics(task, side, Operation.DESCRIBE_CONFIGS, topics, why, mirror_maker=False)
    why = "write tombstones"
    yield from names.topics(task, Side.TARGET, Operation.WRITE, names.targets, why, mirror_maker=False)
    for operation, why in ((Operation.READ, "read positions"), (Operation.WRITE, "store positions")):
        yield from names.topics(task, Side.TARGET, operation, names.positions, why, mirror_maker=False)
    # Without transactional ids the command refuses.
    yield from _fencing_access(names, task, transactional_id_prefix(names.flow))


def _backfill(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    yield from names.topics(task, Side.SOURCE, Operation.READ, names.sources, "read the records", mirror_maker=False)
    yield from names.topics(task, Side.TARGET, Operation.WRITE, names.targets, "write the records", mirror_maker=False)
    yield from _comparison_access(names, task)
    yield from _positions(names, task)
    yield from _quarantine_access(names, task)
    yield from _fencing_access(names, task, backfill_id_prefix(names.flow))


def _cutover(names: _Names, task: AccessTask) -> Iterator[RequiredAccess]:
    alter, why = Grant.on_cluster(Operation.ALTER), "deny WRITE to producers with ACLs (fence=acl)"
    yield names.access(task, Side.SOURCE, alter, why, mirror_maker=False)
    if names.flow.acl_rules.stage_writes:
        why = "create staged grants"
        yield names.access(task, Side.TARGET, alter, why, mirror_maker=False)
    # A cutover commits offsets also where runs do not (`sync.group.offsets.enabled` is off by default).
    why = "commit offsets for groups"
    yield from names.of_groups(task, Side.TARGET, Operation.READ, why, mirror_maker=False)
    why = "commit offsets on the topics"
    yield from names.topics(task, Side.TARGET, Operation.READ, names.targets, why, mirror_maker=False)
    # The gate `not split` checks groups and transactional ids that use other topics, too; with any names.
    for resource, operation, why in (
        (Resource.GROUP, Operation.DESCRIBE, "list groups that would be split"),
        (Resource.TRANSACTIONAL_ID, Operation.DESCRIBE, "list transactional ids that would be split"),
        (Resource.TOPIC, Operation.READ, "list other topics of transactional ids"),
    ):
        grant = Grant(resource, WILDCARD, AclPattern.LITERAL, operation)
        yield names.access(task, Side.SOURCE, grant, why, mirror_maker=False, hides=True)


_TASKS: Mapping[AccessTask, Callable[[_Names, AccessTask], Iterator[RequiredAccess]]] = {
    AccessTask.SYNC_TOPICS: _sync_topics,
    AccessTask.COPY: _copy,
    AccessTask.TAKE_OVER: _take_over,
    AccessTask.CHECK_HEARTBEATS: _check_heartbeats,
    AccessTask.SYNC_TOPIC_CONFIGS: _sync_topic_configs,
    AccessTask.SYNC_TOPIC_ACLS: _sync_topic_acls,
    AccessTask.TRANSLATE_OFFSETS: _translate_offsets,
    AccessTask.SYNC_GROUP_OFFSETS: _sync_group_offsets,
    AccessTask.OBSERVE: _observe,
    AccessTask.VERIFY: _verify,
    AccessTask.DELETE_KEYS: _delete_keys,
    AccessTask.BACKFILL: _backfill,
    AccessTask.CUTOVER: _cutover,
}


def _heartbeat_access(config: MirrorConfig, flow: FlowConfig) -> Iterator[RequiredAccess]:
    """Heartbeats of the flow and of its reverse pair, each written to its own target."""
    for pair in emitting_flows(config, flow.flow):
        cluster = pair.flow.target
        side = Side.SOURCE if cluster == flow.flow.source else Side.TARGET
        topic = replication_policy(pair).heartbeats_topic()
        for operation, why in ((Operation.CREATE, "create the topic"), (Operation.WRITE, "emit a heartbeat")):
            grant = Grant.on_topic(operation, topic)
            yield RequiredAccess(AccessTask.EMIT_HEARTBEATS, side, cluster, grant, why)


def _necessary(needs: Iterable[RequiredAccess]) -> list[RequiredAccess]:
    """Without duplicates, and without rights that another right of the same task on the same cluster implies."""
    found = list(needs)
    kept: dict[tuple[str, Grant], RequiredAccess] = {}
    for cluster in {each.cluster for each in found}:
        grants = set(without_covered(each.grant for each in found if each.cluster == cluster))
        for each in found:
            if each.cluster == cluster and each.grant in grants:
                kept.setdefault((cluster, each.grant), each)
    return list(kept.values())


def _in_order(needs: Iterable[RequiredAccess]) -> list[RequiredAccess]:
    tasks, sides = list(AccessTask), list(Side)
    return sorted(needs, key=lambda each: (sides.index(each.side), tasks.index(each.task), each.grant))
