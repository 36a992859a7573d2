"""Check that the target still has the last copied records: a log may end where the copy does, and be another.

A target that lost copied records and got as many from another producer has the same end and, after a restored snapshot,
the same leader epochs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from mirror_lib.cluster import Connection
from mirror_lib.cluster.admin import OffsetFact
from mirror_lib.cluster.batches import is_same_copy
from mirror_lib.cluster.raw import open_clients
from mirror_lib.cluster.topics import LastRecord, StoredPosition
from mirror_lib.errors import ClusterError, MirrorError
from mirror_lib.identity import compare_last_records
from mirror_lib.relay.planning.idle_looks import in_turn
from mirror_lib.topology import TopicPartition

Pairs = Sequence[tuple[TopicPartition, TopicPartition]]


def compare_targets(
    data: Connection,
    pairs: Pairs,
    positions: Mapping[TopicPartition, StoredPosition],
    source_ends: Mapping[TopicPartition, OffsetFact],
    target_ends: Mapping[TopicPartition, OffsetFact],
    *,
    known_again: set[TopicPartition],
    turn: Callable[[], int] | None = None,
) -> dict[TopicPartition, bool | MirrorError]:
    """Return for source partitions whether the target still has the record of their position; unknown ones are missing.

    Args:
        data: the target.
        pairs: source partitions with their target partitions.
        positions: of the source partitions.
        source_ends: log end offsets of the source: partitions without lag may be asked in turn.
        target_ends: log end offsets of the target.
        known_again: target partitions that need not be asked; those that are found are added.
        turn: as for `in_turn`.
    """
    known: dict[TopicPartition, LastRecord] = {}
    lagging: set[TopicPartition] = set()
    for source, target in pairs:
        position, end = positions.get(source), target_ends.get(target)
        record = position.position.target_record if position else None
        if position is None or record is None or end is None or end.error is not None or record.offset >= end.offset:
            continue
        # Of partitions with the same target, the record that was written last.
        if target not in known or known[target].offset < record.offset:
            known[target] = record
        if position.position.offset + 1 != source_ends[source].offset:
            lagging.add(target)
    idle = known.keys() - lagging
    asked = {each: record for each, record in in_turn(known, idle, turn).items() if each not in known_again}
    if not asked:
        return {}
    compared = asyncio.run(_compare(data, asked))
    known_again.update(each for each, same in compared.items() if same is True)
    return {source: compared[target] for source, target in pairs if target in compared}


async def _compare(
    data: Connection, known: Mapping[TopicPartition, LastRecord]
) -> Mapping[TopicPartition, bool | MirrorError]:
    try:
        async with open_clients(data) as (client,):
            return await compare_last_records(client, known, compare=is_same_copy)
    except ClusterError as error:
        return dict.fromkeys(known, error) if error.retriable else {}
