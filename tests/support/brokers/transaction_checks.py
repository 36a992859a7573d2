"""Brokers that append records of transactions that no coordinator knows: the way to a transaction that hangs."""

from __future__ import annotations

import time

from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.support.clusters import KafkaCluster
from tests.support.kafka import admin


def set_verification(cluster: KafkaCluster, operation: AlterConfigOpType) -> None:
    """Switch off that brokers ask the coordinator about a partition before they append to it; or on again."""
    client = admin(cluster)
    resources = [
        ConfigResource(
            ResourceType.BROKER,
            str(number),
            incremental_configs=[
                ConfigEntry("transaction.partition.verification.enable", "false", incremental_operation=operation)
            ],
        )
        for number in client.list_topics(timeout=30).brokers
    ]
    for done in client.incremental_alter_configs(resources).values():
        done.result(timeout=30)
    # Brokers hear of it a little later.
    time.sleep(1)
