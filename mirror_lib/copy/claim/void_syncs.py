"""Make readers of the offset-syncs topic forget the earlier syncs of a partition: their records no longer exist.

A resolution lets a copy continue in an empty topic, or a copy begins on another target cluster; MirrorMaker 2 would
translate by the syncs of the former topic, to offsets that do not exist. Its reader forgets the syncs of a partition
when it reads one with a lower source offset (Java `OffsetSyncStore`). So the sync that is written here has a lower
offset than any record.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.topics.checkpoints import read_offset_syncs
from mirror_lib.cluster.topics.mm2_formats import OffsetSync
from mirror_lib.cluster.topics.position_store import OffsetSyncWriter
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import offset_syncs_topic
from mirror_lib.errors import MirrorError, TopicMissingError
from mirror_lib.offsets.syncs import BEFORE_ALL
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)


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


def rewind_syncs_of_other_logs(flow: FlowConfig, next_offsets: Mapping[TopicPartition, int]) -> None:
    """Rewind the syncs of partitions whose copy begins, if they are of another target log.

    A sync at or after the log end is, for example that of a former target cluster.

    Args:
        flow: the flow.
        next_offsets: the target's log end offsets, by source partition.

    Raises:
        MirrorError: the offset-syncs topic cannot be written.
    """
    if not next_offsets or not flow.emit_offset_syncs_enabled:
        return
    try:
        stored = newest_syncs(flow)
    except MirrorError as error:
        # The right to read is needed for take-overs only; and to rewind without a reason does no harm.
        _log.info("Flow %s: offset-syncs of new partitions are rewound: they cannot be read: %s", flow.flow, error)
        rewind_syncs(flow, next_offsets)
        return
    others = {
        source: following
        for source, following in next_offsets.items()
        if source in stored and stored[source].downstream_offset >= following
    }
    rewind_syncs(flow, others)


def newest_syncs(flow: FlowConfig) -> Mapping[TopicPartition, OffsetSync]:
    """The newest sync of each source partition: no valid one is at a greater target offset.

    Raises:
        MirrorError: the offset-syncs topic cannot be read.
    """
    connection = Connection.from_settings(flow.clients.offset_syncs_consumer)
    entries = read_offset_syncs(connection, offset_syncs_topic(flow)).entries
    return {TopicPartition(sync.topic, sync.partition): sync for sync in entries}
