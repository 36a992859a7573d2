"""Selection of topics, groups and topic configs: MM2's filters.

The rules are those of `org.apache.kafka.connect.mirror.Default{Topic,Group,ConfigProperty}Filter`: lists of names or
Java regexes that must match the whole name; exclusion wins; an empty list matches nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.classes import load_class
from mirror_lib.topology.java_regex import PatternList, compile_list

_JAVA_PACKAGE = "org.apache.kafka.connect.mirror"

TOPICS = "topics"
TOPICS_EXCLUDE = "topics.exclude"
GROUPS = "groups"
GROUPS_EXCLUDE = "groups.exclude"
CONFIG_PROPERTIES_EXCLUDE = "config.properties.exclude"
USE_DEFAULTS_FROM = "use.defaults.from"


class TopicFilter(ABC):
    """Selects topics. A custom one is built with the mapping of its settings (`topics`, `topics.exclude`...)."""

    @abstractmethod
    def should_replicate_topic(self, topic: str) -> bool:
        """True if the filter accepts the topic; internal topics and cycles are checked elsewhere."""


class GroupFilter(ABC):
    """Selects consumer groups. A custom one is built with the mapping of its settings (`groups`...)."""

    @abstractmethod
    def should_replicate_group(self, group: str) -> bool:
        """True if offsets of the group are replicated."""


class ConfigPropertyFilter(ABC):
    """Selects topic configs. A custom one is built with the mapping of its settings."""

    @abstractmethod
    def should_replicate_config_property(self, name: str) -> bool:
        """True if a config of a source topic is copied to the remote topic."""

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002 - for those who override it
        """True if a built-in default of the source is copied (KIP-894); otherwise the target's own default applies."""
        return False


class _NameFilter:
    """Include and exclude lists over names."""

    _include_key: str
    _exclude_key: str

    def __init__(self, options: Mapping[str, str]) -> None:
        self._include = _compile(self._include_key, options.get(self._include_key, ".*"))
        self._exclude = _compile(self._exclude_key, options.get(self._exclude_key, ""))

    def _accepts(self, name: str) -> bool:
        included = self._include is not None and self._include.fullmatch(name)
        return included and not (self._exclude is not None and self._exclude.fullmatch(name))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self._include, self._exclude))


class DefaultTopicFilter(_NameFilter, TopicFilter):
    """Topics that match `topics` and not `topics.exclude`."""

    _include_key = TOPICS
    _exclude_key = TOPICS_EXCLUDE

    def should_replicate_topic(self, topic: str) -> bool:
        return self._accepts(topic)


class DefaultGroupFilter(_NameFilter, GroupFilter):
    """Groups that match `groups` and not `groups.exclude`."""

    _include_key = GROUPS
    _exclude_key = GROUPS_EXCLUDE

    def should_replicate_group(self, group: str) -> bool:
        return self._accepts(group)


class DefaultConfigPropertyFilter(ConfigPropertyFilter):
    """Configs that do not match `config.properties.exclude`; source defaults if `use.defaults.from` is `source`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._exclude = _compile(CONFIG_PROPERTIES_EXCLUDE, options.get(CONFIG_PROPERTIES_EXCLUDE, ""))
        self._source_defaults = options.get(USE_DEFAULTS_FROM, "target") == "source"

    def should_replicate_config_property(self, name: str) -> bool:
        return self._exclude is None or not self._exclude.fullmatch(name)

    def should_replicate_source_default(self, name: str) -> bool:  # noqa: ARG002 - the same for all
        return self._source_defaults

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self._exclude, self._source_defaults))


_TOPIC_FILTERS: dict[str, type[TopicFilter]] = {f"{_JAVA_PACKAGE}.DefaultTopicFilter": DefaultTopicFilter}
_GROUP_FILTERS: dict[str, type[GroupFilter]] = {f"{_JAVA_PACKAGE}.DefaultGroupFilter": DefaultGroupFilter}
_CONFIG_FILTERS: dict[str, type[ConfigPropertyFilter]] = {
    f"{_JAVA_PACKAGE}.DefaultConfigPropertyFilter": DefaultConfigPropertyFilter
}


def topic_filter_for(class_name: str, options: Mapping[str, str]) -> TopicFilter:
    """The configured topic filter, by the Java name of MM2's or the dotted path of a Python class.

    Raises:
        ConfigurationError: the class does not exist, or a list contains an invalid regex.
    """
    return load_class(class_name, _TOPIC_FILTERS, TopicFilter, "topic.filter.class")(options)  # type: ignore[type-abstract]


def group_filter_for(class_name: str, options: Mapping[str, str]) -> GroupFilter:
    """The configured group filter, see `topic_filter_for`."""
    return load_class(class_name, _GROUP_FILTERS, GroupFilter, "group.filter.class")(options)  # type: ignore[type-abstract]


def config_property_filter_for(class_name: str, options: Mapping[str, str]) -> ConfigPropertyFilter:
    """The configured filter of topic configs, see `topic_filter_for`."""
    base = ConfigPropertyFilter
    return load_class(class_name, _CONFIG_FILTERS, base, "config.property.filter.class")(options)  # type: ignore[type-abstract]


def join(patterns: Sequence[str]) -> str:
    """A list as the text of a setting; members cannot contain commas."""
    return ",".join(patterns)


def _compile(key: str, text: str) -> PatternList | None:
    # Kafka's ConfigDef trims the members of a list.
    patterns = [member.strip() for member in text.split(",")] if text.strip() else []
    try:
        return compile_list(patterns)
    except ValueError as error:
        raise ConfigurationError(f"{key}: {error}.", action="Correct the regex in the configuration file.") from error
