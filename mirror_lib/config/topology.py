"""A flow's configuration as the rules of `mirror_lib.topology`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from mirror_lib.config.model import FlowConfig, MirrorConfig, OffsetSyncsLocation
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.topology import filters
from mirror_lib.topology.filters import ConfigPropertyFilter, GroupFilter, TopicFilter
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.loops import Loop, find_loops
from mirror_lib.topology.policy import (
    DEFAULT_CLASS,
    INTERNAL_SEPARATOR_ENABLED,
    SEPARATOR,
    SOURCE_ALIAS,
    TARGET_ALIAS,
    ReplicationPolicy,
    policy_for,
)
from mirror_lib.topology.rename import RenameRules

_Rules = TypeVar("_Rules")


def flow_topology(flow: FlowConfig, only: Sequence[str] = ()) -> FlowTopology:
    """Return the topic rules of a flow.

    Args:
        only: Java regexes that limit one run; empty selects all topics of the flow.

    Raises:
        ConfigurationError: a class cannot be loaded, or a regex is not valid.
    """
    topology = FlowTopology(
        flow=flow.flow,
        policy=replication_policy(flow),
        topic_filter=topic_filter(flow),
        rename=rename_rules(flow),
        heartbeats_replication_enabled=flow.heartbeats_replication_enabled,
        handovers=flow.handovers,
        aliases=(flow.source_alias, flow.target_alias),
        failback=flow.failback,
    )
    return topology.include_only(only) if only else topology


def replication_policy(flow: FlowConfig) -> ReplicationPolicy:
    """Return the naming rules of a flow.

    Raises:
        ConfigurationError: the class cannot be loaded.
    """
    options = {
        SEPARATOR: flow.replication_policy_separator,
        INTERNAL_SEPARATOR_ENABLED: str(flow.replication_policy_internal_topic_separator_enabled).lower(),
        **flow.replication_policy_options,
    }
    return _make(flow, policy_for, flow.replication_policy_class, options)


def offset_syncs_topic(flow: FlowConfig) -> str:
    """Return the name of the flow's offset-syncs topic, on the cluster of `offset-syncs.topic.location`.

    It contains the alias of the other cluster (mm2 `MirrorSourceConfig.offsetSyncsTopic`).
    """
    on_source = flow.offset_syncs_topic_location is OffsetSyncsLocation.SOURCE
    return replication_policy(flow).offset_syncs_topic(flow.target_alias if on_source else flow.source_alias)


def quarantine_topic(flow: FlowConfig) -> str:
    """Return the topic on the target for poison records; the default selection of flows excludes it by its name."""
    return flow.quarantine_topic or f"mm2-quarantine.{flow.flow.source}.internal"


def topic_filter(flow: FlowConfig) -> TopicFilter:
    """Return the topic filter alone, without the rules on internal topics and loops.

    Raises:
        ConfigurationError: the class cannot be loaded, or a regex is not valid.
    """
    options = {filters.TOPICS: filters.join(flow.topics), filters.TOPICS_EXCLUDE: filters.join(flow.topics_exclude)}
    return _make(flow, filters.topic_filter_for, flow.topic_filter_class, options)


def group_filter(flow: FlowConfig) -> GroupFilter:
    """Return the filter of consumer groups.

    Raises:
        ConfigurationError: the class cannot be loaded, or a regex is not valid.
    """
    options = {filters.GROUPS: filters.join(flow.groups), filters.GROUPS_EXCLUDE: filters.join(flow.groups_exclude)}
    return _make(flow, filters.group_filter_for, flow.group_filter_class, options)


def config_property_filter(flow: FlowConfig) -> ConfigPropertyFilter:
    """Return the filter of topic configs.

    Raises:
        ConfigurationError: the class cannot be loaded, or a regex is not valid.
    """
    options = {
        filters.CONFIG_PROPERTIES_EXCLUDE: filters.join(flow.config_properties_exclude),
        filters.USE_DEFAULTS_FROM: flow.use_defaults_from,
    }
    return _make(flow, filters.config_property_filter_for, flow.config_property_filter_class, options)


def loops(config: MirrorConfig, cluster: str, topics: Iterable[str]) -> tuple[Loop, ...]:
    """Return the loops that topics of a cluster would enter if all enabled flows of the file copy.

    Raises:
        ConfigurationError: a flow names a class or a regex that cannot be used.
    """
    return find_loops([flow_topology(flow) for flow in config.flows if flow.enabled], {cluster: topics})


def loop_advice(config: MirrorConfig, found: Iterable[Loop]) -> str:
    """Return how to end loops: by other topics, or by what the names of the flows in them lack."""
    places = [pair for loop in found for pair in zip(loop.path, loop.path[1:], strict=False)]
    steps = {(here.cluster, there.cluster) for here, there in places}
    flows = [flow for flow in config.enabled_flows if (flow.flow.source, flow.flow.target) in steps]
    if any(flow.replication_policy_class != DEFAULT_CLASS for flow in flows):
        names = "use the default replication policy, whose names show where a topic came from"
    elif any(flow.rename.explicit or flow.rename.pattern for flow in flows):
        names = "do not rename topics (mirror.topics.rename), so that their names show where they came from"
    else:
        names = "use aliases that do not contain replication.policy.separator, and a separator"
    return f"let only one direction copy a topic: disable a flow, make their `topics` disjoint, or {names}"


def rename_rules(flow: FlowConfig) -> RenameRules:
    """Return the `mirror.topics.*` renames.

    Raises:
        ConfigurationError: the regex or its replacement is not valid.
    """
    rename = flow.rename
    with _of(flow):
        try:
            return RenameRules(rename.explicit, rename.pattern, rename.replacement, rename.merge)
        except ValueError as error:
            raise ConfigurationError(
                f"renaming topics: {error}.", action="Correct the mirror.topics.rename settings."
            ) from error


def _make(
    flow: FlowConfig, make: Callable[[str, Mapping[str, str]], _Rules], class_name: str, options: Mapping[str, str]
) -> _Rules:
    """Make the rules of a configured class."""
    with _of(flow):
        return make(class_name, {**options, SOURCE_ALIAS: flow.source_alias, TARGET_ALIAS: flow.target_alias})


@contextmanager
def _of(flow: FlowConfig) -> Iterator[None]:
    """Add the flow to errors raised within this context."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(error.what, where=Where(flow=str(flow.flow)), action=error.action) from error
