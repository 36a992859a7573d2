"""Make readers of the offset-syncs topic forget the earlier syncs of a partition: their records no longer exist.

A resolution lets a copy continue in an empty topic, and MirrorMaker 2 would translate by the syncs of the former
topic, to offsets that do not exist. Its reader forgets the syncs of a partition when it reads one with a lower source
offset (Java `OffsetSyncStore`). So the sync that is written here has a lower offset than any record.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mirror_lib.cluster import Connection
from mirror_lib.cluster.topics import OffsetSync, OffsetSyncWriter
from mirror_lib.config import FlowConfig, offset_syncs_topic
from mirror_lib.errors import TopicMissingError
from mirror_lib.offsets import BEFORE_ALL
from mirror_lib.topology import TopicPartition


def rewind_syncs(
    flow: FlowConfig,
    next_offsets: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, tuple[int, int]] = MappingProxyType({}),
) -> None:
    """Make all source offsets translate to the offset of the next copied record, until syncs of newer records follow.

    Args:
        next_offsets: the target offset of the next copied record, by source partition.
        starts: source and target offset of the first record of copies whose beginning is kept: all later offsets
            translate to it.

    Raises:
        MirrorError: the offset-syncs topic cannot be written.
    """
    if not (next_offsets or starts) or not flow.emit_offset_syncs_enabled:
        return
    # A reader translates an offset after a sync to the sync's target offset plus one.
    syncs = [OffsetSync(*source, BEFORE_ALL, following - 1) for source, following in sorted(next_offsets.items())]
    syncs += [OffsetSync(*source, *first) for source, first in sorted(starts.items())]
    connection = Connection.from_settings(flow.clients.offset_syncs_producer)
    try:
        with OffsetSyncWriter(connection, offset_syncs_topic(flow)) as writer:
            writer.write(syncs)
    except TopicMissingError:
        # The topic does not exist, so no reader has syncs of it.
        return
