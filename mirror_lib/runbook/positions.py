"""How far partitions are copied, as the target keeps it."""

from __future__ import annotations

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.internal_topics import PositionStore
from mirror_lib.cluster.positions import Position
from mirror_lib.config.model import FlowConfig
from mirror_lib.topology.names import TopicPartition


def copied_to(flow: FlowConfig) -> dict[TopicPartition, int]:
    """The next source offset to copy, of every partition that was copied.

    Raises:
        MirrorError: the position topic cannot be read.
    """
    return {place: position.offset + 1 for place, position in _positions(flow)}


def written_to(flow: FlowConfig) -> dict[TopicPartition, int]:
    """The next offset to be written on the target, by source partition, as far as it is known.

    Raises:
        MirrorError: the position topic cannot be read.
    """
    return {place: each.target_offset for place, each in _positions(flow) if each.target_offset is not None}


def _positions(flow: FlowConfig) -> list[tuple[TopicPartition, Position]]:
    connection = Connection.from_settings(flow.clients.target_internal)
    with PositionStore(connection, flow.offset_storage_topic, flow.flow.source) as store:
        snapshot = store.read_all()
    return [(place, stored.position) for place, stored in snapshot.positions.items()]
