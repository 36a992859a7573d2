"""Reads the age of the first record that is not copied yet: the header of one batch for each of many partitions."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchRequestPartition, RawClient, open_clients
from mirror_lib.cluster.raw.leaders import by_leader
from mirror_lib.errors import MirrorError
from mirror_lib.records.header import DELETE_HORIZON_BIT, LOG_APPEND_TIME_BIT, MAGIC, MAGIC_AT, parse_header
from mirror_lib.records.header import HEADER as BATCH_HEADER
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)

#: Bytes per partition and partitions per request, for each round. A request for the header alone is not possible, and a
#: batch that does not fit is omitted: so first batches of producers' default size (`batch.size`), then larger ones, up
#: to topics' default limit (`max.message.bytes`).
_ROUNDS = ((20_000, 256), (160_000, 32), (1_100_000, 4))
#: Maximum wait for partitions that turn out to be empty: each is known to have records, so it should not be needed.
_WAIT_MS = 100
_DEFAULT_SECONDS = 20.0
_DEFAULT_BYTES = 64 * 1024 * 1024
#: In a message of magic 1, after its checksum, magic and attributes (Java `LegacyRecord`).
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

    For a position inside a batch, it is the batch's first record, which is slightly older than the requested one.
    Partitions are missing if the time or bytes do not suffice: without a leader, with damaged batches, or with large
    ones at the end of the time. Never raises, since it is for display.

    Args:
        connection: of a consumer.
        positions: offsets that exist in the partitions.
        read_committed: as the copy reads.
        timeout_seconds: for all partitions together.
        max_bytes: approximate limit of bytes read from the cluster.
    """
    if not positions:
        return {}
    found: dict[TopicPartition, int] = {}
    try:
        asyncio.run(_read(connection, positions, found, timeout_seconds, max_bytes, read_committed=read_committed))
    except (MirrorError, TimeoutError) as error:
        _log.info(
            "The age of %d of %d partitions of cluster %s is unknown: %s",
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
    """As `first_timestamps`, over existing connections; adds results to `found`.

    Raises:
        MirrorError: a broker does not respond.
    """
    await client.refresh_leaders({source.topic for source in positions})
    led = by_leader(client, sorted(positions)).led
    share = max_bytes // max(len(led), 1)
    readers = (
        _Reader(client, leader, positions, found, share, read_committed).read(sources)
        for leader, sources in led.items()
    )
    # An unreachable broker must not hide the results of others.
    for outcome in await asyncio.gather(*readers, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


@dataclass(slots=True)
class _Reader:
    """Reads from one leader, until all partitions have a result or the bytes are used up."""

    _client: RawClient
    _leader: int
    _positions: Mapping[TopicPartition, int]
    _found: dict[TopicPartition, int]
    #: Bytes that may still be read.
    _left: int
    _read_committed: bool

    async def read(self, sources: Iterable[TopicPartition]) -> None:
        """Repeat the request, with a greater limit, for partitions whose batch did not fit."""
        silent = list(sources)
        for room, at_once in _ROUNDS:
            waiting, silent = silent, []
            for first in range(0, len(waiting), at_once):
                if self._left > 0:
                    silent += await self._ask(waiting[first : first + at_once], room)

    async def _ask(self, partitions: Sequence[TopicPartition], room: int) -> list[TopicPartition]:
        """Read once; return the partitions whose batch did not fit."""
        responses = await self._client.fetch(
            self._leader,
            [FetchRequestPartition(*source, self._positions[source], room) for source in partitions],
            max_bytes=room * len(partitions),
            max_wait_ms=_WAIT_MS,
            read_committed=self._read_committed,
        )
        silent = []
        for response in responses:
            source = TopicPartition(response.topic, response.partition)
            self._left -= len(response.records)
            if not response.error_code and not len(response.records):
                silent.append(source)
            timestamp = batch_timestamp(response.records)
            if timestamp is not None:
                self._found[source] = timestamp
        return silent


def batch_timestamp(records: bytes | memoryview) -> int | None:
    """The timestamp of the first record of the first batch, in epoch milliseconds; None if it cannot be determined.

    Nothing is checked or decompressed. If the broker sets timestamps (`LogAppendTime`), or the batch has a delete
    horizon in this field (KIP-534), it is the timestamp of the batch's newest record.
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
