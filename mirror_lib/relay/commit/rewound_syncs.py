"""Telling readers of the offset-syncs topic that the earlier syncs of a partition are about records that are gone.

A decision lets a copy continue in an empty topic, and what MirrorMaker 2 remembers of the former one would translate
to offsets that do not exist. Its reader forgets the syncs of a partition when one with a lower source offset comes
(Java `OffsetSyncStore`). So the sync that is written here has a lower one than any record.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.cluster import Connection
from mirror_lib.cluster.topics import OffsetSync, OffsetSyncWriter
from mirror_lib.config import FlowConfig, offset_syncs_topic
from mirror_lib.errors import TopicMissingError
from mirror_lib.offsets import BEFORE_ALL
from mirror_lib.topology import TopicPartition


def rewind_syncs(flow: FlowConfig, next_offsets: Mapping[TopicPartition, int]) -> None:
    """Let all source offsets translate to where the next copied record lands, until syncs of newer records come.

    Args:
        next_offsets: the target offset of the next copied record, by source partition.

    Raises:
        MirrorError: the offset-syncs topic cannot be written.
    """
    if not next_offsets or not flow.emit_offset_syncs_enabled:
        return
    # A reader translates an offset behind a sync to the one after its target offset.
    syncs = [OffsetSync(*source, BEFORE_ALL, following - 1) for source, following in sorted(next_offsets.items())]
    connection = Connection.from_settings(flow.clients.offset_syncs_producer)
    try:
        with OffsetSyncWriter(connection, offset_syncs_topic(flow)) as writer:
            writer.write(syncs)
    except TopicMissingError:
        # Nobody has read a sync from it.
        return
