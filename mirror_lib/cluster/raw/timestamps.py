"""How old the first record is that was not copied yet: the header of one batch for each of many partitions."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Iterable, Mapping, Sequence

from mirror_lib.cluster.batches import DELETE_HORIZON_BIT, LOG_APPEND_TIME_BIT, MAGIC, MAGIC_AT, parse_header
from mirror_lib.cluster.batches import HEADER as BATCH_HEADER
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchRequestPartition, RawClient, open_clients
from mirror_lib.errors import MirrorError
from mirror_lib.topology import TopicPartition

_log = logging.getLogger(__name__)

#: Bytes for each partition and partitions in one request, one round after the other. The header alone cannot be asked
#: for, and a batch that does not fit is left out: so first batches of the size that producers make by default
#: (`batch.size`), then larger ones, up to what topics take by default (`max.message.bytes`).
_ROUNDS = ((20_000, 256), (160_000, 32), (1_100_000, 4))
#: The wait for partitions that turn out to have nothing: none is wanted, for each is known to have something.
_WAIT_MS = 100
_DEFAULT_SECONDS = 20.0
_DEFAULT_BYTES = 64 * 1024 * 1024
#: Of a message of magic 1, behind its checksum, magic and attributes (Java `LegacyRecord`).
_OLD_TIMESTAMP_AT = 18
_OLD_TIMESTAMP = struct.Struct(">q")
_NO_TIMESTAMP = -1


def first_timestamps(
    connection: Connection,
    positions: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    timeout_seconds: float = _DEFAULT_SECONDS,
    max_bytes: int = _DEFAULT_BYTES,
) -> dict[TopicPartition, int]:
    """The timestamp of the first batch at a position, in epoch milliseconds, for many partitions.

    A position inside a batch gives the batch's first record, which is older than the wanted one by little. What cannot
    be had within the time and bytes allowed is missing: partitions without a leader, damaged batches, or large ones
    when time is up. Nothing is raised, since this is for people who look.

    Args:
        connection: of a consumer.
        positions: offsets that the partitions hold.
        read_committed: as the copy reads.
        timeout_seconds: for all partitions together.
        max_bytes: read from the cluster, about.
    """
    if not positions:
        return {}
    found: dict[TopicPartition, int] = {}
    try:
        asyncio.run(_read(connection, positions, found, timeout_seconds, max_bytes, read_committed=read_committed))
    except (MirrorError, TimeoutError) as error:
        _log.info(
            "The age of %d of %d partitions of cluster %s is not known: %s",
            len(positions) - len(found),
            len(positions),
            connection.cluster,
            error or "time is up",
        )
    return found


async def _read(
    connection: Connection,
    positions: Mapping[TopicPartition, int],
    found: dict[TopicPartition, int],
    timeout_seconds: float,
    max_bytes: int,
    *,
    read_committed: bool,
) -> None:
    async with asyncio.timeout(timeout_seconds), open_clients(connection) as (client,):
        await read_first_timestamps(client, positions, found, max_bytes=max_bytes, read_committed=read_committed)


async def read_first_timestamps(
    client: RawClient,
    positions: Mapping[TopicPartition, int],
    found: dict[TopicPartition, int],
    *,
    max_bytes: int = _DEFAULT_BYTES,
    read_committed: bool,
) -> None:
    """As `first_timestamps`, over connections that are there; adds to `found` what it finds.

    Raises:
        MirrorError: a broker does not answer.
    """
    await client.refresh_leaders({source.topic for source in positions})
    by_leader: dict[int, list[TopicPartition]] = {}
    for source in sorted(positions):
        leader = client.leader(source)
        if leader is not None:
            by_leader.setdefault(leader, []).append(source)
    share = max_bytes // max(len(by_leader), 1)
    readers = (
        _Reader(client, leader, positions, found, share, read_committed=read_committed).read(sources)
        for leader, sources in by_leader.items()
    )
    # One broker that does not answer hides nothing of the others.
    for outcome in await asyncio.gather(*readers, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


class _Reader:
    """Reads from one leader, until all partitions have answered or the bytes are used up."""

    def __init__(
        self,
        client: RawClient,
        leader: int,
        positions: Mapping[TopicPartition, int],
        found: dict[TopicPartition, int],
        max_bytes: int,
        *,
        read_committed: bool,
    ) -> None:
        self._client = client
        self._leader = leader
        self._positions = positions
        self._found = found
        self._left = max_bytes
        self._read_committed = read_committed

    async def read(self, sources: Iterable[TopicPartition]) -> None:
        """Ask again, with more room, for those whose batch did not fit."""
        silent = list(sources)
        for room, at_once in _ROUNDS:
            waiting, silent = silent, []
            for first in range(0, len(waiting), at_once):
                if self._left > 0:
                    silent += await self._ask(waiting[first : first + at_once], room)

    async def _ask(self, asked: Sequence[TopicPartition], room: int) -> list[TopicPartition]:
        """Read once; returns those whose batch did not fit."""
        answers = await self._client.fetch(
            self._leader,
            [FetchRequestPartition(*source, self._positions[source], room) for source in asked],
            max_bytes=room * len(asked),
            max_wait_ms=_WAIT_MS,
            read_committed=self._read_committed,
        )
        silent = []
        for answer in answers:
            source = TopicPartition(answer.topic, answer.partition)
            self._left -= len(answer.records)
            if not answer.error_code and not len(answer.records):
                silent.append(source)
            timestamp = batch_timestamp(answer.records)
            if timestamp is not None:
                self._found[source] = timestamp
        return silent


def batch_timestamp(records: bytes | memoryview) -> int | None:
    """When the first record of the first batch was written, in epoch milliseconds; None where that cannot be told.

    Nothing is checked or decompressed. Where the broker set the times (`LogAppendTime`), or the batch has a delete
    horizon in that place (KIP-534), it is the time of the batch's youngest record.
    """
    if len(records) <= MAGIC_AT:
        return None
    magic = records[MAGIC_AT]
    if magic == MAGIC:
        if len(records) < BATCH_HEADER.size:
            return None
        header = parse_header(records)
        youngest = header.attributes & (LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT)
        timestamp = header.max_timestamp if youngest else header.first_timestamp
    elif magic == 1 and len(records) >= _OLD_TIMESTAMP_AT + _OLD_TIMESTAMP.size:
        (timestamp,) = _OLD_TIMESTAMP.unpack_from(records, _OLD_TIMESTAMP_AT)
    else:
        return None
    return None if timestamp <= _NO_TIMESTAMP else timestamp
