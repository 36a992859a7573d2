"""The internal topics of a flow, created as MM2 and Kafka Connect create them."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import TopicSpec
from mirror_lib.cluster.protocol.kafka_errors import TopicExistsError, UnsupportedRequestError
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.model import FlowConfig, OffsetSyncsLocation
from mirror_lib.config.topology import offset_syncs_topic as offset_syncs_topic_name
from mirror_lib.config.topology import quarantine_topic as quarantine_topic_name
from mirror_lib.config.topology import replication_policy
from mirror_lib.errors import AuthorizationError, ConfigurationError, MirrorError, TopicMissingError, Where
from mirror_lib.sync.topics.plan import create_topics
from mirror_lib.sync.topics.refusals import INDISPENSABLE, notice
from mirror_lib.sync.topics.waiting import wait_until_visible

_log = logging.getLogger(__name__)

_CLEANUP_POLICY = "cleanup.policy"
_COMPACT = "compact"


class InternalTopicState(StrEnum):
    """State of an internal topic."""

    EXISTS = "exists"
    CREATED = "created"
    #: Missing; only in a dry run.
    MISSING = "missing"
    #: The cluster does not allow its creation: like MM2, assume that it exists.
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """An internal topic of a flow, found or created."""

    name: str
    #: Alias of its cluster.
    cluster: str
    state: InternalTopicState
    #: A fact that could not be read, or configs that it was created without.
    notice: str | None = None


_POSITION_SEGMENT_BYTES = str(16 * 1024 * 1024)


def position_topic(flow: FlowConfig) -> TopicSpec:
    """Kafka Connect's topic for source offsets, on the target (Connect `KafkaOffsetBackingStore`)."""
    return TopicSpec(
        name=flow.offset_storage_topic,
        partitions=flow.offset_storage_partitions,
        replication_factor=flow.offset_storage_replication_factor,
        # Only closed segments are compacted, and every run reads the whole topic.
        configs={_CLEANUP_POLICY: _COMPACT, "segment.bytes": _POSITION_SEGMENT_BYTES},
    )


def offset_syncs_topic(flow: FlowConfig) -> TopicSpec:
    """MM2's offset-syncs topic; its name contains the alias of the other cluster (KIP-716)."""
    return TopicSpec(
        name=offset_syncs_topic_name(flow),
        partitions=1,
        replication_factor=flow.offset_syncs_topic_replication_factor,
        configs={_CLEANUP_POLICY: _COMPACT},
    )


def checkpoints_topic(flow: FlowConfig) -> TopicSpec:
    """MM2's topic of checkpoints, on the target (mm2 `MirrorCheckpointConnector.createInternalTopics`)."""
    return TopicSpec(
        name=replication_policy(flow).checkpoints_topic(flow.source_alias),
        partitions=1,
        replication_factor=flow.checkpoints_topic_replication_factor,
        configs={_CLEANUP_POLICY: _COMPACT},
    )


def quarantine_topic(flow: FlowConfig) -> TopicSpec:
    """The quarantine topic on the target. It keeps all records until an operator deletes it."""
    return TopicSpec(
        name=quarantine_topic_name(flow),
        partitions=1,
        replication_factor=flow.replication_factor,
        # Records are truncated to fit Kafka's default, which the cluster may have lowered.
        configs={_CLEANUP_POLICY: "delete", "retention.ms": "-1", "max.message.bytes": "1048588"},
    )


def factor_setting(flow: FlowConfig, spec: TopicSpec) -> str:
    """The setting that the replication factor of an internal topic comes from."""
    settings = {
        flow.offset_storage_topic: f"{flow.flow.target}.offset.storage.replication.factor",
        checkpoints_topic(flow).name: "checkpoints.topic.replication.factor",
        quarantine_topic_name(flow): "replication.factor",
        replication_policy(flow).heartbeats_topic(): "heartbeats.topic.replication.factor",
    }
    return settings.get(spec.name, "offset-syncs.topic.replication.factor")


def ensure_checkpoints_topic(flow: FlowConfig, target_admin: ClusterAdmin) -> InternalTopic:
    """Create the checkpoints topic unless it exists.

    Raises:
        MirrorError: it cannot be created.
    """
    return _ensure(flow, target_admin, [checkpoints_topic(flow)], dry_run=False)[0]


def ensure_internal_topics(
    flow: FlowConfig, source_admin: ClusterAdmin, target_admin: ClusterAdmin, *, dry_run: bool = False
) -> tuple[InternalTopic, ...]:
    """Create the position topic and, if the flow uses them, the offset-syncs and quarantine topics, unless they exist.

    As in MM2, topics that cannot be created are assumed to exist (mm2 `MirrorUtils.createCompactedTopic`): they exist
    already, or creation is not supported. A position topic that is not compacted would lose positions by retention.

    Raises:
        ConfigurationError: the position topic exists but is not compacted.
        MirrorError: a topic cannot be created for another reason.
    """
    topics = _ensure(flow, target_admin, [position_topic(flow)], dry_run=dry_run)
    topics = _check_compacted(flow, target_admin, topics)
    if flow.copy_settings.poison_policy is PoisonPolicy.QUARANTINE:
        topics += _ensure(flow, target_admin, [quarantine_topic(flow)], dry_run=dry_run)
    if flow.emit_offset_syncs_enabled:
        on_source = flow.offset_syncs_topic_location is OffsetSyncsLocation.SOURCE
        admin = source_admin if on_source else target_admin
        topics += _ensure(flow, admin, [offset_syncs_topic(flow)], dry_run=dry_run)
    return tuple(topics)


def _ensure(flow: FlowConfig, admin: ClusterAdmin, specs: Iterable[TopicSpec], *, dry_run: bool) -> list[InternalTopic]:
    wanted = {spec.name: spec for spec in specs}
    found = admin.describe_topics(wanted)
    for refused in found.errors.values():
        if isinstance(refused, AuthorizationError):
            # The copy could neither read nor write it: report that before it starts.
            raise refused
    missing = {name for name, error in found.errors.items() if isinstance(error, TopicMissingError)}
    states = dict.fromkeys(found, InternalTopicState.EXISTS) | dict.fromkeys(missing, InternalTopicState.MISSING)
    notices: dict[str, str] = {}
    if missing:
        done = create_topics(
            admin, [wanted[name] for name in sorted(missing)], kept=INDISPENSABLE, validate_only=dry_run
        )
        for name, without in done.without.items():
            notices[name] = " ".join(notice(admin.cluster, key, {name: why}) for key, why in sorted(without.items()))
    if missing and not dry_run:
        for name, error in done.errors.items():
            states[name] = _outcome(flow, admin.cluster, wanted[name], error)
        created = [name for name in missing if states[name] is InternalTopicState.CREATED]
        for late in wait_until_visible(admin, {name: wanted[name].partitions for name in created}).values():
            raise late
    return [
        InternalTopic(name, admin.cluster, states.get(name, InternalTopicState.ASSUMED), notices.get(name))
        for name in sorted(wanted)
    ]


def _outcome(flow: FlowConfig, cluster: str, spec: TopicSpec, error: MirrorError | None) -> InternalTopicState:
    if error is None:
        return InternalTopicState.CREATED
    if isinstance(error, TopicExistsError):
        return InternalTopicState.EXISTS
    if isinstance(error, UnsupportedRequestError):
        return InternalTopicState.ASSUMED
    if isinstance(error, AuthorizationError):
        # The user may see that it is missing.
        raise type(error)(
            f"{spec.name} does not exist: {error.what}",
            where=Where(flow=str(flow.flow), cluster=cluster, topic=spec.name),
            action=f"{error.action} Or create it manually, with {spec.partitions} partition(s) and "
            f"{_CLEANUP_POLICY}={spec.configs[_CLEANUP_POLICY]}.",
        ) from error
    raise type(error)(
        error.what,
        where=Where(flow=str(flow.flow), cluster=cluster, topic=spec.name),
        action=f"{error.action} The replication factor {spec.replication_factor} is set by "
        f"{factor_setting(flow, spec)}.".strip(),
    ) from error


def _check_compacted(flow: FlowConfig, admin: ClusterAdmin, topics: Iterable[InternalTopic]) -> list[InternalTopic]:
    """Check the cleanup policy; without permission to read it, continue and add a notice, as Connect does.

    See its `TopicAdmin.verifyTopicCleanupPolicyOnlyCompact`. Returns the topics.
    """
    topic_configs = admin.topic_configs([topic.name for topic in topics if topic.state is InternalTopicState.EXISTS])
    for name, configs in topic_configs.items():
        policy = configs.value(_CLEANUP_POLICY)
        if policy is not None and policy != _COMPACT:
            raise ConfigurationError(
                f"the position topic has cleanup.policy={policy}: positions would be deleted by retention.",
                where=Where(flow=str(flow.flow), cluster=admin.cluster, topic=name),
                action="Set cleanup.policy=compact on it, or set another topic in "
                f"{flow.flow.target}.offset.storage.topic.",
            )
    return [_with_notice(topic, topic_configs.errors.get(topic.name)) for topic in topics]


def _with_notice(topic: InternalTopic, error: MirrorError | None) -> InternalTopic:
    if not isinstance(error, AuthorizationError):
        return topic
    unknown = f"whether topic {topic.name} of cluster {topic.cluster} is compacted is unknown: {error}"
    _log.warning("%s", unknown)
    return replace(topic, notice=unknown)
