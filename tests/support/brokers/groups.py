"""What consumer groups have committed, set and read by another client than the product's."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition

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
    """What a group has committed, by topic and partition.

    `AdminClient.list_consumer_group_offsets` ends the process if a broker is not the coordinator yet (librdkafka 2.16,
    `rd_kafka_cgrp_op` without a group; confluent-kafka-javascript#374).
    """
    topics = admin(cluster).list_topics(timeout=60).topics
    places = [TopicPartition(name, number) for name, each in topics.items() for number in each.partitions]
    reader = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "log_level": 0})
    try:
        found = reader.committed(places, timeout=60)
    finally:
        reader.close()
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}
