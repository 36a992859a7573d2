"""Where groups stand is left in the ledger by the steps that look at them, and counts in the flow's observation."""

from __future__ import annotations

import time

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as NativePartition

from mirror_lib.config.topology import flow_topology
from mirror_lib.relay.health.observation import observe_flow
from mirror_lib.sync.groups.flow import sync_flow_groups
from mirror_lib.sync.intervals import SyncStep
from tests.support.flows import Flow
from tests.support.kafka import admin, records
from tests.support.mirrored_topic import MirroredTopic


def a_flow(mirrored: MirroredTopic) -> Flow:
    settings = {
        # Other tests leave groups behind, which every flow would take.
        "A->B.groups": f"{mirrored.name}.*",
        "A->B.heartbeats.replication.enabled": "false",
        "A->B.sync.group.offsets.enabled": "true",
        "checkpoints.topic.replication.factor": "1",
    }
    return mirrored.flow(settings)


def commit(mirrored: MirroredTopic, group: str, offset: int) -> None:
    client = admin(mirrored.source)
    deadline = time.monotonic() + 60
    while True:
        request = [ConsumerGroupTopicPartitions(group, [NativePartition(mirrored.name, 0, offset)])]
        (done,) = client.alter_consumer_group_offsets(request)[group].result(60).topic_partitions
        if done.error is None:
            return
        # The first group of a cluster makes it create the topic of committed offsets.
        assert time.monotonic() < deadline, str(done.error)
        time.sleep(0.1)


def test_groups_are_kept_by_the_step_that_moves_them(mirrored: MirroredTopic) -> None:
    flow = a_flow(mirrored)
    topology = flow_topology(flow.config)
    mirrored.create(records(50))
    flow.run()
    commit(mirrored, f"{mirrored.name}-follows", 30)
    # It has read what is not copied yet.
    mirrored.produce(records(10, start=50))
    commit(mirrored, f"{mirrored.name}-ahead", 55)

    sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.CHECKPOINTS, dry_run=False)
    assert flow.ledger.observations.groups("A->B") == ()
    sync_flow_groups(flow.config, topology, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)

    kept = {row.group: row for row in flow.ledger.observations.groups("A->B")}
    follows, ahead = kept[f"{mirrored.name}-follows"], kept[f"{mirrored.name}-ahead"]
    assert (follows.upstream, follows.goes_on_at, follows.read_again, follows.reason) == (30, 30, 0, None)
    assert (ahead.upstream, ahead.goes_on_at, ahead.reason) == (55, 50, "upstream-beyond-copied")
    seen = observe_flow(flow.config, flow.ledger).flow
    assert (seen.groups, seen.groups_behind, seen.read_again) == (2, 1, 0)


def test_a_look_at_some_topics_leaves_what_is_known_of_all(mirrored: MirroredTopic) -> None:
    flow = a_flow(mirrored)
    mirrored.create(records(5))
    flow.run()
    commit(mirrored, f"{mirrored.name}-g", 3)
    sync_flow_groups(flow.config, flow_topology(flow.config), flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False)
    before = flow.ledger.observations.groups("A->B")

    limited = flow_topology(flow.config, ["nothing"])
    sync_flow_groups(
        flow.config, limited, flow.ledger, SyncStep.GROUP_OFFSETS, dry_run=False, complete=False, at_once=True
    )

    assert before
    assert flow.ledger.observations.groups("A->B") == before
