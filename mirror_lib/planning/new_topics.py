"""The limits of target topics that the next run creates: by the configs that they get, else by the cluster's."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.config.model import FlowConfig
from mirror_lib.errors import AuthorizationError
from mirror_lib.planning.topic_limits import TopicLimits
from mirror_lib.sync.configs.plan import ConfigRulebook

#: Topic configs, with the broker configs that are their defaults: the first that is set counts, with the
#: milliseconds of its unit (Java `ServerTopicConfigSynonyms`).
_FOLLOWS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "retention.ms": (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)),
    "retention.bytes": (("log.retention.bytes", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
}
_TEXTS = {"cleanup.policy": "log.cleanup.policy", "message.timestamp.type": "log.message.timestamp.type"}


def defaults_of(broker: Mapping[str, str | None]) -> dict[str, str]:
    """The configs of a topic without its own configs, by those of a broker."""
    found = {name: value for name, key in _TEXTS.items() if (value := broker.get(key)) is not None}
    for name, keys in _FOLLOWS.items():
        for key, unit in keys:
            value = broker.get(key)
            if value is not None:
                # -1 and Java's largest number mean no limit, regardless of the unit.
                found[name] = value if unit == 1 or int(value) < 0 else str(int(value) * unit)
                break
    return found


def limits_of_new_topics(
    flow: FlowConfig, source: ClusterAdmin, target: ClusterAdmin, missing: Mapping[str, str]
) -> dict[str, TopicLimits]:
    """The limits of target topics that do not exist yet, by target topic.

    Args:
        missing: target topic by source topic.

    Raises:
        MirrorError: a cluster does not respond.
    """
    if not missing:
        return {}
    try:
        defaults = defaults_of(target.broker_configs())
    except AuthorizationError:
        # The defaults of new topics are then unknown: only the configs that they are given are compared.
        defaults = {}
    rules = ConfigRulebook(flow)
    found: dict[str, TopicLimits] = {}
    for topic, configs in sorted(source.topic_configs(missing).items()):
        # In a merge, the first source by name provides the configs.
        if missing[topic] not in found:
            entries = {**defaults, **rules.at_creation(configs)}
            found[missing[topic]] = TopicLimits.of(_configs(missing[topic], entries))
    return found


def _configs(topic: str, values: Mapping[str, str]) -> TopicConfigs:
    return TopicConfigs(topic, {name: ConfigEntry(name, value, ConfigOrigin.TOPIC) for name, value in values.items()})
