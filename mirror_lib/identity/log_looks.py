"""Compares the logs of positions: source and target must still have the copied records."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.topics.position_format import Position
from mirror_lib.errors import ClusterError, MirrorError, SourceTruncatedError
from mirror_lib.identity.last_records import Comparisons, compare_last_records, newest_copies
from mirror_lib.identity.sources import CopiedFrom, SourceLog, find_truncation
from mirror_lib.identity.targets import TargetPartition, copied_to, other_record
from mirror_lib.records.last_records import is_same_copy
from mirror_lib.topology.names import TopicPartition


class LogEnds(NamedTuple):
    """A copied partition and the offsets of its two logs."""

    position: Position
    target: TopicPartition
    source_start: int
    source_end: int
    target_end: int


def changed_logs(
    source: Connection, target: Connection, asked: Mapping[TopicPartition, LogEnds]
) -> dict[TopicPartition, MirrorError]:
    """Return the error of each source partition with a log that is not the one of its position.

    A leader that does not respond is the error of its partitions, too; a user without permission to read is none.

    Args:
        source: cluster of the copied records.
        target: cluster of their copies.
        asked: what is known, by source partition.
    """
    return asyncio.run(_changed_logs(source, target, asked)) if asked else {}


async def _changed_logs(
    source: Connection, target: Connection, asked: Mapping[TopicPartition, LogEnds]
) -> dict[TopicPartition, MirrorError]:
    try:
        async with open_clients(source, target) as (from_client, to_client):
            epochs, records, copies = await asyncio.gather(
                from_client.epoch_ends(
                    {
                        each: epoch
                        for each, (position, _, _, end, _) in asked.items()
                        if (epoch := position.leader_epoch) is not None and position.offset + 1 != end
                    }
                ),
                compare_last_records(
                    from_client,
                    {
                        each: record
                        for each, (position, _, start, end, _) in asked.items()
                        if (record := position.last_record) is not None and start <= record.offset < end
                    },
                ),
                _compare_copies(to_client, asked.values()),
            )
    except ClusterError as error:
        return dict.fromkeys(asked, error)
    found: dict[TopicPartition, MirrorError] = {}
    for each, ends in asked.items():
        changed = _source_error(ends, epochs.get(each), records.get(each))
        changed = changed or _target_error(ends, copies.get(ends.target))
        if changed is not None:
            found[each] = changed
    return found


async def _compare_copies(client: RawClient, asked: Iterable[LogEnds]) -> Comparisons:
    known = newest_copies((target, position.target_record, end) for position, target, _, _, end in asked)
    return await compare_last_records(client, known, compare=is_same_copy)


def _source_error(
    ends: LogEnds, epoch_end: int | MirrorError | None, same: bool | MirrorError | None
) -> MirrorError | None:
    if isinstance(same, MirrorError):
        return same
    position = ends.position
    found = find_truncation(
        CopiedFrom(position.offset + 1, position.leader_epoch, position.last_record),
        SourceLog(ends.source_start, ends.source_end, None if isinstance(epoch_end, MirrorError) else epoch_end, same),
    )
    if found is None:
        return None
    return SourceTruncatedError(found.what, action="Run the flow, and decide about the partition (`mirror gaps list`).")


def _target_error(ends: LogEnds, same: bool | MirrorError | None) -> MirrorError | None:
    if isinstance(same, MirrorError):
        return same
    then, record = copied_to(ends.position), ends.position.target_record
    if same is not False or then is None or record is None:
        return None
    return other_record(record, then, TargetPartition(ends.target.topic, None, ends.target_end))
