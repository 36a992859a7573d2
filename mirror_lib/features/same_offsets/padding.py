"""Move the end of a target partition without records to an offset: filler records, which are deleted at once.

Filler is compressed records without key, value and headers: ten million take some seconds and megabytes. Their producer
is the one of the partition's copy (`transactional_id`): a retry appends nothing twice, and as soon as a later step or
run has written, a step that was suspended can append no more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import accumulate

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.copy.takeover.partition_appender import PartitionAppender
from mirror_lib.copy.transfer.open_positions import transactional_id
from mirror_lib.errors import MirrorError, OffsetsDifferError, RecordTooLargeError, Where
from mirror_lib.records.compression.codecs import compress, decompress
from mirror_lib.records.header import CODEC_BITS, Codec, new_batch
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record, encode_head
from mirror_lib.records.spans import Span
from mirror_lib.records.stamping import stamp
from mirror_lib.topology.names import FlowId, TopicPartition

#: Records in a batch: about 60 kB.
MOST_RECORDS = 100_000
#: No key, no value, no headers.
_EMPTY = b"\x01\x01\x00"
_AT_A_TIME = 8
_IDENTITY_SECONDS = 60.0
_SEQUENCES = 2**31


async def pad(
    client: RawClient,
    flow: FlowId,
    ends: Mapping[TopicPartition, tuple[int, int]],
    *,
    retry_seconds: float,
    on_padded: Callable[[int], None] = lambda _: None,
) -> dict[TopicPartition, MirrorError]:
    """Append filler to partitions; return the errors of those where that failed.

    Args:
        client: client of the target.
        flow: the flow that will copy to the partitions.
        ends: the present end of each partition and the wanted one.
        retry_seconds: how long errors that may pass are retried.
        on_padded: called with the number of offsets that a batch has filled.
    """
    await client.refresh_leaders({place.topic for place in ends})
    limit, failed = asyncio.Semaphore(_AT_A_TIME), dict[TopicPartition, MirrorError]()

    async def one(place: TopicPartition, first: int, end: int) -> None:
        async with limit:
            try:
                await _pad(client, flow, place, first, end, retry_seconds=retry_seconds, on_padded=on_padded)
            except MirrorError as error:
                failed[place] = error

    await asyncio.gather(*(one(place, *each) for place, each in ends.items()))
    return failed


async def _pad(
    client: RawClient,
    flow: FlowId,
    place: TopicPartition,
    first: int,
    end: int,
    *,
    retry_seconds: float,
    on_padded: Callable[[int], None],
) -> None:
    where = Where(cluster=client.cluster, topic=place.topic, partition=place.partition)
    name, deadline = transactional_id(flow, place), time.monotonic() + _IDENTITY_SECONDS
    identity = await client.producers.init_producer_id(name, deadline=deadline)
    appender = PartitionAppender(client, place, retry_seconds, where=where, doing=f"fill the start of {place}")
    most, sequence, batch = MOST_RECORDS, 0, None
    while first < end:
        count = min(most, end - first)
        if batch is None or batch.count != count:
            batch = filler(count)
        stamped = replace(batch, payload=bytearray(batch.payload))
        stamp(stamped, identity.producer_id, identity.epoch, sequence)
        try:
            offset = await appender.append(stamped)
        except RecordTooLargeError:
            if count == 1:
                raise
            most = count // 2
            continue
        if offset not in (None, first):
            raise OffsetsDifferError(
                f"filler was appended at offset {offset}, expected {first}: another producer writes to {place}.",
                where=where,
                action="Find that producer. The next run continues; if it refuses the target, delete the topic.",
            )
        first += count
        sequence = (sequence + count) % _SEQUENCES
        on_padded(count)


async def is_filled(read: Callable[[int], Awaitable[Sequence[Span]]], first: int, end: int) -> bool:
    """True if the offsets [first, end) of a log hold filler, and nothing else."""
    offset = first
    while offset < end:
        spans = await read(offset)
        if not spans or not all(_is_filler(each) for each in spans):
            return False
        offset = spans[-1].next_offset
    return True


def _is_filler(span: Span) -> bool:
    if span.header is None or not span.dense or span.count > MOST_RECORDS:
        return False
    # Brokers may compress in another way.
    return bytes(decompress(span.header.attributes & CODEC_BITS, memoryview(span.body))) == _content(span.count)


def filler(count: int) -> ReadyBatch:
    """A batch of records without content, with the present time."""
    now, body = int(time.time() * 1000), compress(Codec.ZSTD, _content(count))
    payload = new_batch(body, codec=Codec.ZSTD, count=count, first_timestamp=now, max_timestamp=now)
    return ReadyBatch(payload, count, ((0, count),), count, now, now)


def _content(count: int) -> bytes:
    records, ends = _records(MOST_RECORDS)
    return records[: ends[count - 1]]


@lru_cache(maxsize=1)
def _records(most: int) -> tuple[bytes, tuple[int, ...]]:
    """The records of the largest batch, and where each of them ends: smaller ones begin with the same."""
    heads = (encode_head(Record(number, 0, _EMPTY), offset_delta=number, timestamp_delta=0) for number in range(most))
    records = [head + _EMPTY for head in heads]
    return b"".join(records), tuple(accumulate(map(len, records)))
