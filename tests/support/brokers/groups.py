"""What consumer groups have committed, set and read by another client than the product's."""

from __future__ import annotations

import time

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.kafka import admin


def commit_offset(
    cluster: KafkaCluster, group: str, topic: str, offset: int, *, partition: int = 0, metadata: str = ""
) -> None:
    """Commit an offset of a group without members."""
    client = admin(cluster)
    place = TopicPartition(topic, partition, offset, *([metadata] if metadata else []))
    deadline = time.monotonic() + 60
    while True:
        request = [ConsumerGroupTopicPartitions(group, [place])]
        (done,) = client.alter_consumer_group_offsets(request)[group].result(60).topic_partitions
        if done.error is None:
            return
        # The first group of a cluster makes it create the topic of committed offsets.
        assert time.monotonic() < deadline, str(done.error)
        time.sleep(0.1)


def committed_offsets(cluster: KafkaCluster, group: str) -> dict[tuple[str, int], int]:
    """What a group has committed, by topic and partition."""
    request = [ConsumerGroupTopicPartitions(group)]
    # A client that nobody holds is destroyed while its request is under way.
    client = admin(cluster)
    found = client.list_consumer_group_offsets(request)[group].result(60)
    return {(each.topic, each.partition): each.offset for each in found.topic_partitions}
