"""Plan of topics on the target: what must be created or grown before the copy; and its execution.

The plan is a pure function of what was read (mm2 `MirrorSourceConnector.computeAndCreateTopicPartitions`), so it can be
shown, compared and tested without a cluster. Topics are never shrunk and never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import TopicConfigs, TopicDescription, TopicSpec
from mirror_lib.cluster.protocol.kafka_errors import RequestRefusedError, TopicExistsError
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.config.model import FlowConfig
from mirror_lib.counted import counted
from mirror_lib.errors import AuthorizationError, MirrorError, TopicMissingError
from mirror_lib.identity.clusters import cluster_pair
from mirror_lib.identity.targets import copied_to
from mirror_lib.sync.configs.plan import ConfigRulebook
from mirror_lib.sync.hidden_by_acls import hidden_topics
from mirror_lib.sync.loops.flow import refuse_own_copies
from mirror_lib.sync.topics.refusals import INDISPENSABLE, Configs, Outcome, done_without_refused
from mirror_lib.sync.topics.waiting import wait_until_visible
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.rename import NameTable

#: Maximum wait for a topic that another program has changed.
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """Topics of both clusters for one flow."""

    #: The selected source topics by name.
    sources: Mapping[str, TopicDescription]
    #: Configs of source topics; only needed for those that the target lacks.
    source_configs: Mapping[str, TopicConfigs]
    #: The target topics that exist, by name.
    targets: Mapping[str, TopicDescription]
    #: The number of brokers of the target; None if it is not known.
    target_brokers: int | None = None
    #: Topics that could not be read, by name on their own cluster.
    unreadable: Mapping[str, MirrorError] = field(default_factory=dict)
    #: The topic configs that the target's version of Kafka knows; None if they are not known.
    target_config_names: frozenset[str] | None = None
    #: Missing target topics whose records were copied before, with the topic that they were copied to: the same one,
    #: which was deleted, or, after a change of the flow's rules, another one.
    copied: Mapping[str, str] = field(default_factory=dict)
    #: Every topic of the target cluster; needed only if target topics are missing.
    target_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A target topic that is missing."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]
    #: Configs of the source that the target's version of Kafka does not know; with them it would reject the topic.
    unsupported: tuple[str, ...] = ()

    def __str__(self) -> str:
        configs = "".join(f", {key}={value}" for key, value in sorted(self.configs.items()))
        without = (
            f"; without {', '.join(self.unsupported)}, which the target does not support" if self.unsupported else ""
        )
        return (
            f"create {self.name}: {counted(self.partitions, 'partition')}, "
            f"{counted(self.replication_factor, 'replica')}{configs}{without}"
        )


@dataclass(frozen=True, slots=True)
class GrowPartitions:
    """A target topic with fewer partitions than its source."""

    name: str
    present: int
    wanted: int

    def __str__(self) -> str:
        return f"add partitions to {self.name}: from {self.present} to {self.wanted}"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A topic that cannot be set up, and why."""

    name: str
    what: str
    action: str

    def __str__(self) -> str:
        return f"cannot set up {self.name}: {self.what} {self.action}".rstrip()


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """Changes to a flow's target topics. Two plans are equal if they make the same changes."""

    flow: FlowId
    create: tuple[CreateTopic, ...] = ()
    grow: tuple[GrowPartitions, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    #: Topics without a change.
    unchanged: int = 0
    #: Deleted target topics that held copied records; recreated after an operator's decision (`mirror gaps`).
    deleted: tuple[str, ...] = ()
    #: Missing target topics whose records were copied to another one: (topic, the other one). Recreated likewise.
    renamed: tuple[tuple[str, str], ...] = ()

    @property
    def changes(self) -> int:
        """The number of topics that applying the plan changes."""
        return len(self.create) + len(self.grow)

    @property
    def about_undecided(self) -> list[str]:
        """Return a line for each topic in `deleted` and `renamed`."""
        return [
            *(
                f"{name} was deleted on the target after records were copied to it: not created (`mirror gaps list`)"
                for name in self.deleted
            ),
            *(
                f"{name} is not created: records were copied to {former}, and by the flow's rules the target is now "
                "another topic (`mirror gaps list`)"
                for name, former in self.renamed
            ),
        ]

    def __str__(self) -> str:
        steps = [str(step) for step in (*self.create, *self.grow, *self.conflicts)]
        steps += self.about_undecided
        return "\n".join([*steps, f"{counted(self.unchanged, 'topic')} unchanged"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "flow": str(self.flow),
            "create": [asdict(step) for step in self.create],
            "grow": [asdict(step) for step in self.grow],
            "conflicts": [asdict(step) for step in self.conflicts],
            "unchanged": self.unchanged,
            "deleted": list(self.deleted),
            "renamed": [{"name": name, "copied_to": former} for name, former in self.renamed],
        }


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The result of one step of a plan."""

    step: CreateTopic | GrowPartitions
    error: MirrorError | None = None
    #: Configs that the cluster rejected and a new topic was created without, each with the error.
    without: Mapping[str, MirrorError] = field(default_factory=dict)


def plan_topics(flow: FlowConfig, topology: FlowTopology, facts: TopicFacts) -> TopicPlan:
    """Plan what the target lacks, without topics in conflict.

    A target topic with more partitions than its source is fine. If several sources merge into one target, the first by
    name provides the configs.
    """
    counts = {name: len(topic.partitions) for name, topic in facts.sources.items()}
    names = topology.name_table(counts, {*facts.targets, *facts.target_names})
    conflicts = _name_conflicts(names)
    # For an invalid name, the cluster reports the same in other words.
    named = {conflict.name for conflict in conflicts}
    conflicts += [
        Conflict(name, error.what, error.action)
        for name, error in sorted(facts.unreadable.items())
        if name not in named
    ]
    blocked = {conflict.name for conflict in conflicts}
    rules = ConfigRulebook(flow)
    create: list[CreateTopic] = []
    grow: list[GrowPartitions] = []
    deleted: list[str] = []
    renamed: list[tuple[str, str]] = []
    unchanged = 0
    for target, sources in sorted(_by_target(names.targets).items()):
        if target in blocked:
            continue
        wanted = len(facts.sources[sources[0]].partitions)
        present = facts.targets.get(target)
        if (former := facts.copied.get(target)) is not None:
            if former == target:
                deleted.append(target)
            else:
                renamed.append((target, former))
        elif present is None:
            configs = rules.at_creation(facts.source_configs.get(sources[0]))
            create.append(_creation(flow, target, wanted, configs, facts.target_config_names))
        elif len(present.partitions) < wanted:
            grow.append(GrowPartitions(target, len(present.partitions), wanted))
        else:
            unchanged += 1
    if facts.target_brokers is not None and flow.replication_factor > facts.target_brokers:
        conflicts += [_too_few_brokers(flow, step, facts.target_brokers) for step in create]
        create = []
    return TopicPlan(flow.flow, tuple(create), tuple(grow), tuple(conflicts), unchanged, tuple(deleted), tuple(renamed))


def _creation(
    flow: FlowConfig, target: str, partitions: int, configs: Mapping[str, str], known: frozenset[str] | None
) -> CreateTopic:
    # A config that the flow sets itself and that does not exist is a mistake: the cluster may report it.
    overrides = flow.config_rules.override
    unknown = tuple(sorted(name for name in configs if known and name not in known and name not in overrides))
    kept = {name: value for name, value in configs.items() if name not in unknown}
    return CreateTopic(target, partitions, flow.replication_factor, kept, unknown)


def apply_plan(
    plan: TopicPlan, target_admin: ClusterAdmin, *, kept: Collection[str] = INDISPENSABLE, validate_only: bool = False
) -> tuple[TopicResult, ...]:
    """Create and grow topics, and wait until the new partitions have leaders. A failed topic does not stop the others.

    A topic that was created or grown by another program in the meantime is no error. Configs that the cluster rejects
    are dropped.

    Args:
        kept: configs that are never dropped.
        validate_only: let the target check every step, including its policies, without a change.

    Raises:
        MirrorError: the cluster as a whole cannot be reached.
    """
    errors: dict[str, MirrorError] = {}
    without: Mapping[str, Mapping[str, MirrorError]] = {}
    if plan.create:
        specs = [TopicSpec(step.name, step.partitions, step.replication_factor, step.configs) for step in plan.create]
        created = create_topics(target_admin, specs, kept=kept, validate_only=validate_only)
        errors, without = _failures(created.errors), created.without
    if plan.grow:
        counts = {step.name: step.wanted for step in plan.grow}
        errors |= _failures(target_admin.create_partitions(counts, validate_only=validate_only))
    steps: tuple[CreateTopic | GrowPartitions, ...] = (*plan.create, *plan.grow)
    if not validate_only:
        done = {step.name: _partitions_after(step) for step in steps if step.name not in errors}
        # Another program may have been faster: then the topic is as wanted.
        doubtful = {step.name: _partitions_after(step) for step in steps if _is_doubtful(errors.get(step.name))}
        errors |= wait_until_visible(target_admin, done)
        late = wait_until_visible(target_admin, doubtful, seconds=_LOOK_SECONDS)
        for name in doubtful.keys() - late.keys():
            del errors[name]
    return tuple(TopicResult(step, errors.get(step.name), without.get(step.name, {})) for step in steps)


def create_topics(
    admin: ClusterAdmin, specs: Iterable[TopicSpec], *, kept: Collection[str], validate_only: bool = False
) -> Outcome:
    """Create topics, without the configs that the cluster rejects.

    Args:
        kept: configs that are never dropped.
        validate_only: the cluster checks everything and creates nothing.
    """
    by_name = {spec.name: spec for spec in specs}

    def attempt(wanted: Mapping[str, Configs], check_only: bool) -> Mapping[str, MirrorError | None]:
        changed = [
            replace(by_name[name], configs={key: value for key, value in configs.items() if value is not None})
            for name, configs in wanted.items()
        ]
        return admin.create_topics(changed, validate_only=check_only)

    wanted = {name: spec.configs for name, spec in by_name.items()}
    return done_without_refused(wanted, attempt, kept=kept, validate_only=validate_only)


def gather_topic_facts(
    topology: FlowTopology,
    source_admin: ClusterAdmin,
    target_admin: ClusterAdmin,
    named: Iterable[str] = (),
    positions: Callable[[], Iterable[Position]] = tuple,
    check: Callable[[Collection[str], Collection[str]], None] = lambda _listed, _selected: None,
) -> TopicFacts:
    """Read what a plan needs.

    Args:
        named: source topics that the configuration lists by name.
        check: is given all topics of the source, and the selected ones, and refuses what must not be copied.
        positions: reads the positions of all source partitions; called if target topics are missing.

    Raises:
        MirrorError: a cluster cannot be reached.
    """
    listed = source_admin.list_topics()
    selected = [topic for topic in listed if topology.replicates(topic)]
    check(listed, selected)
    hidden = hidden_topics(source_admin, filter(topology.replicates, named), selected)
    sources = source_admin.describe_topics(selected)
    remote = {topic: topology.remote_topic(topic) for topic in sources}
    refuse_own_copies(topology, cluster_pair(source_admin, target_admin), remote)
    targets = target_admin.describe_topics(set(remote.values()))
    unreadable: dict[str, MirrorError] = {
        # A topic that vanished after it was listed was deleted.
        name: error
        for name, error in {**hidden, **sources.errors, **targets.errors}.items()
        if not isinstance(error, TopicMissingError)
    }
    missing = [topic for topic, name in remote.items() if name not in targets and name not in unreadable]
    target_names = target_admin.list_topics() if missing else []
    source_configs = source_admin.topic_configs(missing)
    # With the cluster's default configs, a compacted topic would begin to delete its records.
    unreadable |= {
        remote[topic]: error for topic, error in source_configs.errors.items() if isinstance(error, AuthorizationError)
    }
    return TopicFacts(
        sources=sources,
        source_configs=source_configs,
        targets=targets,
        target_brokers=len(target_admin.brokers()) if missing else None,
        unreadable=unreadable,
        target_config_names=_config_names(target_admin, target_names),
        copied=_copied_topics({topic: remote[topic] for topic in missing}, sources, positions()) if missing else {},
        target_names=frozenset(target_names),
    )


def _copied_topics(
    missing: Mapping[str, str], sources: Mapping[str, TopicDescription], positions: Iterable[Position]
) -> dict[str, str]:
    """Missing target topics whose records were copied, by source topic, with the topic that they went to.

    Creating one would hide that its records are gone, or elsewhere. One partition with an operator's decision (its
    position says that nothing was copied, and names no other topic) is enough to create the topic. Partitions that the
    source no longer has do not count: no run copies them, and another gap names them.
    """
    copied: dict[str, str] = {}
    decided: set[str] = set()
    for position in positions:
        target = missing.get(position.topic)
        if target is None or position.partition >= len(sources[position.topic].partitions):
            continue
        if (former := copied_to(position)) is not None:
            # MirrorMaker 2 and version 0.1.0 did not store the name.
            copied[target] = former.topic or target
        elif position.target_topic_id is None:
            decided.add(target)
    return {target: former for target, former in copied.items() if target not in decided}


def _config_names(admin: ClusterAdmin, topics: Sequence[str]) -> frozenset[str] | None:
    """The topic configs that a cluster's version of Kafka knows, from any of its topics; None without a topic."""
    for configs in admin.topic_configs(topics[:1]).values():
        return frozenset(configs.entries)
    return None


def _name_conflicts(names: NameTable) -> list[Conflict]:
    """A finding blocks every target topic that it mentions."""
    conflicts = []
    for finding in names.findings:
        involved = sorted({names.targets[source] for source in finding.sources})
        conflicts += [Conflict(target, f"{finding.message}.", _RENAME_ACTION) for target in involved]
    return conflicts


_RENAME_ACTION = "Change the rename rules or the replication policy, or exclude topics from the flow."


def _by_target(targets: Mapping[str, str]) -> dict[str, Sequence[str]]:
    grouped: dict[str, list[str]] = {}
    for source, target in sorted(targets.items()):
        grouped.setdefault(target, []).append(source)
    return dict(grouped)


def _too_few_brokers(flow: FlowConfig, step: CreateTopic, brokers: int) -> Conflict:
    return Conflict(
        step.name,
        f"replication.factor is {step.replication_factor}, but cluster {flow.flow.target} has {brokers} broker(s).",
        f"Set {flow.flow}.replication.factor to at most {brokers}, or add brokers.",
    )


def _failures(outcome: Mapping[str, MirrorError | None]) -> dict[str, MirrorError]:
    return {name: error for name, error in outcome.items() if error is not None}


def _is_doubtful(error: MirrorError | None) -> bool:
    return isinstance(error, TopicExistsError | RequestRefusedError)


def _partitions_after(step: CreateTopic | GrowPartitions) -> int:
    return step.partitions if isinstance(step, CreateTopic) else step.wanted
