"""Where groups stand is left in the ledger by the steps that look at them, and counts in the flow's observation."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as NativePartition

from mirror_lib.config.topology import flow_topology
from mirror_lib.relay.health.observation import observe_flow
from mirror_lib.sync.groups.flow import sync_flow_groups
from mirror_lib.sync.intervals import SyncStep
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import admin, create_topic, produce, records


def a_flow(folder: Path, pair: KafkaPair, topic: str) -> Flow:
    settings = {
        # Other tests leave groups behind, which every flow would take.
        "A->B.groups": f"{topic}.*",
        "A->B.heartbeats.replication.enabled": "false",
        "A->B.sync.group.offsets.enabled": "true",
        "checkpoints.topic.replication.factor": "1",
    }
    return pair_flow(folder, pair, topics=topic, settings=settings)


def commit(pair: KafkaPair, group: str, topic: str, offset: int) -> None:
    client = admin(pair.source)
    deadline = time.monotonic() + 60
    while True:
        request = [ConsumerGroupTopicPartitions(group, [NativePartition(topic, 0, offset)])]
        (done,) = client.alter_consumer_group_offsets(request)[group].result(60).topic_partitions
        if done.error is None:
            return
        # The first group of a cluster makes it create the topic of committed offsets.
        assert time.monotonic() < deadline, str(done.error)
        time.sleep(0.1)


def test_groups_are_kept_by_the_step_that_moves_them(kafka_pair: KafkaPair, topic_name: str, tmp_path: Path) -> None:
    flow = a_flow(tmp_path, kafka_pair, topic_name)
    topology = flow_topology(flow.config)
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(50))
    flow.run()
    commit(kafka_pair, f"{topic_name}-follows", topic_name, 30)
    # It has read what is not copied yet.
    produce(kafka_pair.source, topic_name, records(10, start=50))
    commit(kafka_pair, f"{topic_name}-ahead", topic_name, 55)

    sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.CHECKPOINTS, dry_run=False)
    assert flow.ledger.observations.groups("A->B") == ()
    sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)

    kept = {row.group: row for row in flow.ledger.observations.groups("A->B")}
    follows, ahead = kept[f"{topic_name}-follows"], kept[f"{topic_name}-ahead"]
    assert (follows.upstream, follows.goes_on_at, follows.read_again, follows.reason) == (30, 30, 0, None)
    assert (ahead.upstream, ahead.goes_on_at, ahead.reason) == (55, 50, "upstream-beyond-copied")
    seen = observe_flow(flow.config, flow.ledger).flow
    assert (seen.groups, seen.groups_behind, seen.read_again) == (2, 1, 0)


def test_a_look_at_some_topics_leaves_what_is_known_of_all(
    kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    flow = a_flow(tmp_path, kafka_pair, topic_name)
    create_topic(kafka_pair.source, topic_name)
    produce(kafka_pair.source, topic_name, records(5))
    flow.run()
    commit(kafka_pair, f"{topic_name}-g", topic_name, 3)
    sync_flow_groups(flow.config, flow_topology(flow.config), flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)
    before = flow.ledger.observations.groups("A->B")

    limited = flow_topology(flow.config, ["nothing"])
    sync_flow_groups(
        flow.config, limited, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False, complete=False, at_once=True
    )

    assert before
    assert flow.ledger.observations.groups("A->B") == before
