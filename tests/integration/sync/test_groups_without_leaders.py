"""A broker that holds a part of the flow's positions is gone: groups are translated in all other partitions."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from mirror_lib.cluster import leader_wait
from mirror_lib.config.topology import flow_topology
from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.offsets.group_standing import GroupReason
from mirror_lib.sync.groups.flow import apply_flow_groups
from tests.support.brokers.groups import commit_offset, committed_offsets
from tests.support.clusters import FAST_HOUSEKEEPING, KafkaPair
from tests.support.flows import make_flow
from tests.support.kafka import Record, admin, create_topic, produce
from tests.support.waiting import wait_for

PARTITIONS = 24
#: Groups' own offsets stay readable, and two of three brokers still elect leaders.
TWO_COPIES = {"offsets.topic.replication.factor": "2", "offsets.topic.num.partitions": "2"}


@pytest.fixture
def target(cluster_folder: Path, kafka_jars: Path) -> KafkaCluster:
    return KafkaCluster(
        "leaders", directory=cluster_folder, brokers=3, jars=kafka_jars, overrides={**FAST_HOUSEKEEPING, **TWO_COPIES}
    )


def placed(target: KafkaCluster, topic: str, *brokers: int) -> None:
    """Create a topic with a partition on each of these brokers."""
    compact = {"cleanup.policy": "compact"} if topic.endswith(".internal") else {}
    spec = NewTopic(topic, len(brokers), replica_assignment=[[broker] for broker in brokers], config=compact)
    client = admin(target)
    client.create_topics([spec])[topic].result(60)


def test_groups_are_translated_in_the_partitions_whose_positions_are_known(
    kafka_pair: KafkaPair, topic_name: str, target: KafkaCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_wait, "LEADER_SECONDS", 2.0)
    group = f"g-{topic_name}"
    create_topic(kafka_pair.source, topic_name, partitions=PARTITIONS)
    written = [Record(b"%d" % number, partition=number % PARTITIONS) for number in range(10 * PARTITIONS)]
    produce(kafka_pair.source, topic_name, written)
    settings = {"A->B.groups": group, "sync.group.offsets.enabled": "true", "checkpoints.topic.replication.factor": "1"}
    with target:
        placed(target, f"A.{topic_name}", *[1] * PARTITIONS)
        placed(target, "A.checkpoints.internal", 1)
        placed(target, "mm2-offsets.A.internal", 1, 2, 1, 2, 1)
        servers = kafka_pair.source.bootstrap_servers, target.bootstrap_servers
        flow = make_flow(tmp_path, *servers, topics=topic_name, settings=settings)
        assert flow.run().records == len(written)
        for number in range(PARTITIONS):
            commit_offset(kafka_pair.source, group, topic_name, 4, partition=number)

        target.stop_broker(2)
        wait_for(lambda: _leaderless(target, "mm2-offsets.A.internal"))
        done = apply_flow_groups(flow.config, flow_topology(flow.config), ledger=flow.ledger)

        moved = {row.source.partition for row in done.plan.rows if row.reason is None}
        unknown = [row for row in done.plan.rows if row.reason is GroupReason.UNREADABLE]
        assert committed_offsets(target, group) == {(f"A.{topic_name}", number): 4 for number in moved}
        assert moved
        assert len(moved) + len(unknown) == PARTITIONS
        assert unknown
        assert all("mm2-offsets.A.internal: partitions 1, 3 have no leader" in row.what for row in unknown)


def _leaderless(target: KafkaCluster, topic: str) -> bool:
    described = admin(target).list_topics(topic, timeout=10).topics[topic].partitions
    return any(partition.leader < 0 for partition in described.values())
