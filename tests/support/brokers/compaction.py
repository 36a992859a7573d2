"""Compacted topics whose cleaner works within seconds, and waiting for it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.kafka import Record, consume, create_topic, produce

#: The cleaner may remove a deletion 200 ms after it has come by.
SOON_FORGOTTEN: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "min.compaction.lag.ms": "0",
    "delete.retention.ms": "200",
}
_SECONDS = 90


def create_compacted(cluster: KafkaCluster, topic: str, *, partitions: int = 1, **configs: str) -> None:
    """Create a topic that forgets deletions within seconds; `configs` have `_` for dots."""
    more = {name.replace("_", "."): value for name, value in configs.items()}
    create_topic(cluster, topic, partitions=partitions, configs={**SOON_FORGOTTEN, **more})


def put(cluster: KafkaCluster, topic: str, values: Mapping[str, str | None], *, partition: int = 0) -> None:
    """Write a record for each key; None deletes it."""
    written = [
        Record(partition=partition, key=key.encode(), value=None if value is None else value.encode())
        for key, value in values.items()
    ]
    produce(cluster, topic, written)


def forget(cluster: KafkaCluster, topic: str, keys: Iterable[str], *, partition: int = 0) -> None:
    """Wait until the cleaner has left nothing of some keys, not even their deletions."""
    wanted, deadline, number = {key.encode() for key in keys}, time.monotonic() + _SECONDS, 0
    while wanted & {record.key for record in consume(cluster, topic, partitions=[partition])}:
        assert time.monotonic() < deadline, f"the cleaner has not removed {sorted(wanted)}"
        # Only closed segments are cleaned, and a record closes the one before.
        put(cluster, topic, {"ballast": str(number)}, partition=partition)
        number += 1
        time.sleep(0.3)


def state(cluster: KafkaCluster, topic: str, *, partition: int = 0) -> dict[str, str]:
    """The newest value of each key, without those that are deleted."""
    newest: dict[str, str | None] = {}
    for record in consume(cluster, topic, partitions=[partition]):
        newest[(record.key or b"").decode()] = None if record.value is None else record.value.decode()
    return {key: value for key, value in newest.items() if value is not None}
