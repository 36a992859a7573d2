"""Topics that a flow needs in addition to its copies, and all reasons why clusters would refuse to create them.

Brokers create two of them on first use: `__transaction_state` and `__consumer_offsets`. If they cannot, the
coordinators stay "not available", which looks like brokers that do not respond.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.model import Fencing, FlowConfig, OffsetSyncsLocation
from mirror_lib.config.topology import replication_policy
from mirror_lib.errors import AuthorizationError, MirrorError, TopicMissingError, TopicNotCreatableError, Where
from mirror_lib.sync.due_steps import why_not_emitted
from mirror_lib.sync.heartbeats.rules import heartbeats_topic
from mirror_lib.sync.topics.internal import (
    checkpoints_topic,
    factor_setting,
    offset_syncs_topic,
    position_topic,
    quarantine_topic,
)

_TRANSACTIONS, _GROUPS = "__transaction_state", "__consumer_offsets"


@dataclass(frozen=True, slots=True)
class NeededTopic:
    """A topic that the flow needs, as it would be created."""

    name: str
    replication_factor: int
    #: The origin of the replication factor, and alternatives.
    setting: str
    instead: str = ""
    #: In-sync replicas that brokers require before they write to it, and the setting.
    in_sync: int | None = None
    in_sync_setting: str = ""
    #: Nothing can be copied without it; other topics concern a sync step.
    is_for_copy: bool = True


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a topic cannot be created, as a sentence."""

    cluster: str
    what: str
    #: True if nothing can be copied.
    stops_copy: bool

    def __str__(self) -> str:
        return f"on cluster {self.cluster} {self.what}"


def find_obstacles(
    cluster: str, needed: Iterable[NeededTopic], brokers: int, present: Iterable[str]
) -> Iterator[Obstacle]:
    """Why missing topics cannot be created. Pure.

    Args:
        needed: topics that the cluster lacks.
        brokers: number of brokers in the cluster.
        present: names of topics that exist.
    """
    similar = {name.replace(".", "_"): name for name in present}
    for each in needed:
        for what in _reasons(each, brokers, similar):
            yield Obstacle(cluster, f"{what} {each.instead}".rstrip(), each.is_for_copy)


def _reasons(topic: NeededTopic, brokers: int, similar: Mapping[str, str]) -> Iterator[str]:
    factor = topic.replication_factor
    if factor > brokers:
        has = f"the cluster has {brokers} broker{'s' if brokers > 1 else ''}"
        yield f"{topic.name} would get {factor} replicas ({topic.setting}), but {has}."
    elif topic.in_sync is not None and topic.in_sync > factor:
        wants = f"{topic.in_sync} in-sync replicas ({topic.in_sync_setting})"
        yield f"{topic.name} would need {wants} of {factor} replicas ({topic.setting})."
    other = similar.get(topic.name.replace(".", "_"))
    if other is not None and other != topic.name:
        # Java `Topic.hasCollision`: names of metrics have no dots.
        yield (
            f"{topic.name} differs from topic {other} only in `.` and `_`, which Kafka rejects: use another "
            "replication.policy.separator, or delete that topic."
        )


def check_needed_topics(flow: FlowConfig, source: ClusterAdmin, target: ClusterAdmin) -> tuple[str, ...]:
    """Refuse a flow that cannot copy because topics cannot be created; brokers are asked only if topics are missing.

    Returns:
        The obstacles of sync steps.

    Raises:
        TopicNotCreatableError: with all obstacles of both clusters.
        MirrorError: a cluster cannot be read.
    """
    found = [*_obstacles_on(flow, source, is_target=False), *_obstacles_on(flow, target, is_target=True)]
    if any(each.stops_copy for each in found):
        raise TopicNotCreatableError(
            f"topics that the flow needs cannot be created: {' '.join(map(str, found))}",
            where=Where(flow=str(flow.flow)),
            action="Change the settings in brackets, in the flow's file or on the brokers, or add brokers.",
        )
    return tuple(map(str, found))


def _obstacles_on(flow: FlowConfig, admin: ClusterAdmin, *, is_target: bool) -> Iterator[Obstacle]:
    own = {each.name: each for each in _own_topics(flow, is_target=is_target)}
    made_by_brokers = list(_made_by_brokers(flow)) if is_target else []
    wanted = [*own, *made_by_brokers]
    missing = _missing_topics(admin.describe_topics(wanted).errors) if wanted else set()
    if not missing:
        return
    needed = [own[name] for name in own if name in missing]
    unmade = [name for name in made_by_brokers if name in missing]
    if unmade:
        needed += _as_brokers_make_them(unmade, _configs(admin))
    brokers = len(admin.brokers())
    found = list(find_obstacles(admin.cluster, needed, brokers, admin.list_topics()))
    yield from found
    if any(each.stops_copy for each in found) and is_target and flow.replication_factor > brokers:
        # Target topics have conflicts of their own, which would be reported only after these.
        what = f"target topics would get {flow.replication_factor} replicas ({flow.flow}.replication.factor)."
        yield Obstacle(admin.cluster, what, stops_copy=False)


def _missing_topics(errors: Mapping[str, MirrorError]) -> set[str]:
    return {name for name, error in errors.items() if isinstance(error, TopicMissingError)}


def _own_topics(flow: FlowConfig, *, is_target: bool) -> Iterator[NeededTopic]:
    specs, others = [], []
    if is_target:
        specs.append(position_topic(flow))
        if flow.copy_settings.poison_policy is PoisonPolicy.QUARANTINE:
            specs.append(quarantine_topic(flow))
        if why_not_emitted(flow) is None:
            others.append(checkpoints_topic(flow))
        if flow.emit_heartbeats_enabled:
            others.append(heartbeats_topic(flow, replication_policy(flow)))
    if flow.emit_offset_syncs_enabled and is_target is (flow.offset_syncs_topic_location is OffsetSyncsLocation.TARGET):
        specs.append(offset_syncs_topic(flow))
    for spec in (*specs, *others):
        setting = factor_setting(flow, spec)
        yield NeededTopic(spec.name, spec.replication_factor, setting, is_for_copy=spec not in others)


def _made_by_brokers(flow: FlowConfig) -> Iterator[str]:
    if flow.fencing is Fencing.TRANSACTIONAL:
        yield _TRANSACTIONS
    if flow.sync_group_offsets_enabled and why_not_emitted(flow) is None:
        yield _GROUPS


def _as_brokers_make_them(names: Sequence[str], configs: Mapping[str, str | None]) -> Iterator[NeededTopic]:
    of_brokers = {
        _TRANSACTIONS: ("transaction.state.log", "Or run the flow without transactional ids: mirror.fencing=none."),
        _GROUPS: ("offsets.topic", "Or do not commit group offsets: sync.group.offsets.enabled=false."),
    }
    for name in names:
        prefix, instead = of_brokers[name]
        factor = _number(configs.get(f"{prefix}.replication.factor"))
        if factor is not None:
            setting, in_sync = f"{prefix}.replication.factor of the brokers", f"{prefix}.min.isr"
            yield NeededTopic(
                name,
                factor,
                setting,
                instead,
                in_sync=_number(configs.get(in_sync)),
                in_sync_setting=f"{in_sync} of the brokers",
                is_for_copy=name == _TRANSACTIONS,
            )


def _configs(admin: ClusterAdmin) -> Mapping[str, str | None]:
    try:
        return admin.broker_configs()
    except AuthorizationError:
        # Most users may not read a broker's configs: then the run finds out.
        return {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
