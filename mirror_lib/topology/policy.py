"""Names of remote and internal topics: MM2's `ReplicationPolicy` and its two implementations.

The rules are those of `org.apache.kafka.connect.mirror.{ReplicationPolicy,DefaultReplicationPolicy,
IdentityReplicationPolicy}` in Kafka 4.3 (KIP-382, KIP-690, KIP-949, KIP-1074), exactly where MM2's own clients depend
on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from mirror_lib.topology.classes import load_class

SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR_ENABLED = "replication.policy.internal.topic.separator.enabled"
SOURCE_ALIAS = "source.cluster.alias"
TARGET_ALIAS = "target.cluster.alias"

_JAVA_PACKAGE = "org.apache.kafka.connect.mirror"
_HEARTBEATS = "heartbeats"


class ReplicationPolicy(ABC):
    """Names of topics on the target, and the origin of a topic by its name.

    A custom policy derives from this class and is built with one argument, the mapping of options: every setting that
    begins with `replication.policy`, and the aliases `source.cluster.alias` and `target.cluster.alias`. Methods that
    are not abstract return the defaults of MM2's interface. Instances must be picklable.
    """

    @abstractmethod
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        """The target name of a topic from `source_alias`."""

    @abstractmethod
    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that the topic was copied from; None for an original topic."""

    @abstractmethod
    def upstream_topic(self, topic: str) -> str | None:
        """The topic's name on the cluster that it was copied from; None for an original topic."""

    def original_topic(self, topic: str) -> str:
        """The topic's name on its original cluster, regardless of the number of hops."""
        seen = {topic}
        while (upstream := self.upstream_topic(topic)) is not None and upstream not in seen:
            seen.add(upstream)
            topic = upstream
        return topic

    def heartbeats_topic(self) -> str:
        """The topic that heartbeats are written to."""
        return _HEARTBEATS

    def offset_syncs_topic(self, alias: str) -> str:
        """The offset-syncs topic; `alias` is that of the other cluster, not of the one that holds the topic."""
        return f"mm2-offset-syncs.{alias}.internal"

    def checkpoints_topic(self, alias: str) -> str:
        """The topic of checkpoints from the cluster `alias`."""
        return f"{alias}.checkpoints.internal"

    def is_heartbeats_topic(self, topic: str) -> bool:
        """True if a topic holds heartbeats, own or replicated ones."""
        return self.original_topic(topic) == self.heartbeats_topic()

    def is_checkpoints_topic(self, topic: str) -> bool:
        """True if a topic holds checkpoints."""
        return topic.endswith(".checkpoints.internal")

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """True if a topic belongs to MM2 itself."""
        return (topic.startswith("mm2") and topic.endswith(".internal")) or self.is_checkpoints_topic(topic)

    def is_internal_topic(self, topic: str) -> bool:
        """True if a topic belongs to Kafka or MM2 and is never replicated.

        Since KIP-1074 (Kafka 4), a name that merely ends with `internal` is a user's topic: the topic filter decides.
        """
        return self.is_mm2_internal_topic(topic) or topic.startswith(("__", "."))


class DefaultReplicationPolicy(ReplicationPolicy):
    """`<source alias><separator><topic>`. An alias that contains the separator is not recognised, as in MM2."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._separator = options.get(SEPARATOR, ".")
        # Java reads the flag only together with a separator; without one the two separators are equal anyway. Its
        # `parseBoolean` knows no blanks.
        enabled = options.get(INTERNAL_SEPARATOR_ENABLED, "true").lower() == "true"
        self._internal_separator = self._separator if enabled else "."

    @property
    def separator(self) -> str:
        """The separator between alias and topic."""
        return self._separator

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return source_alias + self._separator + topic

    def topic_source(self, topic: str) -> str | None:
        if not self._separator:
            # Java splits into single characters.
            return topic[0] if len(topic) > 1 else None
        source, separator, rest = topic.partition(self._separator)
        # Java's split drops trailing empty pieces: `a.` and `a..` are one piece, `.b` two.
        return source if separator and rest.replace(self._separator, "") else None

    def upstream_topic(self, topic: str) -> str | None:
        source = self.topic_source(topic)
        return None if source is None else topic[len(source) + len(self._separator) :]

    def offset_syncs_topic(self, alias: str) -> str:
        return self._internal("mm2-offset-syncs", alias, "internal")

    def checkpoints_topic(self, alias: str) -> str:
        return self._internal(alias, "checkpoints", "internal")

    def is_checkpoints_topic(self, topic: str) -> bool:
        return topic.endswith(self._internal("", "checkpoints", "internal"))

    def is_mm2_internal_topic(self, topic: str) -> bool:
        own = topic.startswith("mm2") and topic.endswith(self._internal("", "internal"))
        return own or self.is_checkpoints_topic(topic)

    def _internal(self, *parts: str) -> str:
        return self._internal_separator.join(parts)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(vars(self).values())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key[1:]}={value!r}' for key, value in vars(self).items())})"


class IdentityReplicationPolicy(DefaultReplicationPolicy):
    """Topics keep their names (KIP-690), except topics whose names end with `heartbeats`.

    It cannot distinguish remote topics from others, so it cannot detect cycles.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)
        self._source_alias = options.get(SOURCE_ALIAS)

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic) if _looks_like_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        return super().topic_source(topic) if _looks_like_heartbeats(topic) else self._source_alias

    def upstream_topic(self, topic: str) -> str | None:
        return super().upstream_topic(topic) if _looks_like_heartbeats(topic) else topic


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(_HEARTBEATS)


DEFAULT_CLASS = f"{_JAVA_PACKAGE}.DefaultReplicationPolicy"
IDENTITY_CLASS = f"{_JAVA_PACKAGE}.IdentityReplicationPolicy"
#: Classes from before KIP-690 that keep topic names, as published; each is treated as `IdentityReplicationPolicy`. They
#: keep the names of heartbeats topics too, which would mix the heartbeats of both clusters.
IDENTITY_LIKE = frozenset(
    {
        # Strimzi's MirrorMaker 2 extensions.
        "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy",
        # AWS's samples for migrations to MSK.
        "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        "ch.mawileo.kafka.mm2.IdentityReplicationPolicy",
        "ch.mawileo.kafka.mm2.PrefixlessReplicationPolicy",
        "com.kafka.mirror.PrefixlessReplicationPolicy",
    }
)

_KNOWN: dict[str, type[ReplicationPolicy]] = {
    DEFAULT_CLASS: DefaultReplicationPolicy,
    IDENTITY_CLASS: IdentityReplicationPolicy,
    **dict.fromkeys(IDENTITY_LIKE, IdentityReplicationPolicy),
}


def keeps_names(class_name: str) -> bool:
    """True if a policy's class, by its Java name, gives remote topics the names of their sources."""
    return class_name == IDENTITY_CLASS or class_name in IDENTITY_LIKE


def policy_for(class_name: str, options: Mapping[str, str]) -> ReplicationPolicy:
    """The configured policy.

    Args:
        class_name: Java's name of one of MM2's policies, or the dotted path of a Python class derived from
            `ReplicationPolicy`.
        options: MM2's own keys, such as `replication.policy.separator` and `source.cluster.alias`.

    Raises:
        ConfigurationError: the class does not exist, or cannot be built from the options.
    """
    base = ReplicationPolicy
    return load_class(class_name, _KNOWN, base, "replication.policy.class")(options)  # type: ignore[type-abstract]
