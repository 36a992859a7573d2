"""Plan of topic configs on the target: required values, changes, and remaining differences. Pure.

MM2's rules (`MirrorSourceConnector.syncTopicConfigs`, KIP-894), after the `mirror.configs.*` lists. MM2 writes every
config at every interval; this plan contains only differences, with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mirror_lib.cluster.admin.client import ConfigOperation
from mirror_lib.cluster.admin.model import ConfigEntry, ConfigOrigin, TopicConfigs
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.settings.sync_keys import CONFIGS_ALWAYS, CONFIGS_DEFAULT, CONFIGS_NEVER, CONFIGS_OVERRIDE
from mirror_lib.config.topology import config_property_filter
from mirror_lib.counted import counted
from mirror_lib.errors import ConfigurationError, MirrorError, Where
from mirror_lib.topology.filters import ConfigPropertyFilter
from mirror_lib.topology.java_regex import PatternList, compile_list
from mirror_lib.topology.names import FlowId


class ConfigRule(StrEnum):
    """The rule that decides about a config."""

    OVERRIDE = CONFIGS_OVERRIDE
    NEVER = CONFIGS_NEVER
    ALWAYS = CONFIGS_ALWAYS
    FOLLOWS_TARGET = CONFIGS_DEFAULT
    EXCLUDED = "config.properties.exclude"
    SET_ON_TOPIC = "set on the source topic"
    SET_ON_BROKERS = "set on the source's brokers"
    SOURCE_DEFAULT = "use.defaults.from=source"
    TARGET_DEFAULT = "default on the source"
    #: Values from server.properties belong to the cluster (MM2 copies and deletes nothing then).
    BROKER_FILE = "server.properties of the source"
    #: Read-only, or sensitive: the source does not show the value.
    HIDDEN = "read-only or hidden on the source"
    #: The target's version of Kafka does not know the config.
    UNKNOWN = "unknown to the target"


class ConfigWinner(StrEnum):
    """The side whose value applies if source and target differ."""

    SOURCE = "source"
    #: The value in effect on the remote topic stays.
    TARGET = "target"
    #: The target cluster's default for topics without an own value.
    TARGET_DEFAULT = "target default"
    OVERRIDE = "override"


_SET_BY = {
    ConfigRule.OVERRIDE: ConfigWinner.OVERRIDE,
    ConfigRule.ALWAYS: ConfigWinner.SOURCE,
    ConfigRule.SET_ON_TOPIC: ConfigWinner.SOURCE,
    ConfigRule.SET_ON_BROKERS: ConfigWinner.SOURCE,
    ConfigRule.SOURCE_DEFAULT: ConfigWinner.SOURCE,
}
_DELETED_BY = {
    ConfigRule.FOLLOWS_TARGET: ConfigWinner.TARGET_DEFAULT,
    ConfigRule.TARGET_DEFAULT: ConfigWinner.TARGET_DEFAULT,
}
_WINNERS = _SET_BY | _DELETED_BY
_ORIGIN_RULES = {
    ConfigOrigin.TOPIC: ConfigRule.SET_ON_TOPIC,
    ConfigOrigin.BROKER: ConfigRule.SET_ON_BROKERS,
    ConfigOrigin.CLUSTER: ConfigRule.SET_ON_BROKERS,
    ConfigOrigin.BROKER_FILE: ConfigRule.BROKER_FILE,
}


@dataclass(frozen=True, slots=True)
class WantedConfig:
    """The action for one config: set it to `value`, delete it, or (None) leave it."""

    name: str
    operation: ConfigOperation | None
    value: str | None
    rule: ConfigRule


@dataclass(frozen=True, slots=True)
class ConfigStep:
    """A change of one config of a remote topic."""

    name: str
    operation: ConfigOperation
    #: The value in effect on the target now.
    old: str | None
    #: The value to set; None if the target's default applies afterwards.
    new: str | None
    rule: ConfigRule

    def __str__(self) -> str:
        if self.operation is ConfigOperation.DELETE:
            return f"delete {self.name}, now {self.old} ({self.rule.value})"
        return f"set {self.name} to {self.new}, now {self.old} ({self.rule.value})"


@dataclass(frozen=True, slots=True)
class TopicConfigSteps:
    """The changes of one remote topic; the cluster applies all of them or none."""

    topic: str
    source: str
    steps: tuple[ConfigStep, ...]

    def __str__(self) -> str:
        return f"{self.topic}: " + "; ".join(str(step) for step in self.steps)


@dataclass(frozen=True, slots=True)
class ConfigDrift:
    """One config whose effective value differs between a source topic and its remote topic, and which side wins."""

    topic: str
    source: str
    name: str
    source_value: str | None
    target_value: str | None
    winner: ConfigWinner
    rule: ConfigRule
    #: True if applying the plan changes the target.
    planned: bool


@dataclass(frozen=True, slots=True)
class ConfigFacts:
    """Topic configs of both clusters for one flow."""

    #: The source topic of each existing remote topic, from which it gets its configs.
    sources: Mapping[str, str]
    #: By source topic, and by remote topic.
    source_configs: Mapping[str, TopicConfigs]
    target_configs: Mapping[str, TopicConfigs]
    #: Topics that could not be read or whose names cannot be used, by name on their own cluster.
    unreadable: Mapping[str, MirrorError] = field(default_factory=dict)
    #: Source topics without a remote topic; it gets its configs at creation.
    not_created: int = 0


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """Changes to a flow's remote topics. Two plans are equal if they make the same changes and report the same."""

    flow: FlowId
    changes: tuple[TopicConfigSteps, ...] = ()
    drift: tuple[ConfigDrift, ...] = ()
    problems: tuple[MirrorError, ...] = ()
    #: Topics without a change.
    unchanged: int = 0
    not_created: int = 0

    def __str__(self) -> str:
        lines = [str(change) for change in self.changes] + [str(problem) for problem in self.problems]
        return "\n".join([*lines, f"{counted(self.unchanged, 'topic')} unchanged"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "flow": str(self.flow),
            "changes": [
                {"topic": change.topic, "source": change.source, "steps": [_plain(step) for step in change.steps]}
                for change in self.changes
            ],
            "drift": [_plain(row) for row in self.drift],
            "problems": [problem.attributes() for problem in self.problems],
            "unchanged": self.unchanged,
            "not_created": self.not_created,
        }


class ConfigRulebook:
    """The rules of one flow about topic configs."""

    def __init__(self, flow: FlowConfig) -> None:
        """Read the flow's settings.

        Raises:
            ConfigurationError: the filter class cannot be loaded, or a regex is not valid.
        """
        self._overrides = flow.config_rules.override
        self._never = _compile(flow, ConfigRule.NEVER, flow.config_rules.never)
        self._always = _compile(flow, ConfigRule.ALWAYS, flow.config_rules.always)
        self._follow = _compile(flow, ConfigRule.FOLLOWS_TARGET, flow.config_rules.default)
        self._filter: ConfigPropertyFilter = config_property_filter(flow)

    def wanted_configs(self, configs: TopicConfigs | None) -> list[WantedConfig]:
        """The action for every config of a source topic, by name; at least for the overrides."""
        entries = dict(configs.entries) if configs is not None else {}
        return [self._of(name, entries.get(name)) for name in sorted({*entries, *self._overrides})]

    def at_creation(self, configs: TopicConfigs | None) -> dict[str, str]:
        """The configs that a new remote topic gets (mm2 `MirrorSourceConnector.targetConfig`)."""
        return {want.name: want.value for want in self.wanted_configs(configs) if want.value is not None}

    def _of(self, name: str, entry: ConfigEntry | None) -> WantedConfig:
        if name in self._overrides:
            return WantedConfig(name, ConfigOperation.SET, self._overrides[name], ConfigRule.OVERRIDE)
        assert entry is not None
        rule = self._rule(entry)
        if rule in _SET_BY:
            # A value that the source does not return cannot be copied.
            operation = None if entry.value is None else ConfigOperation.SET
            return WantedConfig(name, operation, entry.value, rule)
        return WantedConfig(name, ConfigOperation.DELETE if rule in _DELETED_BY else None, None, rule)

    def _rule(self, entry: ConfigEntry) -> ConfigRule:
        if _names(self._never, entry.name):
            return ConfigRule.NEVER
        if entry.read_only or entry.sensitive:
            return ConfigRule.HIDDEN
        if _names(self._always, entry.name):
            return ConfigRule.ALWAYS
        if _names(self._follow, entry.name):
            return ConfigRule.FOLLOWS_TARGET
        if not self._filter.should_replicate_config_property(entry.name):
            return ConfigRule.EXCLUDED
        if entry.origin is ConfigOrigin.DEFAULT:
            copied = self._filter.should_replicate_source_default(entry.name)
            return ConfigRule.SOURCE_DEFAULT if copied else ConfigRule.TARGET_DEFAULT
        return _ORIGIN_RULES.get(entry.origin, ConfigRule.HIDDEN)


def plan_configs(flow: FlowConfig, facts: ConfigFacts) -> ConfigPlan:
    """Plan changes on the target, and list differences that remain. A problem of one topic does not stop the others.

    Raises:
        ConfigurationError: the filter class cannot be loaded, or a regex is not valid.
    """
    rules = ConfigRulebook(flow)
    changes: list[TopicConfigSteps] = []
    drift: list[ConfigDrift] = []
    unchanged = 0
    unknown_overrides: set[str] = set()
    for topic, source in sorted(facts.sources.items()):
        theirs, ours = facts.source_configs.get(source), facts.target_configs.get(topic)
        if theirs is None or ours is None:
            continue
        steps = []
        for want in rules.wanted_configs(theirs):
            present = ours.entries.get(want.name)
            step = None if present is None else _step(want, present)
            if step is not None:
                steps.append(step)
            if present is None and want.rule is ConfigRule.OVERRIDE:
                unknown_overrides.add(want.name)
            drift += _drift(topic, source, want, theirs.entries.get(want.name), present, planned=step is not None)
        if steps:
            changes.append(TopicConfigSteps(topic, source, tuple(steps)))
        else:
            unchanged += 1
    problems = [*_unknown(flow, unknown_overrides), *(error for _, error in sorted(facts.unreadable.items()))]
    return ConfigPlan(flow.flow, tuple(changes), tuple(drift), tuple(problems), unchanged, facts.not_created)


def _step(want: WantedConfig, present: ConfigEntry) -> ConfigStep | None:
    """Setting pins a value to the topic, as in MM2, even if the cluster's default is the same."""
    on_topic = present.origin is ConfigOrigin.TOPIC
    if want.operation is ConfigOperation.SET and not (on_topic and present.value == want.value):
        return ConfigStep(want.name, ConfigOperation.SET, present.value, want.value, want.rule)
    if want.operation is ConfigOperation.DELETE and on_topic:
        return ConfigStep(want.name, ConfigOperation.DELETE, present.value, None, want.rule)
    return None


def _drift(
    topic: str,
    source: str,
    want: WantedConfig,
    theirs: ConfigEntry | None,
    ours: ConfigEntry | None,
    *,
    planned: bool,
) -> Iterable[ConfigDrift]:
    """A difference between the clusters; without hidden values, and without defaults that the target does not know."""
    source_value, target_value = theirs.value if theirs else None, ours.value if ours else None
    if ours is None and want.operation is not ConfigOperation.SET:
        return
    if source_value == target_value and not planned:
        return
    rule = ConfigRule.UNKNOWN if ours is None else want.rule
    winner = _WINNERS.get(rule, ConfigWinner.TARGET)
    yield ConfigDrift(topic, source, want.name, source_value, target_value, winner, rule, planned)


def _unknown(flow: FlowConfig, names: Iterable[str]) -> list[MirrorError]:
    return [
        ConfigurationError(
            f"{ConfigRule.OVERRIDE.value} sets {name}, which cluster {flow.flow.target} does not know.",
            where=Where(flow=str(flow.flow), cluster=flow.flow.target),
            action="Correct the name; kafka-configs --describe --all lists all configs.",
        )
        for name in sorted(names)
    ]


def _names(pattern: PatternList | None, name: str) -> bool:
    return pattern is not None and pattern.fullmatch(name)


def _compile(flow: FlowConfig, rule: ConfigRule, patterns: tuple[str, ...]) -> PatternList | None:
    try:
        return compile_list(patterns)
    except ValueError as error:
        raise ConfigurationError(
            f"{rule.value}: {error}.",
            where=Where(flow=str(flow.flow)),
            action="Correct the regex in the configuration file.",
        ) from error


def _plain(row: ConfigStep | ConfigDrift) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__slots__}
