"""Move the end of a target partition without records to an offset: filler records, which are deleted at once.

Filler is compressed records without key, value and headers: ten million take some seconds and megabytes. One
idempotent producer writes them batch by batch, so a retry appends nothing twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.copy.takeover.partition_appender import PartitionAppender
from mirror_lib.errors import MirrorError, RecordTooLargeError, Where
from mirror_lib.records.builder import BatchBuilder
from mirror_lib.records.header import Codec
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record
from mirror_lib.records.stamping import stamp
from mirror_lib.topology.names import TopicPartition

#: Records in a batch: about 60 kB.
MOST_RECORDS = 100_000
#: No key, no value, no headers.
_EMPTY = b"\x01\x01\x00"
_AT_A_TIME = 8
_IDENTITY_SECONDS = 60.0
_SEQUENCES = 2**31
_NO_LIMIT = 1 << 30


async def pad(
    client: RawClient,
    ends: Mapping[TopicPartition, tuple[int, int]],
    *,
    retry_seconds: float,
    on_padded: Callable[[int], None] = lambda _: None,
) -> dict[TopicPartition, MirrorError]:
    """Append filler to partitions; return the errors of those where that failed.

    Args:
        client: client of the target.
        ends: the present end of each partition and the wanted one.
        retry_seconds: how long errors that may pass are retried.
        on_padded: called with the number of offsets that a batch has filled.
    """
    await client.refresh_leaders({place.topic for place in ends})
    limit, failed = asyncio.Semaphore(_AT_A_TIME), dict[TopicPartition, MirrorError]()

    async def one(place: TopicPartition, first: int, end: int) -> None:
        async with limit:
            try:
                await _pad(client, place, first, end, retry_seconds=retry_seconds, on_padded=on_padded)
            except MirrorError as error:
                failed[place] = error

    await asyncio.gather(*(one(place, *each) for place, each in ends.items()))
    return failed


async def _pad(
    client: RawClient,
    place: TopicPartition,
    first: int,
    end: int,
    *,
    retry_seconds: float,
    on_padded: Callable[[int], None],
) -> None:
    where = Where(cluster=client.cluster, topic=place.topic, partition=place.partition)
    identity = await client.producers.new_producer_id(deadline=time.monotonic() + _IDENTITY_SECONDS)
    appender = PartitionAppender(client, place, retry_seconds, where=where, doing=f"fill the start of {place}")
    most, sequence, batch = MOST_RECORDS, 0, None
    while first < end:
        count = min(most, end - first)
        if batch is None or batch.count != count:
            batch = filler(count)
        stamped = replace(batch, payload=bytearray(batch.payload))
        stamp(stamped, identity.producer_id, identity.epoch, sequence)
        try:
            await appender.append(stamped)
        except RecordTooLargeError:
            if count == 1:
                raise
            most = count // 2
            continue
        first += count
        sequence = (sequence + count) % _SEQUENCES
        on_padded(count)


def filler(count: int) -> ReadyBatch:
    """A batch of records without content, with the present time."""
    builder, now = BatchBuilder(Codec.ZSTD), int(time.time() * 1000)
    for offset in range(count):
        builder.add(Record(offset, now, _EMPTY))
    return builder.build(_NO_LIMIT)
