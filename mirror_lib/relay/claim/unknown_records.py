"""Completes positions without records, of MirrorMaker 2 and of version 0.1.0, by one read of the logs of both sides.

Without it nothing shows that an idle log was restored from a snapshot and has grown to the same end, until the next
record is copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from mirror_lib.cluster.raw import open_clients
from mirror_lib.cluster.topics import LastRecord, Position
from mirror_lib.errors import ClusterError
from mirror_lib.identity import read_records_at
from mirror_lib.relay.planning import FlowClusters
from mirror_lib.topology import TopicPartition

_Records = Mapping[TopicPartition, LastRecord]


def with_records(
    positions: Mapping[TopicPartition, Position],
    targets: Mapping[TopicPartition, TopicPartition],
    clusters: FlowClusters,
) -> dict[TopicPartition, Position]:
    """The positions with the last copied record of each side, if that can be read, and if both sides have the same.

    Args:
        positions: of idle partitions, by source partition.
        targets: their target partitions.
        clusters: of the run.
    """
    incomplete = {each: at for each, at in positions.items() if at.last_record is None and at.offset >= 0}
    if not incomplete:
        return dict(positions)
    on_target = {
        targets[each]: at.target_offset - 1 for each, at in incomplete.items() if at.target_offset and each in targets
    }
    on_source = {each: at.offset for each, at in incomplete.items()}
    sources, copies = asyncio.run(_read(clusters, on_source, on_target))
    return {
        each: _completed(at, sources[each], copies.get(targets[each])) if each in sources else at
        for each, at in positions.items()
    }


def _completed(position: Position, record: LastRecord, copy: LastRecord | None) -> Position:
    if copy is None:
        # A marker is at the end of the target, or MirrorMaker 2 has copied, which stores no target offset.
        return replace(position, last_record=record)
    if copy.checksum != record.checksum:
        # A transform has changed it; or one of the logs is another one, which `mirror verify` reports.
        return position
    return replace(position, last_record=record, target_record=copy)


async def _read(
    clusters: FlowClusters, on_source: Mapping[TopicPartition, int], on_target: Mapping[TopicPartition, int]
) -> tuple[_Records, _Records]:
    try:
        async with open_clients(clusters.source_data, clusters.target_data) as (source, target):
            return await asyncio.gather(read_records_at(source, on_source), read_records_at(target, on_target))
    except ClusterError:
        return {}, {}
