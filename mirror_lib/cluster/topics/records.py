"""Records of the internal topics, as they are read and written."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from mirror_lib.errors import TransientError, Where


class TopicRecord(NamedTuple):
    """One record of a small topic."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    #: Epoch milliseconds; None if it has none.
    timestamp_ms: int | None = None


class NewRecord(NamedTuple):
    """One record to write."""

    partition: int
    key: bytes
    #: None deletes the key (compaction).
    value: bytes | None
    #: Epoch milliseconds; None uses the client's time of writing.
    timestamp_ms: int | None = None


class RecordPlace(NamedTuple):
    """Partition and offset of a record."""

    partition: int
    offset: int


def leaderless_error(where: Where, doing: str, leaderless: list[int]) -> TransientError:
    """The error for partitions without a leader."""
    one = len(leaderless) == 1
    which = f"partition {leaderless[0]} has" if one else f"partitions {', '.join(map(str, leaderless))} have"
    return TransientError(
        f"could not {doing}: {which} no leader, because no broker with an in-sync replica runs.",
        where=replace(where, partition=leaderless[0]),
        action=f"Start the brokers of its replicas: `kafka-topics.sh --describe --topic {where.topic} "
        "--unavailable-partitions` lists them. A topic with one replica needs this one broker.",
    )
