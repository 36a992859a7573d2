"""Heartbeats over real clusters: written as MM2 writes them, carried along A->B->C, judged where they arrive."""

from __future__ import annotations

import json
import time
from pathlib import Path

from confluent_kafka.admin import ConfigResource, ResourceType
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.config.loader import load
from mirror_lib.config.model import MirrorConfig
from mirror_lib.config.topology import replication_policy
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.errors import (
    BrokerUnreachableError,
    RecordTooLargeError,
    SourceClusterChangedError,
    TargetClusterChangedError,
)
from mirror_lib.ledger.location import open_ledger
from mirror_lib.sync.heartbeats.flow import HeartbeatEmitter, check_flow_heartbeats, emit_heartbeats
from mirror_lib.sync.heartbeats.rules import HeartbeatState, emitting_flows, replication_hops, upstream_clusters
from mirror_lib.topology.names import FlowId
from tests.support.clusters import Chain
from tests.support.flows import Flow
from tests.support.kafka import Record, admin, consume, create_topic, delete_topic, produce, set_config

A_TO_B, B_TO_C = FlowId("A", "B"), FlowId("B", "C")


def write_config(folder: Path, chain: Chain, *lines: str) -> Path:
    path = folder / "mirror.properties"
    text = f"""\
clusters = A, B, C
A.bootstrap.servers = {chain.first.bootstrap_servers}
B.bootstrap.servers = {chain.second.bootstrap_servers}
C.bootstrap.servers = {chain.third.bootstrap_servers}
A->B.enabled = true
B->C.enabled = true
topics = orders
replication.factor = 1
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
mirror.retry.max.seconds = 20
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""
    path.write_text(text + "".join(f"{line}\n" for line in lines))
    return path


def run(config: MirrorConfig, flow: str) -> None:
    """One run of a flow as a DAG makes it: heartbeats, topics, copy."""
    settings = config.flow(flow)
    with open_ledger(config) as ledger:
        assert Flow(settings, ledger, Path(config.path)).run().errors == ()


def heartbeats_in(cluster: KafkaCluster, topic: str) -> list[Heartbeat]:
    return [Heartbeat.decode(record.key, record.value) for record in consume(cluster, topic)]


def topics_of(cluster: KafkaCluster) -> set[str]:
    return {name for name in admin(cluster).list_topics(timeout=10).topics if not name.startswith("__")}


def test_a_heartbeat_is_written_into_the_target_of_its_pair_with_the_bytes_of_mm2(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain))

    emitted = emit_heartbeats(emitting_flows(config, A_TO_B))

    assert [(str(each.pair), each.cluster, each.error) for each in emitted] == [
        ("B->A", "A", None),
        ("A->B", "B", None),
    ]
    (record,) = consume(chain.first, "heartbeats")
    assert record.key == b"\x00\x01B\x00\x01A"
    assert record.value == b"\x00\x00" + emitted[0].timestamp_ms.to_bytes(8, "big")
    assert (record.partition, record.headers, record.timestamp_ms) == (0, (), emitted[0].timestamp_ms)


def test_nothing_is_created_on_another_cluster_than_the_ledger_knows(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain))
    before = topics_of(chain.first), topics_of(chain.second)

    with open_ledger(config) as ledger:
        # A was another cluster when the flow began; the pair B->A has no rows of its own.
        ledger.cluster_pairs.keep("A->B", "formerly-A", "formerly-B")
        emitted = emit_heartbeats(emitting_flows(config, A_TO_B), ledger)

    assert [type(each.error) for each in emitted] == [SourceClusterChangedError, TargetClusterChangedError]
    assert (topics_of(chain.first), topics_of(chain.second)) == before
    refused = CliRunner().invoke(app, ["heartbeat", "emit", "--config", config.path, "--flow", "A->B", "--json"])
    reasons = [each["error"]["reason"] for each in json.loads(refused.stdout)["emitted"]]
    assert reasons == ["source-cluster-changed", "target-cluster-changed"]
    assert (topics_of(chain.first), topics_of(chain.second)) == before


def test_the_topic_is_made_once_compacted_and_with_one_partition(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain))

    with HeartbeatEmitter(emitting_flows(config, A_TO_B)) as emitter:
        for _ in range(3):
            assert all(each.error is None for each in emitter.emit())

    assert [beat.source for beat in heartbeats_in(chain.first, "heartbeats")] == ["B", "B", "B"]
    client = admin(chain.first)
    described = client.list_topics("heartbeats", timeout=10).topics["heartbeats"]
    assert len(described.partitions) == 1
    resource = ConfigResource(ResourceType.TOPIC, "heartbeats")
    configs = client.describe_configs([resource])[resource].result(10)
    assert configs["cleanup.policy"].value == "compact"


def test_heartbeats_travel_over_two_hops_and_say_how_far_each_cluster_is(chain: Chain, tmp_path: Path) -> None:
    create_topic(chain.first, "orders")
    config = load(write_config(tmp_path, chain))
    emit_heartbeats(emitting_flows(config, A_TO_B))
    run(config, "A->B")
    emit_heartbeats(emitting_flows(config, B_TO_C))
    run(config, "B->C")

    # The third cluster's topics, by MirrorClient's rules.
    policy = replication_policy(config.flow("B->C"))
    names = topics_of(chain.third)
    assert {"heartbeats", "B.heartbeats", "B.A.heartbeats", "B.A.orders"} - {"B.A.orders"} <= names
    assert upstream_clusters(policy, names) == {"A", "B"}
    assert (replication_hops(policy, names, "B"), replication_hops(policy, names, "A")) == (1, 2)
    assert heartbeats_in(chain.third, "B.A.heartbeats") == heartbeats_in(chain.first, "heartbeats")

    with open_ledger(config) as ledger:
        checked = check_flow_heartbeats(config.flow("B->C"), ledger=ledger, max_age_seconds=600)
    assert [(each.cluster, each.hops, each.state) for each in checked.upstreams] == [
        ("B", 1, HeartbeatState.FRESH),
        ("A", 2, HeartbeatState.FRESH),
    ]
    near, far = checked.upstreams
    assert (near.topic, far.topic) == ("B.heartbeats", "B.A.heartbeats")
    # A heartbeat takes as long as it waits for the run that carries it; over the far way it waits for two.
    assert near.latency_seconds is not None
    assert far.latency_seconds is not None
    assert 0 <= near.latency_seconds < far.latency_seconds
    assert checked.exit_code == 0


def test_heartbeats_do_not_run_in_a_circle(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain, "B->A.enabled = true"))
    emit_heartbeats(emitting_flows(config, A_TO_B))

    for flow in ("A->B", "B->A", "A->B", "B->A"):
        run(config, flow)

    assert topics_of(chain.first) >= {"heartbeats", "B.heartbeats"}
    assert topics_of(chain.second) >= {"heartbeats", "A.heartbeats"}
    assert not {"B.A.heartbeats", "A.B.heartbeats"} & (topics_of(chain.first) | topics_of(chain.second))


def test_without_heartbeats_replication_nothing_arrives_and_the_check_says_so(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain, "heartbeats.replication.enabled = false"))
    emit_heartbeats(emitting_flows(config, A_TO_B))
    run(config, "A->B")

    checked = check_flow_heartbeats(config.flow("A->B"))

    assert [(each.cluster, each.state) for each in checked.upstreams] == [("A", HeartbeatState.MISSING)]
    assert checked.exit_code == 1


def test_a_heartbeat_that_was_not_carried_makes_the_flow_stale_however_young_the_last_one_is(
    chain: Chain, tmp_path: Path
) -> None:
    config = load(write_config(tmp_path, chain))
    first = emit_heartbeats(emitting_flows(config, A_TO_B))[0]
    run(config, "A->B")
    assert not check_flow_heartbeats(config.flow("A->B"), written_ms=first.timestamp_ms).source_is_cut_off

    second = emit_heartbeats(emitting_flows(config, A_TO_B))[0]

    checked = check_flow_heartbeats(config.flow("A->B"), written_ms=second.timestamp_ms)
    assert checked.source_is_cut_off
    assert "has not arrived" in checked.source.problem


def test_garbage_and_tombstones_among_heartbeats_are_told_and_passed_over(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain))
    create_topic(chain.second, "A.heartbeats")
    beat = Heartbeat("B", "A", time.time_ns() // 1_000_000)
    produce(
        chain.second,
        "A.heartbeats",
        [Record(key=beat.key(), value=beat.value()), Record(key=beat.key()), Record(value=b"?")],
    )

    checked = check_flow_heartbeats(config.flow("A->B"), max_age_seconds=600)

    assert (checked.source.state, checked.source.newest_ms) == (HeartbeatState.FRESH, beat.timestamp)
    assert checked.unreadable == ("A.heartbeats",)


def test_a_heartbeat_far_from_the_end_of_a_long_topic_is_found(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain))
    create_topic(chain.second, "A.heartbeats")
    beat = Heartbeat("B", "A", 1_704_067_200_000)
    noise = [Record(key=b"?", value=b"?")] * 1_500
    produce(chain.second, "A.heartbeats", [Record(key=beat.key(), value=beat.value()), *noise])

    checked = check_flow_heartbeats(config.flow("A->B"))

    assert (checked.source.state, checked.source.newest_ms) == (HeartbeatState.STALE, beat.timestamp)


def test_a_pair_that_cannot_write_stops_no_other(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain, "C.bootstrap.servers = 127.0.0.1:1"))
    create_topic(chain.first, "heartbeats")
    set_config(chain.first, "heartbeats", "max.message.bytes", "10")
    pairs = [config.flow(name) for name in ("B->A", "B->C", "A->B")]

    with HeartbeatEmitter(pairs, timeout_seconds=3) as emitter:
        refused, unreachable, written = emitter.emit()

    assert isinstance(refused.error, RecordTooLargeError)
    assert isinstance(unreachable.error, BrokerUnreachableError)
    assert written.error is None
    assert [beat.target for beat in heartbeats_in(chain.second, "heartbeats")] == ["B"]


def test_a_topic_that_was_deleted_meanwhile_is_made_again(chain: Chain, tmp_path: Path) -> None:
    config = load(write_config(tmp_path, chain))
    with HeartbeatEmitter([config.flow("B->A")]) as emitter:
        assert emitter.emit()[0].error is None
        delete_topic(chain.first, "heartbeats")
        emitter.emit()
        assert emitter.emit()[0].error is None

    assert heartbeats_in(chain.first, "heartbeats") != []


def test_the_commands_write_and_check(chain: Chain, tmp_path: Path) -> None:
    path = write_config(tmp_path, chain)
    options = ["--config", str(path), "--flow", "A->B"]

    emitted = CliRunner().invoke(app, ["heartbeat", "emit", *options, "--every", "0.1", "--count", "2", "--json"])
    before = CliRunner().invoke(app, ["heartbeat", "check", *options, "--json"])
    run(load(path), "A->B")
    after = CliRunner().invoke(app, ["heartbeat", "check", *options])

    assert emitted.exit_code == 0, emitted.output
    assert [each["pair"] for each in json.loads(emitted.stdout)["emitted"]] == ["B->A", "A->B"]
    assert len(heartbeats_in(chain.first, "heartbeats")) == 2
    assert before.exit_code == 1
    assert json.loads(before.stdout)["checks"][0]["upstreams"][0]["state"] == "missing"
    assert after.exit_code == 0, after.output
    assert "A: fresh, 1 hop, age" in after.stdout
    assert "A.heartbeats, emitted by B->A" in after.stdout


def test_the_command_names_the_cluster_that_it_cannot_write_to(chain: Chain, tmp_path: Path) -> None:
    path = write_config(tmp_path, chain, "emit.heartbeats.enabled = false")

    nothing = CliRunner().invoke(app, ["heartbeat", "emit", "--config", str(path)])

    assert nothing.exit_code == 0
    assert "No pair of clusters emits heartbeats" in nothing.stdout
