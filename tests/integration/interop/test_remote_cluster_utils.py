"""MM2's Java client (`RemoteClusterUtils`, `MirrorClient`) understands the clusters that our flows write to."""

from __future__ import annotations

import random
import subprocess
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer

from mirror_lib.cluster.admin.groups import CommittedOffset, GroupAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.config.topology import flow_topology, replication_policy
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.jars import classpath, fetch, mirror_client
from mirror_lib.spark.java import find_java
from mirror_lib.sync.groups.flow import apply_flow_groups
from mirror_lib.sync.heartbeats.flow import emit_heartbeats
from mirror_lib.sync.heartbeats.rules import emitting_flows, replication_hops, upstream_clusters
from mirror_lib.topology.names import TopicPartition
from tests.support.clusters import KafkaPair
from tests.support.kafka import Record, consume, create_topic, produce, records, watermarks
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
    jars: Path, cluster: KafkaCluster, upstream: str, groups: Sequence[str], options: Mapping[str, str]
) -> dict[str, str]:
    """What MM2's client says about a cluster."""
    properties = {"bootstrap.servers": cluster.bootstrap_servers, **options}
    done = subprocess.run(
        [
            *(str(find_java()), "-Xmx256m", "-cp", classpath(jars), str(PROGRAM), upstream, ",".join(groups)),
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
    said = ask_java(client_jars, interop_pair.target, shared.source_alias, [GROUP], naming)

    # then it sees all of it, and what our own functions say is what it says.
    topics = shared.topics_on_target()
    assert shared.source_alias in members(said["upstreamClusters"])
    assert members(said["upstreamClusters"]) == upstream_clusters(policy, topics)
    assert said["replicationHops"] == "1" == str(replication_hops(policy, topics, shared.source_alias))
    assert said["hopsFromNowhere"] == "-1"
    assert members(said["heartbeatTopics"]) == {topic for topic in topics if policy.is_heartbeats_topic(topic)}
    assert policy.format_remote_topic(shared.source_alias, "heartbeats") in members(said["heartbeatTopics"])
    assert checkpoints in members(said["checkpointTopics"])
    assert said[f"translateOffsets {GROUP}"] == f"{{{remote}-0=7!}}"
    if "replication.policy.class" not in naming:
        # With kept names no topic tells where it came from.
        assert remote in members(said["remoteTopics"])


def test_offsets_that_it_translates_are_those_of_the_same_records(
    interop_pair: KafkaPair, topic_name: str, tmp_path: Path, client_jars: Path
) -> None:
    """1,000 offsets of groups, anywhere in logs with transactions: MM2's own syncs would know 2 or 3 of a partition."""
    partitions, groups = 50, [f"{topic_name}-{number}" for number in range(20)]
    settings = {"groups": f"{topic_name}.*", "heartbeats.replication.enabled": "false"}
    shared = shared_flow(tmp_path, interop_pair, topics=topic_name, settings=settings, isolation="read_committed")
    flow, remote = shared.ours, f"{shared.source_alias}.{topic_name}"
    create_topic(interop_pair.source, topic_name, partitions=partitions)
    pick = random.Random(1)
    producer = Producer({"bootstrap.servers": interop_pair.source.bootstrap_servers, "transactional.id": topic_name})
    producer.init_transactions(60)
    for number in range(8):
        producer.begin_transaction()
        for partition in range(partitions):
            for each in range(pick.randint(1, 5)):
                producer.produce(topic_name, f"{number} {each}".encode(), partition=partition)
        producer.flush(60)
        producer.abort_transaction(60) if number % 4 == 3 else producer.commit_transaction(60)
    assert flow.run().errors == ()
    wanted = {
        group: {
            TopicPartition(topic_name, each): CommittedOffset(
                pick.randint(0, watermarks(interop_pair.source, topic_name, each)[1]), "!"
            )
            for each in range(partitions)
        }
        for group in groups
    }
    with GroupAdmin(Connection.from_settings(flow.config.clients.source_admin)) as admin:
        done = admin.commit(wanted)
    assert {error for outcome in done.values() for error in outcome.values()} == {None}

    apply_flow_groups(flow.config, flow_topology(flow.config), ledger=flow.ledger)
    said = ask_java(client_jars, interop_pair.target, shared.source_alias, groups, {})

    # The next record that a group has not read on the source is the one that it reads on the target.
    here, there = places(interop_pair.source, topic_name), places(interop_pair.target, remote)
    for group, offsets in wanted.items():
        expected = {
            f"{remote}-{place.partition}={there[place.partition][bisect_left(here[place.partition][:-1], at.offset)]}!"
            for place, at in offsets.items()
        }
        assert members(said[f"translateOffsets {group}"].strip("{}")) == expected


def places(cluster: KafkaCluster, topic: str) -> dict[int, list[int]]:
    """The offsets of a topic's committed records by partition, and the one behind the last."""
    found: dict[int, list[int]] = defaultdict(list)
    for record in consume(cluster, topic):
        assert record.offset is not None
        found[record.partition][-1:] = [record.offset, record.offset + 1]
    return found
