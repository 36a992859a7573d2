"""Which idle partitions a plan asks for their last copied records: a log may end where the copy does, and be another.

A log that lost copied records and has grown to the same end looks idle. All partitions are asked in every run as
long as that is cheap, else a part in every run, in rotation. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from mirror_lib.identity.last_records import MOST_BYTES, MOST_PARTITIONS
from mirror_lib.records.last_records import LastRecord
from mirror_lib.topology.names import TopicPartition


def in_turn(
    known: Mapping[TopicPartition, LastRecord], idle: Collection[TopicPartition], turn: Callable[[], int] | None
) -> dict[TopicPartition, LastRecord]:
    """The records that a plan asks for: of partitions with lag all, of idle ones a part.

    Args:
        known: the last records by partition.
        idle: the partitions without lag.
        turn: the number of this plan; None asks for all.
    """
    if turn is None:
        return dict(known)
    split = parts({each: record for each, record in known.items() if each in idle})
    if len(split) < 2:
        return dict(known)
    return {**{each: record for each, record in known.items() if each not in idle}, **split[turn() % len(split)]}


def parts(idle: Mapping[TopicPartition, LastRecord]) -> list[dict[TopicPartition, LastRecord]]:
    """Split the last records of idle partitions into parts that one plan may ask for; the same as long as they are."""
    found: list[dict[TopicPartition, LastRecord]] = []
    size = 0
    for partition, record in sorted(idle.items()):
        if not found or len(found[-1]) == MOST_PARTITIONS or size + record.batch_bytes > MOST_BYTES:
            found.append({})
            size = 0
        found[-1][partition] = record
        size += record.batch_bytes
    return found
