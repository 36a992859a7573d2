"""Check that the target still has the last copied records: a log may end where the copy does, and be another.

A target that lost copied records and got as many from another producer has the same end and, after a restored snapshot,
the same leader epochs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from mirror_lib.cluster.admin.client import OffsetFact
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import open_clients
from mirror_lib.cluster.topics.position_store import StoredPosition
from mirror_lib.errors import ClusterError, MirrorError
from mirror_lib.identity.last_records import compare_last_records, newest_copies
from mirror_lib.planning.idle_looks import in_turn
from mirror_lib.records.last_records import LastRecord, is_same_copy
from mirror_lib.topology.names import TopicPartition

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
    copied = [(source, target) for source, target in pairs if source in positions and target in target_ends]
    known = newest_copies(
        (target, positions[source].position.target_record, target_ends[target].offset)
        for source, target in copied
        if target_ends[target].error is None
    )
    lagging = {
        target for source, target in copied if positions[source].position.offset + 1 != source_ends[source].offset
    }
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
