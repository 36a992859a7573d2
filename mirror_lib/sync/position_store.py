"""Positions of partitions, from the position topic on the target."""

from __future__ import annotations

from mirror_lib.cluster import Connection
from mirror_lib.cluster.topics import Position, PositionStore
from mirror_lib.config import FlowConfig
from mirror_lib.topology import TopicPartition


def stored_positions(flow: FlowConfig) -> dict[TopicPartition, Position]:
    """The position of every source partition of a flow; empty if there is no position topic.

    Raises:
        MirrorError: the position topic cannot be read within `admin.timeout.ms`.
    """
    connection = Connection.from_settings(flow.clients.target_internal)
    timeout = flow.admin_timeout_ms / 1000
    with PositionStore(connection, flow.offset_storage_topic, flow.source_alias, timeout=timeout) as store:
        positions = store.read_all().positions
    return {source: stored.position for source, stored in positions.items()}
