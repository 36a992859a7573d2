"""Heartbeats without clusters: who writes them, and what those that arrived say, after `MirrorClientTest`."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.admin.model import (
    ConfigEntry,
    ConfigOrigin,
    PartitionDescription,
    TopicConfigs,
    TopicDescription,
    TopicSpec,
)
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.topology import flow_topology, replication_policy
from mirror_lib.sync.heartbeats.rules import (
    HeartbeatState,
    HeartbeatTail,
    UpstreamHeartbeat,
    check_upstreams,
    default_max_age_seconds,
    describe,
    emitting_flows,
    heartbeat_topics,
    heartbeats_topic,
    mistaken_heartbeats,
    newest_of,
    replication_hops,
    topics_to_read,
    upstream_clusters,
)
from mirror_lib.topology.flow_topology import FlowTopology
from mirror_lib.topology.names import FlowId
from mirror_lib.topology.policy import DefaultReplicationPolicy, IdentityReplicationPolicy

POLICY = DefaultReplicationPolicy({})
NOW = 1_704_067_200_000


def config(tmp_path: Path, *lines: str) -> MirrorConfig:
    path = tmp_path / "mirror.properties"
    servers = [f"{alias}.bootstrap.servers = {alias.lower()}:9092" for alias in "ABC"]
    path.write_text("\n".join(["clusters = A, B, C", *servers, "A->B.enabled = true", *lines]) + "\n")
    return load(path)


def topology(tmp_path: Path, *lines: str) -> FlowTopology:
    return flow_topology(config(tmp_path, *lines).flow("A->B"))


def tail(topic: str, age_seconds: float, *, arrived_after: float | None = None) -> HeartbeatTail:
    """A topic whose newest heartbeat is so old; pairs that wrote it do not matter here."""
    written = NOW - round(age_seconds * 1000)
    arrived = None if arrived_after is None else written + round(arrived_after * 1000)
    return HeartbeatTail(topic, Heartbeat("X", "A", written), (FlowId("X", "A"),), arrived)


def check(flow: FlowTopology, *tails: HeartbeatTail, written_ms: int | None = None) -> tuple[UpstreamHeartbeat, ...]:
    return check_upstreams(flow, tails, now_ms=NOW, max_age_seconds=60, written_ms=written_ms)


def test_every_pair_of_clusters_writes_heartbeats_enabled_or_not_unless_it_is_switched_off(tmp_path: Path) -> None:
    flow = FlowId("A", "B")

    every = {str(pair.flow) for pair in emitting_flows(config(tmp_path))}
    assert every == {"A->B", "B->A", "A->C", "C->A", "B->C", "C->B"}
    # The flow is watched by what its reverse pair writes into its source.
    pairs = emitting_flows(config(tmp_path), flow)
    assert [(str(pair.flow), pair.flow.target) for pair in pairs] == [("B->A", "A"), ("A->B", "B")]
    one_off = emitting_flows(config(tmp_path, "B->A.emit.heartbeats.enabled = false"), flow)
    assert [str(pair.flow) for pair in one_off] == ["A->B"]
    assert emitting_flows(config(tmp_path, "emit.heartbeats.enabled = false")) == ()


def test_the_topic_is_created_as_mm2_creates_it(tmp_path: Path) -> None:
    settings = ("replication.policy.separator = _", "heartbeats.topic.replication.factor = 2")
    flow = config(tmp_path, *settings).flow("A->B")

    spec = heartbeats_topic(flow, replication_policy(flow))

    assert spec == TopicSpec("heartbeats", 1, 2, {"cleanup.policy": "compact"})


def test_upstream_clusters_and_hops_come_from_the_names_of_heartbeats_topics() -> None:
    # The clusters of MirrorClientTest.replicationHopsTest, heartbeatTopicsTest and upstreamClustersTest.
    topics = ["topic1", "heartbeats", "source1.heartbeats", "source2.source1.heartbeats", "source3.heartbeats", "x.y"]

    assert heartbeat_topics(POLICY, topics) == tuple(topics[1:5])
    assert upstream_clusters(POLICY, topics) == {"source1", "source2", "source3"}
    assert replication_hops(POLICY, topics, "source1") == 1
    assert replication_hops(POLICY, topics, "source2") == 1
    assert replication_hops(POLICY, topics, "source4") is None
    assert replication_hops(POLICY, ["source2.source1.heartbeats"], "source1") == 2


def test_with_the_identity_policy_heartbeats_still_carry_their_way() -> None:
    policy = IdentityReplicationPolicy({"source.cluster.alias": "source1"})

    assert heartbeat_topics(policy, ["orders", "source1.heartbeats"]) == ("source1.heartbeats",)
    assert upstream_clusters(policy, ["orders", "source2.source1.heartbeats"]) == {"source1", "source2"}


@given(st.lists(st.sampled_from(["A", "B", "C", "D"]), unique=True, min_size=1))
def test_every_cluster_on_the_way_is_upstream_by_as_many_hops_as_copies_were_made(way: list[str]) -> None:
    topic = "heartbeats"
    for alias in way:
        topic = POLICY.format_remote_topic(alias, topic)

    assert upstream_clusters(POLICY, [topic]) == set(way)
    assert [replication_hops(POLICY, [topic], alias) for alias in reversed(way)] == list(range(1, len(way) + 1))


def test_a_flow_reads_the_topics_that_it_writes_and_no_others(tmp_path: Path) -> None:
    on_target = ["heartbeats", "A.heartbeats", "A.C.heartbeats", "C.heartbeats", "A.orders", "A.checkpoints.internal"]

    assert topics_to_read(topology(tmp_path), on_target) == ("A.heartbeats", "A.C.heartbeats")


def test_a_heartbeat_within_the_allowed_age_is_fresh(tmp_path: Path) -> None:
    (source,) = check(topology(tmp_path), tail("A.heartbeats", 60, arrived_after=7.5))

    assert (source.cluster, source.hops, source.state) == ("A", 1, HeartbeatState.FRESH)
    assert (source.topic, source.age_seconds, source.latency_seconds) == ("A.heartbeats", 60.0, 7.5)
    assert (source.emitters, source.problem) == (("X->A",), "")
    assert describe(source) == "A: fresh, 1 hop, age 60.0 s, latency 7.5 s"


def test_one_that_is_older_from_the_future_or_missing_says_so(tmp_path: Path) -> None:
    flow = topology(tmp_path)
    (old,) = check(flow, tail("A.heartbeats", 60.001))
    (nearly,) = check(flow, tail("A.heartbeats", -5))
    (ahead,) = check(flow, tail("A.heartbeats", -90))
    (none,) = check(flow)
    (empty,) = check(flow, HeartbeatTail("A.heartbeats"))
    # Its own topic counts whatever it holds.
    (unreadable,) = check(flow, HeartbeatTail("A.heartbeats", unreadable=3))

    assert old.state is HeartbeatState.STALE
    assert old.problem == "its latest heartbeat is 60 s old; the maximum age is 60 s."
    assert nearly.state is HeartbeatState.FRESH
    assert (ahead.state, ahead.age_seconds) == (HeartbeatState.CLOCK_AHEAD, -90.0)
    assert "90 s in the future" in ahead.problem
    assert (none.state, none.hops) == (HeartbeatState.MISSING, None)
    assert none.problem == "none of its heartbeats topics was copied."
    assert describe(none).startswith("A: missing, route unknown: ")
    assert (empty.state, empty.hops, empty.problem) == (HeartbeatState.MISSING, 1, "its heartbeats topics are empty.")
    assert unreadable.state is HeartbeatState.MISSING


def test_each_cluster_upstream_is_judged_by_the_newest_heartbeat_that_came_over_it(tmp_path: Path) -> None:
    fresh, stale = HeartbeatState.FRESH, HeartbeatState.STALE
    over_c, empty = tail("A.C.heartbeats", 3), HeartbeatTail("A.heartbeats")
    two_ways = (tail("A.D.C.heartbeats", 1), tail("A.C.heartbeats", 9), tail("A.heartbeats", 1))
    # An application's topic that is called like heartbeats says nothing about a cluster.
    sensors = HeartbeatTail("A.sensors.heartbeats", unreadable=100)

    for tails, expected in (
        ((tail("A.C.heartbeats", 300), tail("A.heartbeats", 2)), [("A", 1, fresh, 2.0), ("C", 2, stale, 300.0)]),
        # The source has no heartbeats of its own.
        ((empty, over_c), [("A", 1, fresh, 3.0), ("C", 2, fresh, 3.0)]),
        # Of two ways, the shorter counts as hops.
        (two_ways, [("A", 1, fresh, 1.0), ("C", 2, fresh, 1.0), ("D", 2, fresh, 1.0)]),
        ((tail("A.heartbeats", 1), sensors), [("A", 1, fresh, 1.0)]),
    ):
        found = check(topology(tmp_path), *tails)
        assert [(each.cluster, each.hops, each.state, each.age_seconds) for each in found] == expected

    assert {each.topic for each in check(topology(tmp_path), empty, over_c)} == {"A.C.heartbeats"}


def test_a_heartbeat_written_before_the_copy_must_have_arrived(tmp_path: Path) -> None:
    arrived = tail("A.heartbeats", 10)

    (same,) = check(topology(tmp_path), arrived, written_ms=NOW - 10_000)
    (older,) = check(topology(tmp_path), arrived, written_ms=NOW - 2_000)

    assert same.state is HeartbeatState.FRESH
    assert older.state is HeartbeatState.STALE
    assert "has not arrived; the latest is 8 s older" in older.problem


def test_the_newest_heartbeat_counts_whatever_the_order_and_all_writers_are_named() -> None:
    late, early = Heartbeat("C", "A", 20), Heartbeat("B", "A", 10)

    summed = newest_of("A.heartbeats", [late, early, early], unreadable=2)

    assert summed == HeartbeatTail("A.heartbeats", late, (FlowId("B", "A"), FlowId("C", "A")), unreadable=2)
    assert newest_of("A.heartbeats", []) == HeartbeatTail("A.heartbeats")


def test_the_allowed_age_follows_the_schedule() -> None:
    ages: dict[str | None, float] = {
        "30s": 60 + 2 * 30,
        "5m": 60 + 2 * 300,
        "@hourly": 60 + 2 * 3600,
        "@continuous": 60,
        "*/5 * * * *": 60 + 2 * 300,
        "0 3 * * *": 60 + 2 * 86_400,
        "0 3 * * 1-5": 60 + 2 * 3 * 86_400,
        "0 3 1 * *": 60 + 2 * 31 * 86_400,
        "@once": 60 + 2 * 86_400,
        None: 60 + 2 * 86_400,
    }
    for schedule, seconds in ages.items():
        assert default_max_age_seconds(schedule) == seconds, schedule
        # Rarer heartbeats may be older.
        assert default_max_age_seconds(schedule, 3600) == seconds - 60 + 3600, schedule


def test_a_topic_that_is_copied_for_its_name_alone_and_does_not_look_like_heartbeats_is_told(tmp_path: Path) -> None:
    for partitions, policy, lines, is_told in (
        (1, "compact", (), False),
        (3, "compact", (), True),
        (1, "delete", (), True),
        (3, "delete", ("A->B.topics = sensors.*",), False),
    ):
        flow = topology(tmp_path, "A->B.topics = orders", *lines)
        of_topic = tuple(PartitionDescription(number, 1, "localhost", (1,), (1,)) for number in range(partitions))
        sources = {"sensors.heartbeats": TopicDescription("sensors.heartbeats", "id", of_topic)}
        entry = ConfigEntry("cleanup.policy", policy, ConfigOrigin.TOPIC)
        configs = {"sensors.heartbeats": TopicConfigs("sensors.heartbeats", {"cleanup.policy": entry})}

        told = list(mistaken_heartbeats(flow, sources, configs))

        assert bool(told) is is_told, (partitions, policy)
        assert all("heartbeats.replication.enabled=false" in each for each in told)
