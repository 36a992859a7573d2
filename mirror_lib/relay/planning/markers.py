"""Which log offsets are only transaction markers and aborted records: what no consumer of committed records sees.

The end of a log shows that something was written, not what. A run that was stopped and continues writes a marker
after its successor has ended; a coordinator writes one when it aborts a transaction that nobody ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice

from mirror_lib.cluster import Connection
from mirror_lib.cluster.batches import RecordError, read_spans
from mirror_lib.cluster.raw import FetchRequestPartition, RawClient, by_leader, open_clients
from mirror_lib.errors import MirrorError
from mirror_lib.topology import TopicPartition

#: Bytes per partition and response: some hundred markers.
_PARTITION_BYTES = 64 * 1024
#: Partitions of one request: a response of 8 MiB.
_PARTITIONS = 128
_RESPONSE_BYTES = _PARTITIONS * _PARTITION_BYTES
#: Offsets before the log's end are returned at once.
_WAIT_MS = 500
#: Responses per partition; what is not read to its end then counts as records.
_RESPONSES = 8

#: Offsets [first, following) of partitions.
Ranges = Mapping[TopicPartition, tuple[int, int]]


def only_markers(data: Connection, ranges: Ranges) -> frozenset[TopicPartition]:
    """Return the partitions whose offsets certainly have no committed record.

    A partition that cannot be read, or whose transactions have not ended, is not returned: it may have records.
    """
    return asyncio.run(_only_markers(data, ranges)) if ranges else frozenset()


async def _only_markers(data: Connection, ranges: Ranges) -> frozenset[TopicPartition]:
    try:
        async with open_clients(data) as (client,):
            await client.refresh_leaders({partition.topic for partition in ranges})
            requests = (
                _read(client, node, {each: ranges[each] for each in part})
                for node, led in by_leader(client, ranges).led.items()
                for part in _parts(led)
            )
            return frozenset[TopicPartition]().union(*await asyncio.gather(*requests))
    except MirrorError:
        return frozenset()


def _parts(led: list[TopicPartition]) -> Iterator[list[TopicPartition]]:
    remaining = iter(led)
    while part := list(islice(remaining, _PARTITIONS)):
        yield part


async def _read(client: RawClient, node: int, ranges: Ranges) -> set[TopicPartition]:
    found: set[TopicPartition] = set()
    reached = {partition: first for partition, (first, _) in ranges.items()}
    for _ in range(_RESPONSES):
        if not reached:
            break
        wanted = [FetchRequestPartition(*each, offset, _PARTITION_BYTES) for each, offset in reached.items()]
        responses = await client.fetch(
            node, wanted, max_bytes=_RESPONSE_BYTES, max_wait_ms=_WAIT_MS, read_committed=True
        )
        for response in responses:
            partition = TopicPartition(response.topic, response.partition)
            try:
                spans, _ = read_spans(response.records, response.aborted, read_committed=True)
            except RecordError:
                spans = []
            following = ranges[partition][1]
            inside = [span for span in spans if span.first < following]
            if response.error_code or not spans or not all(span.is_hidden for span in inside):
                del reached[partition]
            elif spans[-1].next_offset >= following:
                del reached[partition]
                found.add(partition)
            else:
                reached[partition] = spans[-1].next_offset
    return found
