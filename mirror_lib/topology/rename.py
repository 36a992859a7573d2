"""Renames in addition to MM2's policies, and the name table of a flow with its collisions.

A renamed topic gets exactly the given name: the replication policy applies only to topics without a rename.
Precedence: explicit map, then regex, then policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mirror_lib.errors import TopologyError, Where
from mirror_lib.topology.java_regex import compile_java, compile_replacement

#: `org.apache.kafka.common.internals.Topic`.
MAX_TOPIC_LENGTH = 249
_ACTION = "Change the rename rules or the replication policy, or exclude topics from the flow."
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class RenameRules:
    """Renames by an explicit map and by one regex.

    Raises:
        ValueError: a name is illegal, regex or replacement is not valid, or one of the two is missing.
    """

    #: Source topic -> target topic.
    explicit: Mapping[str, str] = field(default_factory=dict)
    #: A Java regex that must match the whole source name.
    pattern: str | None = None
    #: Java's replacement text (`$1`) for `pattern`.
    replacement: str | None = None
    #: Several source topics may share one target topic; each record keeps its partition number.
    merge: bool = False

    def __post_init__(self) -> None:
        if (self.pattern is None) != (self.replacement is None):
            raise ValueError("a regex rename needs both the regex and its replacement")
        for source, target in self.explicit.items():
            if (why := illegal_name(target)) is not None:
                raise ValueError(f"{source} cannot be called {target!r}: {why}")
        if self.pattern is not None and self.replacement is not None:
            compile_replacement(self.replacement, compile_java(self.pattern))

    def explicit_name(self, topic: str) -> str | None:
        """The name in the explicit map; None if the map does not contain the topic."""
        return self.explicit.get(topic)

    def regex_name(self, topic: str) -> str | None:
        """The name by the regex; None if it does not match."""
        if self.pattern is None or self.replacement is None:
            return None
        compiled = compile_java(self.pattern)
        match = compiled.fullmatch(topic)
        return compile_replacement(self.replacement, compiled)(match) if match else None


def illegal_name(topic: str) -> str | None:
    """Why Kafka rejects a topic name (`Topic.validate`); None for a legal one."""
    if not topic:
        return "it is empty"
    if topic in (".", ".."):
        return "a topic cannot be called . or .."
    if len(topic) > MAX_TOPIC_LENGTH:
        return f"it has {len(topic)} characters, Kafka allows {MAX_TOPIC_LENGTH}"
    if not _LEGAL.fullmatch(topic):
        return "only letters, digits, '.', '_' and '-' are allowed"
    return None


class NameFault(StrEnum):
    """Faults of a name on the target."""

    ILLEGAL = "illegal name"
    RESERVED = "reserved name"
    COLLISION = "collision"
    #: Names that differ only in '.' and '_' share one metric name; the controller rejects the second topic.
    SIMILAR = "similar names"
    PARTITION_COUNTS = "partition counts differ"


@dataclass(frozen=True, slots=True)
class NameFinding:
    """One fault of a name table."""

    fault: NameFault
    target: str
    sources: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class NameTable:
    """Target topics of all source topics that a flow replicates, with all faults."""

    targets: Mapping[str, str]
    findings: tuple[NameFinding, ...] = ()

    @classmethod
    def build(
        cls,
        partitions: Mapping[str, int],
        remote_topic: Callable[[str], str],
        *,
        merge: bool = False,
        reserved: Callable[[str], bool] = lambda _: False,
        existing: Collection[str] = (),
    ) -> NameTable:
        """The table of the given source topics.

        Args:
            partitions: number of partitions of each source topic.
            remote_topic: the target name of a source topic.
            merge: allow several source topics to share a target.
            reserved: true for target names that belong to Kafka or to the replicator.
            existing: topics of the target cluster, of the flow or not; no other topic can get a similar name.
        """
        targets = {topic: remote_topic(topic) for topic in sorted(partitions)}
        sources: dict[str, list[str]] = {}
        for topic, target in targets.items():
            sources.setdefault(target, []).append(topic)
        findings = [
            finding
            for target, topics in sorted(sources.items())
            for finding in _faults(target, tuple(topics), partitions, merge=merge, reserved=reserved)
        ]
        return cls(targets, (*findings, *_similar(sources, existing)))

    def sources_of(self, target: str) -> tuple[str, ...]:
        """The source topics of a target topic; several in a merge."""
        return tuple(source for source, name in self.targets.items() if name == target)

    def errors(self, flow: str | None = None) -> dict[str, TopologyError]:
        """One error for every source topic that must not be copied; the others continue."""
        found: dict[str, TopologyError] = {}
        for finding in self.findings:
            for source in finding.sources:
                found.setdefault(
                    source, TopologyError(f"{finding.message}.", where=Where(flow=flow, topic=source), action=_ACTION)
                )
        return found


def _faults(
    target: str,
    sources: tuple[str, ...],
    partitions: Mapping[str, int],
    *,
    merge: bool,
    reserved: Callable[[str], bool],
) -> list[NameFinding]:
    found = []
    from_ = ", ".join(sources)
    why = illegal_name(target)
    if why is not None:
        found.append(NameFinding(NameFault.ILLEGAL, target, sources, f"{from_} would become {target!r}: {why}"))
    elif reserved(target):
        message = f"{from_} would become {target}, a reserved name"
        found.append(NameFinding(NameFault.RESERVED, target, sources, message))
    if len(sources) < 2:
        return found
    if not merge:
        message = f"{from_} would all become {target} (mirror.topics.merge.enabled is false)"
        found.append(NameFinding(NameFault.COLLISION, target, sources, message))
    elif len({partitions[source] for source in sources}) > 1:
        counts = ", ".join(f"{source} has {partitions[source]}" for source in sources)
        message = f"topics merged into {target} must have the same number of partitions: {counts}"
        found.append(NameFinding(NameFault.PARTITION_COUNTS, target, sources, message))
    return found


def _similar(sources: Mapping[str, list[str]], existing: Collection[str]) -> list[NameFinding]:
    """Findings about target topics that Kafka would not create (`ReplicationControlManager.createTopic`).

    Clusters from before KRaft may hold topics with similar names; these stay usable.
    """
    missing = {target for target in sources if target not in existing}
    alike: dict[str, list[str]] = {_unify(target): [] for target in sorted(missing)}
    for target in sorted({*missing, *existing}):
        if (same := alike.get(_unify(target))) is not None:
            same.append(target)
    return [
        NameFinding(
            NameFault.SIMILAR,
            next(target for target in targets if target in missing),
            tuple(source for target in targets if target in missing for source in sources[target]),
            f"{' and '.join(targets)} differ only in '.' and '_', which Kafka does not allow on one cluster",
        )
        for targets in alike.values()
        if len(targets) > 1
    ]


def _unify(topic: str) -> str:
    """A topic's name in metrics (`Topic.unifyCollisionChars`)."""
    return topic.replace(".", "_")
