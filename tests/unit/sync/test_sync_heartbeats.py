"""Heartbeats without clusters: who writes them, and what those that arrived say, after `MirrorClientTest`."""

from __future__ import annotations

from pathlib import Path

import pytest
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


def test_by_default_every_pair_of_clusters_writes_heartbeats_enabled_or_not(tmp_path: Path) -> None:
    pairs = {str(pair.flow) for pair in emitting_flows(config(tmp_path))}

    assert pairs == {"A->B", "B->A", "A->C", "C->A", "B->C", "C->B"}


def test_a_flow_is_watched_by_what_its_reverse_pair_writes_into_its_source(tmp_path: Path) -> None:
    pairs = emitting_flows(config(tmp_path), FlowId("A", "B"))

    assert [(str(pair.flow), pair.flow.target) for pair in pairs] == [("B->A", "A"), ("A->B", "B")]


def test_pairs_that_do_not_emit_are_left_out(tmp_path: Path) -> None:
    one_off = config(tmp_path, "B->A.emit.heartbeats.enabled = false")
    assert [str(pair.flow) for pair in emitting_flows(one_off, FlowId("A", "B"))] == ["A->B"]

    all_off = config(tmp_path, "emit.heartbeats.enabled = false")
    assert emitting_flows(all_off) == ()


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


def test_an_older_one_is_stale(tmp_path: Path) -> None:
    (source,) = check(topology(tmp_path), tail("A.heartbeats", 60.001))

    assert source.state is HeartbeatState.STALE
    assert source.problem == "its latest heartbeat is 60 s old; the maximum age is 60 s."


def test_one_from_the_future_says_that_clocks_differ(tmp_path: Path) -> None:
    (nearly,) = check(topology(tmp_path), tail("A.heartbeats", -5))
    (ahead,) = check(topology(tmp_path), tail("A.heartbeats", -90))

    assert nearly.state is HeartbeatState.FRESH
    assert (ahead.state, ahead.age_seconds) == (HeartbeatState.CLOCK_AHEAD, -90.0)
    assert "90 s in the future" in ahead.problem


def test_a_source_without_heartbeats_is_missing_and_it_is_said_why(tmp_path: Path) -> None:
    (none,) = check(topology(tmp_path))
    (empty,) = check(topology(tmp_path), HeartbeatTail("A.heartbeats"))

    assert (none.state, none.hops, none.problem) == (
        HeartbeatState.MISSING,
        None,
        "none of its heartbeats topics was copied.",
    )
    assert (empty.state, empty.hops, empty.problem) == (HeartbeatState.MISSING, 1, "its heartbeats topics are empty.")
    assert describe(none).startswith("A: missing, route unknown: ")


def test_clusters_behind_the_source_are_judged_by_their_own_heartbeats(tmp_path: Path) -> None:
    found = check(topology(tmp_path), tail("A.C.heartbeats", 300), tail("A.heartbeats", 2))

    assert [(each.cluster, each.hops, each.state) for each in found] == [
        ("A", 1, HeartbeatState.FRESH),
        ("C", 2, HeartbeatState.STALE),
    ]


def test_a_cluster_without_heartbeats_of_its_own_is_judged_by_those_that_came_over_it(tmp_path: Path) -> None:
    found = check(topology(tmp_path), HeartbeatTail("A.heartbeats"), tail("A.C.heartbeats", 3))

    assert [(each.cluster, each.topic, each.state) for each in found] == [
        ("A", "A.C.heartbeats", HeartbeatState.FRESH),
        ("C", "A.C.heartbeats", HeartbeatState.FRESH),
    ]


def test_of_two_ways_the_shorter_counts_as_hops_and_the_newest_heartbeat_as_age(tmp_path: Path) -> None:
    found = check(topology(tmp_path), tail("A.D.C.heartbeats", 1), tail("A.C.heartbeats", 9), tail("A.heartbeats", 1))

    ways = {each.cluster: (each.hops, each.age_seconds) for each in found}
    assert ways == {"A": (1, 1.0), "C": (2, 1.0), "D": (2, 1.0)}


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


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        ("30s", 60 + 2 * 30),
        ("5m", 60 + 2 * 300),
        ("@hourly", 60 + 2 * 3600),
        ("@continuous", 60),
        ("*/5 * * * *", 60 + 2 * 300),
        ("0 3 * * *", 60 + 2 * 86_400),
        ("0 3 * * 1-5", 60 + 2 * 3 * 86_400),
        ("0 3 1 * *", 60 + 2 * 31 * 86_400),
        ("@once", 60 + 2 * 86_400),
        (None, 60 + 2 * 86_400),
    ],
)
def test_the_allowed_age_follows_the_schedule(schedule: str | None, seconds: float) -> None:
    assert default_max_age_seconds(schedule) == seconds
    # Rarer heartbeats may be older.
    assert default_max_age_seconds(schedule, 3600) == seconds - 60 + 3600


def test_an_upstream_cluster_is_plain_data_for_programs(tmp_path: Path) -> None:
    (source,) = check(topology(tmp_path), tail("A.heartbeats", 1))

    assert source.to_dict() == {
        "cluster": "A",
        "hops": 1,
        "state": "fresh",
        "topic": "A.heartbeats",
        "newest_ms": NOW - 1000,
        "age_seconds": 1.0,
        "latency_seconds": None,
        "emitters": ["X->A"],
        "problem": "",
    }


def test_a_topic_of_an_application_that_is_called_like_heartbeats_says_nothing_about_a_cluster(tmp_path: Path) -> None:
    flow = topology(tmp_path)
    sensors = HeartbeatTail("A.sensors.heartbeats", unreadable=100)

    found = check(flow, tail("A.heartbeats", 1), sensors)

    assert [(upstream.cluster, upstream.state) for upstream in found] == [("A", HeartbeatState.FRESH)]


def test_the_flows_own_heartbeats_topic_counts_whatever_it_holds(tmp_path: Path) -> None:
    (own,) = check(topology(tmp_path), HeartbeatTail("A.heartbeats", unreadable=3))

    assert own.state is HeartbeatState.MISSING


@pytest.mark.parametrize(
    ("partitions", "policy", "lines", "is_told"),
    [
        (1, "compact", (), False),
        (3, "compact", (), True),
        (1, "delete", (), True),
        (3, "delete", ("A->B.topics = sensors.*",), False),
    ],
)
def test_a_topic_that_is_copied_for_its_name_alone_and_does_not_look_like_heartbeats_is_told(
    tmp_path: Path, partitions: int, policy: str, lines: tuple[str, ...], *, is_told: bool
) -> None:
    flow = topology(tmp_path, "A->B.topics = orders", *lines)
    of_topic = tuple(PartitionDescription(number, 1, "localhost", (1,), (1,)) for number in range(partitions))
    sources = {"sensors.heartbeats": TopicDescription("sensors.heartbeats", "id", of_topic)}
    entry = ConfigEntry("cleanup.policy", policy, ConfigOrigin.TOPIC)
    configs = {"sensors.heartbeats": TopicConfigs("sensors.heartbeats", {"cleanup.policy": entry})}

    told = list(mistaken_heartbeats(flow, sources, configs))

    assert bool(told) is is_told
    assert all("heartbeats.replication.enabled=false" in each for each in told)
