"""Heartbeats by MM2's rules: which pair of clusters writes them where, and what arrived heartbeats mean. Pure.

A pair `X->A` writes its heartbeats into `heartbeats` on A (`MirrorHeartbeatTask`). The flow `A->B` copies them to
`A.heartbeats` on B, the next one to `B.A.heartbeats` on C. Heartbeats on B thus prove that replication from A works,
and the names show the number of hops (`MirrorClient.replicationHops`). So heartbeats of the reverse pair `B->A` monitor
the flow `A->B`; MM2 emits them even if that pair replicates nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from mirror_lib.cluster.admin.model import TopicConfigs, TopicDescription, TopicSpec
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.schedule import longest_interval_seconds
from mirror_lib.topology.flow_topology import FlowTopology, ancestry, hops
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import ReplicationPolicy

#: As `MirrorUtils.createSinglePartitionCompactedTopic`.
_CONFIGS = {"cleanup.policy": "compact"}
#: Synchronized clocks of machines differ by less.
_CLOCK_TOLERANCE_SECONDS = 5.0
_SHORTEST_MAX_AGE_SECONDS = 60.0
_DAY = 86_400.0


class HeartbeatState(StrEnum):
    """State of an upstream cluster by its latest heartbeat."""

    FRESH = "fresh"
    #: The latest one is older than allowed.
    STALE = "stale"
    #: None has arrived.
    MISSING = "missing"
    #: The latest one is from the future: the clocks differ, so its age is meaningless.
    CLOCK_AHEAD = "clock-ahead"


@dataclass(frozen=True, slots=True)
class HeartbeatTail:
    """The heartbeats at the end of a heartbeats topic on the target."""

    topic: str
    #: The latest heartbeat by its own time; None if there is none.
    newest: Heartbeat | None = None
    #: Pairs that wrote the heartbeats that were read, in order.
    emitters: tuple[FlowId, ...] = ()
    #: When the latest one arrived, in epoch milliseconds, if known.
    arrived_ms: int | None = None
    #: Records that are not heartbeats, such as tombstones.
    unreadable: int = 0
    #: Heartbeats of more pairs than are kept.
    beyond: int = 0


@dataclass(frozen=True, slots=True)
class UpstreamHeartbeat:
    """An upstream cluster according to its heartbeats on the target."""

    cluster: str
    #: Copies between the cluster and the target (`MirrorClient.replicationHops`); None if no heartbeat arrived.
    hops: int | None
    state: HeartbeatState
    #: The topic on the target with the latest heartbeat; None without any.
    topic: str | None = None
    #: When the latest one was written, by its writer's clock, in epoch milliseconds.
    newest_ms: int | None = None
    #: Its age by this machine's clock; negative if the clocks differ.
    age_seconds: float | None = None
    #: From writing it to the end of the run that copied it; None unless the ledger has that run.
    latency_seconds: float | None = None
    #: The pairs that wrote the heartbeats, `X->A`.
    emitters: tuple[str, ...] = ()
    #: Description of the problem; "" without one.
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and XCom."""
        return {
            "cluster": self.cluster,
            "hops": self.hops,
            "state": self.state.value,
            "topic": self.topic,
            "newest_ms": self.newest_ms,
            "age_seconds": self.age_seconds,
            "latency_seconds": self.latency_seconds,
            "emitters": list(self.emitters),
            "problem": self.problem,
        }


def emitting_flows(config: MirrorConfig, flow: FlowId | None = None) -> tuple[FlowConfig, ...]:
    """The pairs of a file that write heartbeats, each into its own target.

    As in MM2, pairs that replicate nothing are included (`MirrorMakerConfig.clusterPairs`, `MirrorHeartbeatConnector`).

    Args:
        flow: return only its reverse pair, which writes into the flow's source, and then the flow itself.
    """
    return _emitting((*config.flows, *config.unnamed) if flow is None else map(config.find, (flow.opposite, flow)))


def emitting_kinds(config: MirrorConfig) -> tuple[FlowConfig, ...]:
    """As `emitting_flows`, with only one of the pairs that no line names: these differ by their clusters alone."""
    return _emitting((*config.flows, config.unnamed.any()))


def _emitting(pairs: Iterable[FlowConfig | None]) -> tuple[FlowConfig, ...]:
    return tuple(pair for pair in pairs if pair is not None and pair.emit_heartbeats_enabled)


def heartbeats_topic(pair: FlowConfig, policy: ReplicationPolicy) -> TopicSpec:
    """The topic on a pair's target for its heartbeats, as `MirrorHeartbeatConnector` creates it."""
    return TopicSpec(policy.heartbeats_topic(), 1, pair.heartbeats_topic_replication_factor, _CONFIGS)


def heartbeat_topics(policy: ReplicationPolicy, topics: Iterable[str]) -> tuple[str, ...]:
    """The heartbeats topics among all topics of a cluster (`MirrorClient.heartbeatTopics`)."""
    return tuple(topic for topic in topics if policy.is_heartbeats_topic(topic))


def mistaken_heartbeats(
    topology: FlowTopology, sources: Mapping[str, TopicDescription], configs: Mapping[str, TopicConfigs]
) -> Iterator[str]:
    """A sentence for each topic that is copied only because of its name and is not configured as a heartbeats topic.

    Args:
        sources: selected topics of the source.
        configs: of source topics that the target lacks.
    """
    policy = topology.policy
    for name in heartbeat_topics(policy, sources):
        known = configs.get(name)
        if known is None or name == policy.heartbeats_topic() or topology.topic_filter.should_replicate_topic(name):
            continue
        if len(sources[name].partitions) != 1 or known.value("cleanup.policy") not in (None, "compact"):
            yield (
                f"{name} is copied although `topics` does not match it: by its name it contains heartbeats of "
                f"cluster {policy.topic_source(name)} (MirrorMaker 2 does the same), but it may be an application "
                "topic. With heartbeats.replication.enabled=false only topics that match `topics` are copied"
            )


def upstream_clusters(policy: ReplicationPolicy, topics: Iterable[str]) -> frozenset[str]:
    """All clusters whose heartbeats reached this one (`MirrorClient.upstreamClusters`)."""
    return frozenset(alias for topic in heartbeat_topics(policy, topics) for alias in ancestry(policy, topic))


def replication_hops(policy: ReplicationPolicy, topics: Iterable[str], cluster: str) -> int | None:
    """Copies on the shortest path from a cluster (`MirrorClient.replicationHops`); None where Java returns -1."""
    found = (hops(policy, topic, cluster) for topic in heartbeat_topics(policy, topics))
    return min((count for count in found if count is not None), default=None)


def topics_to_read(topology: FlowTopology, target_topics: Iterable[str]) -> tuple[str, ...]:
    """The heartbeats topics on the target that this flow writes."""
    return tuple(
        topic
        for topic in heartbeat_topics(topology.policy, target_topics)
        if ancestry(topology.policy, topic)[:1] == (topology.source_alias,)
    )


def check_upstreams(
    topology: FlowTopology,
    tails: Sequence[HeartbeatTail],
    *,
    now_ms: int,
    max_age_seconds: float,
    written_ms: int | None = None,
) -> tuple[UpstreamHeartbeat, ...]:
    """The state of each upstream cluster by the heartbeats that a flow copied, nearest first.

    Always includes the flow's source. A cluster is judged by heartbeats that were written to it; if only heartbeats
    that passed through it have arrived, by those.

    Args:
        tails: of the topics that `topics_to_read` returns.
        max_age_seconds: older heartbeats are stale.
        written_ms: when a heartbeat was last written to the flow's source before the flow ran: this one or a later one
            must have arrived.
    """
    policy = topology.policy
    own = policy.format_remote_topic(topology.source_alias, policy.heartbeats_topic())
    # A topic of an application may have the name of a heartbeats topic: it is ignored.
    tails = [tail for tail in tails if tail.newest is not None or not tail.unreadable or tail.topic == own]
    names = [tail.topic for tail in tails]
    clusters = upstream_clusters(policy, names) | {topology.source_alias}
    judged = (
        _judge(
            cluster, replication_hops(policy, names, cluster), _tail_of(policy, tails, cluster), now_ms, max_age_seconds
        )
        for cluster in clusters
    )
    found = sorted(judged, key=lambda upstream: (upstream.hops or 0, upstream.cluster))
    return tuple(
        _overdue(upstream, written_ms) if upstream.cluster == topology.source_alias else upstream for upstream in found
    )


def default_max_age_seconds(schedule: str | None, emitted_every: float = 0.0) -> float:
    """Maximum age of a heartbeat: one minute, plus twice the longest interval of the flow's schedule.

    Args:
        emitted_every: `emit.heartbeats.interval.seconds`; takes the place of the minute if it is longer.
        schedule: `mirror.schedule`; without one, manual runs are assumed to happen once a day.
    """
    # Runs of `@continuous` follow each other without a clock.
    unknown = 0.0 if schedule == "@continuous" else _DAY
    interval = longest_interval_seconds(schedule)
    return max(_SHORTEST_MAX_AGE_SECONDS, emitted_every) + 2 * (unknown if interval is None else interval)


def newest_of(topic: str, heartbeats: Iterable[Heartbeat], *, unreadable: int = 0) -> HeartbeatTail:
    """Summarize the heartbeats of one topic."""
    newest: Heartbeat | None = None
    emitters: dict[FlowId, None] = {}
    for heartbeat in heartbeats:
        emitters[FlowId(heartbeat.source, heartbeat.target)] = None
        if newest is None or heartbeat.timestamp > newest.timestamp:
            newest = heartbeat
    return HeartbeatTail(topic, newest, tuple(sorted(emitters)), unreadable=unreadable)


def describe(upstream: UpstreamHeartbeat) -> str:
    """One line about an upstream cluster."""
    way = "route unknown" if upstream.hops is None else f"{upstream.hops} hop{'s' * (upstream.hops != 1)}"
    parts = [f"{upstream.cluster}: {upstream.state.value}", way]
    if upstream.age_seconds is not None:
        parts.append(f"age {upstream.age_seconds:.1f} s")
    if upstream.latency_seconds is not None:
        parts.append(f"latency {upstream.latency_seconds:.1f} s")
    return ", ".join(parts) + (f": {upstream.problem}" if upstream.problem else "")


def _tail_of(policy: ReplicationPolicy, tails: Sequence[HeartbeatTail], cluster: str) -> HeartbeatTail | None:
    """The tail with the latest heartbeat for a cluster."""
    over = {tail.topic: tail for tail in tails if cluster in ancestry(policy, tail.topic)}
    born: Mapping[str, HeartbeatTail] = {
        topic: tail for topic, tail in over.items() if ancestry(policy, topic)[-1] == cluster
    }
    best: HeartbeatTail | None = None
    for tail in (born if any(tail.newest for tail in born.values()) else over).values():
        if tail.newest and (best is None or best.newest is None or tail.newest.timestamp > best.newest.timestamp):
            best = tail
    return best


def _judge(
    cluster: str, count: int | None, tail: HeartbeatTail | None, now_ms: int, max_age_seconds: float
) -> UpstreamHeartbeat:
    if tail is None or tail.newest is None:
        what = "none of its heartbeats topics was copied" if count is None else "its heartbeats topics are empty"
        return UpstreamHeartbeat(cluster, count, HeartbeatState.MISSING, problem=f"{what}.")
    newest = tail.newest.timestamp
    age = (now_ms - newest) / 1000
    state, problem = HeartbeatState.FRESH, ""
    if age > max_age_seconds:
        state = HeartbeatState.STALE
        problem = f"its latest heartbeat is {age:.0f} s old; the maximum age is {max_age_seconds:.0f} s."
    elif age < -_CLOCK_TOLERANCE_SECONDS:
        state = HeartbeatState.CLOCK_AHEAD
        problem = (
            f"its latest heartbeat is {-age:.0f} s in the future: the clocks of its emitter and of this machine differ."
        )
    return UpstreamHeartbeat(
        cluster=cluster,
        hops=count,
        state=state,
        topic=tail.topic,
        newest_ms=newest,
        age_seconds=age,
        latency_seconds=None if tail.arrived_ms is None else (tail.arrived_ms - newest) / 1000,
        emitters=tuple(map(str, tail.emitters)),
        problem=problem,
    )


def _overdue(upstream: UpstreamHeartbeat, written_ms: int | None) -> UpstreamHeartbeat:
    if written_ms is None or upstream.newest_ms is None or upstream.newest_ms >= written_ms:
        return upstream
    missing = (written_ms - upstream.newest_ms) / 1000
    return replace(
        upstream,
        state=HeartbeatState.STALE,
        problem=f"the heartbeat that was emitted before the copy has not arrived; the latest is {missing:.0f} s older.",
    )
