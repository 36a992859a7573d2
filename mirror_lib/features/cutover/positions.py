"""Positions of partitions, as stored on the target."""

from __future__ import annotations

from mirror_lib.config.model import FlowConfig
from mirror_lib.identity.positions import stored_positions
from mirror_lib.topology.names import TopicPartition


def copied_to(flow: FlowConfig) -> dict[TopicPartition, int]:
    """Return the next source offset to copy, of every partition that was copied.

    Raises:
        MirrorError: the position topic cannot be read.
    """
    return {place: position.offset + 1 for place, position in stored_positions(flow).items()}


def written_to(flow: FlowConfig) -> dict[TopicPartition, int]:
    """Return the next target offset to write, by source partition, as far as it is known.

    Raises:
        MirrorError: the position topic cannot be read.
    """
    stored = stored_positions(flow)
    return {place: each.target_offset for place, each in stored.items() if each.target_offset is not None}
