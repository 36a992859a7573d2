"""Heartbeats over real clusters: written as MM2 writes them, carried along A->B->C, judged where they arrive."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.heartbeats.tasks import EMITTED_KEY
from mirror_lib.cli.main import app
from mirror_lib.cluster.topics.mm2_formats import Heartbeat
from mirror_lib.config.loader import load
from mirror_lib.config.topology import flow_topology, replication_policy
from mirror_lib.errors import (
    BrokerUnreachableError,
    RecordTooLargeError,
    SourceClusterChangedError,
    TargetClusterChangedError,
)
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.ledger.location import open_ledger
from mirror_lib.sync.heartbeats.flow import HeartbeatEmitter, check_flow_heartbeats, emit_heartbeats
from mirror_lib.sync.heartbeats.rules import HeartbeatState, emitting_flows, replication_hops, upstream_clusters
from mirror_lib.sync.topics.flow import plan_flow_topics
from mirror_lib.topology.names import FlowId
from tests.integration.sync.conftest import network, run
from tests.support.airflow.preflights import other_tasks, run_preflight
from tests.support.clusters import Chain
from tests.support.flows import Flow, make_flow
from tests.support.kafka import Record, consume, create_topic, delete_topic, produce, set_config, topic_names

FLOWS = ("A->B.enabled = true", "B->C.enabled = true", "topics = orders")
A_TO_B, B_TO_C = FlowId("A", "B"), FlowId("B", "C")


def heartbeats_in(cluster: KafkaCluster, topic: str) -> list[Heartbeat]:
    return [Heartbeat.decode(record.key, record.value) for record in consume(cluster, topic)]


def test_a_heartbeat_is_written_into_the_target_of_its_pair_with_the_bytes_of_mm2(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, *FLOWS)

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
    config = network(tmp_path, chain, *FLOWS)
    before = topic_names(chain.first), topic_names(chain.second)

    with open_ledger(config) as ledger:
        # A was another cluster when the flow began; the pair B->A has no rows of its own.
        ledger.cluster_pairs.keep("A->B", "formerly-A", "formerly-B")
        emitted = emit_heartbeats(emitting_flows(config, A_TO_B), ledger)

    assert [type(each.error) for each in emitted] == [SourceClusterChangedError, TargetClusterChangedError]
    assert (topic_names(chain.first), topic_names(chain.second)) == before
    refused = CliRunner().invoke(app, ["heartbeat", "emit", "--config", config.path, "--flow", "A->B", "--json"])
    reasons = [each["error"]["reason"] for each in json.loads(refused.stdout)["emitted"]]
    assert reasons == ["source-cluster-changed", "target-cluster-changed"]
    assert (topic_names(chain.first), topic_names(chain.second)) == before


def test_heartbeats_travel_over_two_hops_and_say_how_far_each_cluster_is(chain: Chain, tmp_path: Path) -> None:
    create_topic(chain.first, "orders")
    config = network(tmp_path, chain, *FLOWS)
    emit_heartbeats(emitting_flows(config, A_TO_B))
    run(config, "A->B")
    emit_heartbeats(emitting_flows(config, B_TO_C))
    run(config, "B->C")

    # The third cluster's topics, by MirrorClient's rules.
    policy = replication_policy(config.flow("B->C"))
    names = topic_names(chain.third)
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


def test_a_heartbeat_that_was_not_carried_makes_the_flow_stale_however_young_the_last_one_is(
    chain: Chain, tmp_path: Path
) -> None:
    config = network(tmp_path, chain, *FLOWS)
    first = emit_heartbeats(emitting_flows(config, A_TO_B))[0]
    run(config, "A->B")
    assert not check_flow_heartbeats(config.flow("A->B"), written_ms=first.timestamp_ms).source_is_cut_off

    second = emit_heartbeats(emitting_flows(config, A_TO_B))[0]

    checked = check_flow_heartbeats(config.flow("A->B"), written_ms=second.timestamp_ms)
    assert checked.source_is_cut_off
    assert "has not arrived" in checked.source.problem


def test_garbage_and_tombstones_among_heartbeats_are_told_and_passed_over(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, *FLOWS)
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


def test_a_pair_that_cannot_write_stops_no_other(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, *FLOWS, "C.bootstrap.servers = 127.0.0.1:1")
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
    config = network(tmp_path, chain, *FLOWS)
    with HeartbeatEmitter([config.flow("B->A")]) as emitter:
        assert emitter.emit()[0].error is None
        delete_topic(chain.first, "heartbeats")
        emitter.emit()
        assert emitter.emit()[0].error is None

    assert heartbeats_in(chain.first, "heartbeats") != []


def test_the_commands_write_and_check(chain: Chain, tmp_path: Path) -> None:
    config = network(tmp_path, chain, *FLOWS)
    options = ["--config", str(config.path), "--flow", "A->B"]

    emitted = CliRunner().invoke(app, ["heartbeat", "emit", *options, "--every", "0.1", "--count", "2", "--json"])
    before = CliRunner().invoke(app, ["heartbeat", "check", *options, "--json"])
    run(config, "A->B")
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
    config = network(tmp_path, chain, *FLOWS, "emit.heartbeats.enabled = false")

    nothing = CliRunner().invoke(app, ["heartbeat", "emit", "--config", str(config.path)])

    assert nothing.exit_code == 0
    assert "No pair of clusters emits heartbeats" in nothing.stdout


@pytest.fixture
def flow(chain: Chain, topic_name: str, tmp_path: Path) -> Flow:
    """One whose DAG emits, copies and checks heartbeats in its first task where there is nothing else to copy."""
    settings = {
        "emit.heartbeats.enabled": "true",
        "heartbeats.topic.replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
    }
    servers = chain.first.bootstrap_servers, chain.second.bootstrap_servers
    return make_flow(tmp_path, *servers, topics=topic_name, settings=settings)


def test_heartbeats_are_written_before_a_copy_by_spark_too(chain: Chain, flow: Flow, topic_name: str) -> None:
    create_topic(chain.first, topic_name)
    assert flow.run().errors == ()
    produce(chain.first, topic_name, [Record(value=b"new")])
    before = len(consume(chain.first, "heartbeats"))

    ran = run_preflight(flow.path)

    assert "emit_heartbeats" in ran.skipped
    assert "replicate" not in ran.skipped
    written = consume(chain.first, "heartbeats")[before:]
    assert [Heartbeat.decode(each.key, each.value).source for each in written] == ["B"]
    assert ran.pushed[EMITTED_KEY]["problems"] == []


def test_a_topic_that_the_first_heartbeat_creates_gets_its_copy(chain: Chain, flow: Flow, topic_name: str) -> None:
    create_topic(chain.first, topic_name)
    assert flow.run().errors == ()
    planned = plan_flow_topics(flow.config, flow_topology(flow.config))
    assert planned.plan.changes == 0

    ran = run_preflight(flow.path)

    assert consume(chain.first, "heartbeats")
    assert "sync_topics" not in ran.skipped


def test_heartbeats_are_copied_and_checked_by_the_first_task(chain: Chain, flow: Flow) -> None:
    emit_heartbeats(emitting_flows(load(flow.path), flow.config.flow))
    # Spark makes the first copy.
    assert flow.run().errors == ()

    ran = [run_preflight(flow.path)]
    # The next heartbeat is due after its interval.
    time.sleep(1)
    ran.append(run_preflight(flow.path))

    for each in ran:
        assert each.skipped == other_tasks(flow.path)
        assert each.pushed[REPORT_KEY]["records"] == 1
        assert each.pushed[STEP_KEY]["heartbeats"]["reasons"] == {"fresh": 1}
    assert heartbeats_in(chain.second, "A.heartbeats") == heartbeats_in(chain.first, "heartbeats")
    assert [(run.state, run.records) for run in flow.ledger.runs("A->B", 2)] == [("succeeded", 1)] * 2
    assert flow.ledger.observations.newest("A->B").lagging == 0
    assert {row.verdict for row in flow.ledger.observations.heartbeats("A->B")} == {"fresh"}
