"""Completes positions without their last copied record, by one read of the logs of both sides.

These are positions of MirrorMaker 2 and of version 0.1.0, and those that a take-over has found. Without the record
nothing shows that an idle log was restored from a snapshot and has grown to the same end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.errors import ClusterError
from mirror_lib.identity.last_records import read_records_at
from mirror_lib.planning.flow_clusters import FlowClusters
from mirror_lib.planning.model import PartitionResult
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition

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
    pairs = {each: _Pair(targets.get(each), at.offset, at.target_offset) for each, at in incomplete.items()}
    return {**positions, **_with_records(incomplete, pairs, clusters)}


def with_found_records(
    positions: Sequence[Position], results: Sequence[PartitionResult], clusters: FlowClusters
) -> list[Position]:
    """The positions at a run's end, with the last copied records that the copy has not read itself.

    A take-over finds copied records and may have nothing more to copy; a partition that fails may have read on. Both
    know an earlier record only, which a log restored to a state after it still has.

    Args:
        positions: of the results.
        clusters: of the run.
    """
    pairs = {
        each.source: _Pair(each.target, each.runs[-1].source_next - 1, each.runs[-1].target_next)
        for each in results
        if each.runs and (each.recovered or each.error is not None)
    }
    stale = {
        each.source: each
        for each in positions
        if each.source in pairs and _is_before(each.last_record, pairs[each.source].source_offset)
    }
    found = _with_records(stale, pairs, clusters)
    return [found.get(each.source, each) for each in positions]


class _Pair(NamedTuple):
    """A copied record: its source offset, and the target offset after it."""

    target: TopicPartition | None
    source_offset: int
    target_next: int | None


def _is_before(record: LastRecord | None, offset: int) -> bool:
    return record is None or record.offset < offset


def _with_records(
    incomplete: Mapping[TopicPartition, Position], pairs: Mapping[TopicPartition, _Pair], clusters: FlowClusters
) -> dict[TopicPartition, Position]:
    if not incomplete:
        return {}
    wanted = {each: pairs[each] for each in incomplete}
    on_target = {pair.target: pair.target_next - 1 for pair in wanted.values() if pair.target and pair.target_next}
    on_source = {each: pair.source_offset for each, pair in wanted.items()}
    sources, copies = asyncio.run(_read(clusters, on_source, on_target))
    return {
        each: _completed(at, sources[each], copies.get(target) if (target := wanted[each].target) else None)
        for each, at in incomplete.items()
        if each in sources
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
