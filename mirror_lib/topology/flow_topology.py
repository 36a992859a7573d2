"""Topic selection and naming of a flow: MM2's selection (`MirrorSourceConnector`) and the project's renames."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.topology.filters import TopicFilter
from mirror_lib.topology.handovers import NO_HANDOVERS, Handovers
from mirror_lib.topology.java_regex import NO_PATTERNS, PatternList, compile_list
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import ReplicationPolicy
from mirror_lib.topology.rename import NameTable, RenameRules

#: Maximum number of shown reasons why requested topics are not selected.
_REASONS_SHOWN = 5
#: Maximum number of shown characters of a choice: a program may pass thousands of names.
_CHOICE_SHOWN = 300


class Exclusion(StrEnum):
    """Why a topic is not replicated."""

    #: The topic filter does not accept it.
    FILTERED = "filtered"
    #: It belongs to Kafka, Connect or MM2.
    INTERNAL = "internal"
    #: It was copied from the target, directly or through other clusters.
    CYCLE = "cycle"
    #: A cutover has moved its writers to the target.
    HANDED_OVER = "handed over"
    #: The flow is a failback, and no cutover has moved the topic's writers to its source.
    NOT_HANDED_OVER = "not handed over"
    #: The flow selects it, but this run is limited to other topics.
    NOT_REQUESTED = "not requested"


def shown_choice(patterns: Iterable[str]) -> str:
    """Return the patterns that an operator has chosen topics with, for an error; thousands are cut."""
    chosen = ", ".join(patterns)
    return f"{chosen[:_CHOICE_SHOWN]}..." if len(chosen) > _CHOICE_SHOWN else chosen


@dataclass(frozen=True, slots=True)
class FlowTopology:
    """The rules of one flow about topics: selection and names."""

    flow: FlowId
    policy: ReplicationPolicy
    topic_filter: TopicFilter
    rename: RenameRules = field(default_factory=RenameRules)
    #: Heartbeats topics are selected regardless of the filter (KIP-1089).
    heartbeats_replication_enabled: bool = True
    handovers: Handovers = NO_HANDOVERS
    #: Failback: copy only topics whose writers a cutover has moved to this flow's source.
    failback: bool = False
    #: Topics of a limited run, see `include_only`.
    limits: tuple[PatternList, ...] = ()
    #: MM2's names of source and target, if they differ from the flow's aliases (`source.cluster.alias`).
    aliases: tuple[str, str] | None = None

    @property
    def source_alias(self) -> str:
        """The source's alias in names of remote topics."""
        return self.flow.source if self.aliases is None else self.aliases[0]

    @property
    def target_alias(self) -> str:
        """The target's alias in names of topics that were copied from it."""
        return self.flow.target if self.aliases is None else self.aliases[1]

    def replicates(self, topic: str) -> bool:
        """True if the flow selects a topic of the source."""
        return self.exclusion(topic) is None

    def exclusion(self, topic: str) -> Exclusion | None:
        """Why the flow does not select a topic of the source; None if it does."""
        heartbeats = self.heartbeats_replication_enabled and self.policy.is_heartbeats_topic(topic)
        if self.policy.is_internal_topic(topic) or self._is_heartbeats_of_target(topic):
            return Exclusion.INTERNAL
        if self.is_cycle(topic) and not self._leads_home(topic):
            return Exclusion.CYCLE
        if not heartbeats and not self.topic_filter.should_replicate_topic(topic):
            return Exclusion.FILTERED
        if topic in self.handovers.away:
            return Exclusion.HANDED_OVER
        if self.failback and self.handovers.restrict and topic not in self.handovers.here and not heartbeats:
            return Exclusion.NOT_HANDED_OVER
        if not all(limit.fullmatch(topic) for limit in self.limits):
            return Exclusion.NOT_REQUESTED
        return None

    def with_moved_topics(self) -> FlowTopology:
        """Also select topics that cutovers have moved away: the flow has copied them, and their offset maps remain."""
        moved = self.handovers
        return replace(self, handovers=replace(moved, away=frozenset(), here=moved.here | moved.away))

    def refuse_unselected(self, topic: str) -> None:
        """Raise if the flow does not select a topic that an operator has named.

        Raises:
            ConfigurationError: with the reason.
        """
        if (exclusion := self.exclusion(topic)) is not None:
            raise ConfigurationError(
                f"the flow does not replicate this topic: {exclusion.value}.",
                where=Where(flow=str(self.flow), topic=topic),
                action="`mirror topics plan` lists the topics of the flow.",
            )

    def is_cycle(self, topic: str) -> bool:
        """True if the target is in a topic's ancestry (`MirrorSourceConnector.isCycle`).

        The identity policy has no ancestry, so it detects only cycles of heartbeats.
        """
        seen: set[str] = set()
        current: str | None = topic
        while current is not None and current not in seen:
            source = self.policy.topic_source(current)
            if source is None:
                return False
            if source == self.target_alias:
                return True
            seen.add(current)
            current = self.policy.upstream_topic(current)
        return False

    def _is_heartbeats_of_target(self, topic: str) -> bool:
        """True if the copy would have the name of the topic to which the target's own heartbeats are written.

        Only policies that keep names do that; the records of both could not be distinguished.
        """
        heartbeats = self.policy.heartbeats_topic()
        return topic == heartbeats and self.remote_topic(topic) == heartbeats

    def _leads_home(self, topic: str) -> bool:
        """True if a failback flow gives a copy of one of the target's topics its original name there.

        This is not a loop: each of the two flows copies the topic only while its writers are on that flow's source.
        """
        return (
            self.failback
            and self.policy.topic_source(topic) == self.target_alias
            and self.remote_topic(topic) == self.policy.upstream_topic(topic)
        )

    def remote_topic(self, topic: str) -> str:
        """The target name of a topic of the source.

        Heartbeats topics keep the policy's name, which monitoring expects, unless the explicit map contains them.
        """
        explicit = self.rename.explicit_name(topic)
        if explicit is not None:
            return explicit
        renamed = None if self.policy.is_heartbeats_topic(topic) else self.rename.regex_name(topic)
        return self.policy.format_remote_topic(self.source_alias, topic) if renamed is None else renamed

    def checkpointed_topic(self, topic: str) -> str:
        """The target topic of the offsets in a checkpoint of a source topic.

        The rule of `MirrorCheckpointTask.renameTopicPartition`: a topic that was itself copied from the target returns
        to its original.
        """
        if self.policy.topic_source(topic) == self.target_alias:
            return self.policy.original_topic(topic)
        return self.remote_topic(topic)

    def include_only(self, patterns: Sequence[str]) -> FlowTopology:
        """This flow limited to selected topics that match one of the Java regexes.

        Raises:
            ConfigurationError: a pattern is not valid.
        """
        try:
            compiled = compile_list(tuple(patterns))
        except ValueError as error:
            raise ConfigurationError(
                f"the run cannot be limited to these topics: {error}.",
                where=Where(flow=str(self.flow)),
                action="Pass names or Java regexes of source topics.",
            ) from error
        return replace(self, limits=(*self.limits, compiled or NO_PATTERNS))

    def refuse_empty_choice(self, listed: Iterable[str]) -> None:
        """Raise if a run is limited to topics of which the flow selects none: a misspelt name would look like success.

        Args:
            listed: the topics of the source.

        Raises:
            ConfigurationError: no topic is selected; the error has the reasons for requested topics.
        """
        if not self.limits:
            return
        reasons: list[str] = []
        for topic in listed:
            exclusion = self.exclusion(topic)
            if exclusion is None:
                return
            if exclusion is not Exclusion.NOT_REQUESTED and all(limit.fullmatch(topic) for limit in self.limits):
                reasons.append(f"{topic} ({exclusion.value})")
        meant = f": {', '.join(reasons[:_REASONS_SHOWN])}" if reasons else ", and the source has no such topic"
        chosen = shown_choice(limit.text for limit in self.limits)
        raise ConfigurationError(
            f"it copies no topic that matches {chosen}{meant}.",
            where=Where(flow=str(self.flow)),
            action="`mirror topics plan` lists the topics of the flow; `mirror cutover list` the topics that were "
            "moved.",
        )

    def name_table(self, partitions: Mapping[str, int], existing: Collection[str] = ()) -> NameTable:
        """The target names of the given source topics (with their partition counts), and all faults.

        Args:
            existing: topics of the target cluster that exist already.
        """
        return NameTable.build(
            partitions,
            self.remote_topic,
            merge=self.rename.merge,
            reserved=self._is_reserved,
            existing=existing,
        )

    def _is_reserved(self, target_topic: str) -> bool:
        if target_topic == self.policy.heartbeats_topic():
            return True
        # Without an alias the policy's own names begin with its separator, as those of hidden topics may.
        prefix = self.policy.format_remote_topic(self.source_alias, "")
        if prefix.startswith(".") and target_topic.startswith(prefix):
            return self.policy.is_mm2_internal_topic(target_topic)
        return self.policy.is_internal_topic(target_topic)


def ancestry(policy: ReplicationPolicy, topic: str) -> tuple[str, ...]:
    """The clusters through which a topic was copied, nearest first (`MirrorClient.allSources`)."""
    sources: list[str] = []
    current: str | None = topic
    while current is not None:
        source = policy.topic_source(current)
        if source is None or source in sources:
            break
        sources.append(source)
        current = policy.upstream_topic(current)
    return tuple(sources)


def hops(policy: ReplicationPolicy, topic: str, cluster: str) -> int | None:
    """The number of copies between a cluster and this topic (`countHopsForTopic`); None if it is not from there."""
    sources = ancestry(policy, topic)
    return sources.index(cluster) + 1 if cluster in sources else None
