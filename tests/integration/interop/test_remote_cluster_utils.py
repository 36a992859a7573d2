"""MM2's Java client (`RemoteClusterUtils`, `MirrorClient`) understands the clusters that our flows write to."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.config.topology import replication_policy
from mirror_lib.dev.broker import KafkaCluster
from mirror_lib.dev.jars import classpath, fetch, mirror_client
from mirror_lib.dev.java import find_java
from mirror_lib.sync.heartbeats.flow import emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows, replication_hops, upstream_clusters
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, create_topic, produce, records
from tests.support.mirror_maker import shared_flow

PROGRAM = Path(__file__).parent / "RemoteClusters.java"
GROUP = "billing"

NAMINGS: Mapping[str, Mapping[str, str]] = {
    "dots": {},
    "own separator everywhere": {"replication.policy.separator": "_"},
    "own separator, internal topics with dots": {
        "replication.policy.separator": "_",
        "replication.policy.internal.topic.separator.enabled": "false",
    },
    "names kept": {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"},
}


@pytest.fixture(scope="module")
def client_jars() -> Path:
    return fetch(mirror_client())


def ask_java(
    jars: Path, cluster: KafkaCluster, upstream: str, group: str, options: Mapping[str, str]
) -> dict[str, str]:
    """What MM2's client says about a cluster."""
    properties = {"bootstrap.servers": cluster.bootstrap_servers, **options}
    done = subprocess.run(
        [
            *(str(find_java()), "-Xmx256m", "-cp", classpath(jars), str(PROGRAM), upstream, group),
            *(f"{key}={value}" for key, value in properties.items()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def members(text: str) -> set[str]:
    """A Java set or list as it prints itself."""
    return {member for member in text.strip("[]").split(", ") if member}


@pytest.mark.parametrize("naming", NAMINGS.values(), ids=NAMINGS.keys())
def test_it_finds_upstream_clusters_topics_and_offsets(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path, client_jars: Path, naming: Mapping[str, str]
) -> None:
    # Given heartbeats and a topic that our flow has copied, and a checkpoint in our bytes,
    shared = shared_flow(tmp_path, interop_pair, topics=topic_name, settings=naming)
    flow, policy = shared.ours.config, replication_policy(shared.ours.config)
    create_topic(interop_pair.source, topic_name)
    produce(interop_pair.source, topic_name, records(10))
    emit_heartbeats(emitting_flows(shared.config, flow.flow))
    assert shared.ours.run().errors == ()
    remote = policy.format_remote_topic(shared.source_alias, topic_name)
    checkpoint = Checkpoint(GROUP, remote, 0, upstream_offset=7, downstream_offset=7, metadata="!")
    checkpoints = policy.checkpoints_topic(shared.source_alias)
    create_topic(interop_pair.target, checkpoints, configs={"cleanup.policy": "compact"})
    produce(interop_pair.target, checkpoints, [Record(key=checkpoint.key(), value=checkpoint.value())])

    # when MM2's client is asked with the same naming,
    said = ask_java(client_jars, interop_pair.target, shared.source_alias, GROUP, naming)

    # then it sees all of it, and what our own functions say is what it says.
    topics = shared.topics_on_target()
    assert shared.source_alias in members(said["upstreamClusters"])
    assert members(said["upstreamClusters"]) == upstream_clusters(policy, topics)
    assert said["replicationHops"] == "1" == str(replication_hops(policy, topics, shared.source_alias))
    assert said["hopsFromNowhere"] == "-1"
    assert members(said["heartbeatTopics"]) == {topic for topic in topics if policy.is_heartbeats_topic(topic)}
    assert policy.format_remote_topic(shared.source_alias, "heartbeats") in members(said["heartbeatTopics"])
    assert checkpoints in members(said["checkpointTopics"])
    assert said["translateOffsets"] == f"{{{remote}-0=7!}}"
    if "replication.policy.class" not in naming:
        # With kept names no topic tells where it came from.
        assert remote in members(said["remoteTopics"])
