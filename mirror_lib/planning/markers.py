"""Which log offsets are only transaction markers and aborted records: what no consumer of committed records sees.

The end of a log shows that something was written, not what. A run that was stopped and continues writes a marker
after its successor has ended; a coordinator writes one when it aborts a transaction that nobody ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchRequestPartition, RawClient, open_clients
from mirror_lib.cluster.raw.leaders import by_leader
from mirror_lib.errors import MirrorError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import read_spans
from mirror_lib.topology.names import TopicPartition

#: Bytes per partition and response: some hundred markers.
_PARTITION_BYTES = 64 * 1024
#: Partitions of one request: a response of 8 MiB.
_PARTITIONS = 128
_RESPONSE_BYTES = _PARTITIONS * _PARTITION_BYTES
#: Offsets before the log's end are returned at once.
_WAIT_MS = 500
#: Responses per partition; what is not read to its end then may be records.
_RESPONSES = 8

#: Offsets [first, following) of partitions.
Ranges = Mapping[TopicPartition, tuple[int, int]]


@dataclass(slots=True)
class WrittenRanges:
    """Which offsets of a cluster's logs have committed records. Plans of one run ask again; each range is read once."""

    _data: Connection
    _has_records: dict[tuple[TopicPartition, tuple[int, int]], bool] = field(default_factory=dict)

    def with_records(self, ranges: Ranges) -> Ranges:
        """Return the ranges that have committed records, and those of which that is not certain.

        A partition that cannot be read now, or whose transactions have not ended, may have records.
        """
        unknown = dict(ranges.items() - self._has_records.keys())
        if unknown:
            found = asyncio.run(_have_records(self._data, unknown))
            self._has_records |= {(each, unknown[each]): records for each, records in found.items()}
        return {each: offsets for each, offsets in ranges.items() if self._has_records.get((each, offsets), True)}


async def _have_records(data: Connection, ranges: Ranges) -> dict[TopicPartition, bool]:
    """Return whether ranges have committed records; those that cannot be read to their end are missing."""
    try:
        async with open_clients(data) as (client,):
            await client.refresh_leaders({partition.topic for partition in ranges})
            requests = (
                _read(client, node, {each: ranges[each] for each in part})
                for node, led in by_leader(client, ranges).led.items()
                for part in _parts(led)
            )
            found: dict[TopicPartition, bool] = {}
            for each in await asyncio.gather(*requests):
                found |= each
            return found
    except MirrorError:
        return {}


def _parts(led: list[TopicPartition]) -> Iterator[list[TopicPartition]]:
    remaining = iter(led)
    while part := list(islice(remaining, _PARTITIONS)):
        yield part


async def _read(client: RawClient, node: int, ranges: Ranges) -> dict[TopicPartition, bool]:
    found: dict[TopicPartition, bool] = {}
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
            if response.error_code or not spans:
                del reached[partition]
            elif not all(span.is_hidden for span in spans if span.first < following):
                del reached[partition]
                found[partition] = True
            elif spans[-1].next_offset >= following:
                del reached[partition]
                found[partition] = False
            else:
                reached[partition] = spans[-1].next_offset
    return found
