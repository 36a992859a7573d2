"""How many offsets without a record a copy will meet: estimated by what some places of the source's logs hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.config.model import FlowConfig, IsolationLevel
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.errors import MirrorError
from mirror_lib.planning.model import PartitionPlan
from mirror_lib.records.spans import Span
from mirror_lib.topology.names import TopicPartition

#: The largest partitions, and the shares of their offsets at which they are read: at most 4 MiB each.
_MOST_PARTITIONS, _AT_A_TIME, _PLACES = 64, 4, (0.0, 0.4, 0.8)
#: Markers a second on one partition, and on all of a run, as measured by `./run bench same-offsets`.
_PARTITION_RATE, _RUN_RATE = 100, 2_000


@dataclass(frozen=True, slots=True)
class ExpectedHoles:
    """Estimated numbers of offsets without a record."""

    by_partition: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        return sum(self.by_partition.values())

    @property
    def seconds(self) -> float:
        """How long the markers take: those of the partition with most of them, or all together."""
        return max(max(self.by_partition.values(), default=0) / _PARTITION_RATE, self.total / _RUN_RATE)


def estimate(flow: FlowConfig, partitions: Iterable[PartitionPlan]) -> ExpectedHoles | None:
    """Read some places of the largest partitions; None if the source cannot be read.

    Of the partitions that are not read the share is taken for the average.
    """
    largest = sorted(partitions, key=lambda each: each.start - each.end)
    try:
        shares = asyncio.run(_shares(flow, largest[:_MOST_PARTITIONS]))
    except MirrorError:
        return None
    if not shares:
        return None
    average = sum(shares.values()) / len(shares)
    return ExpectedHoles(
        {each.source: round((each.end - each.start) * shares.get(each.source, average)) for each in largest}
    )


async def _shares(flow: FlowConfig, partitions: Sequence[PartitionPlan]) -> dict[TopicPartition, float]:
    limit, found = asyncio.Semaphore(_AT_A_TIME), dict[TopicPartition, float]()
    async with open_clients(Connection.from_settings(flow.clients.data_consumer)) as (client,):

        async def one(partition: PartitionPlan) -> None:
            async with limit:
                try:
                    share = await _share(flow, client, partition)
                except MirrorError:
                    return
                if share is not None:
                    found[partition.source] = share

        await asyncio.gather(*(one(each) for each in partitions))
    return found


async def _share(flow: FlowConfig, client: RawClient, partition: PartitionPlan) -> float | None:
    committed = flow.isolation_level is IsolationLevel.READ_COMMITTED
    reader = PartitionReader(client, partition.source, flow.copy_settings, read_committed=committed)
    width = partition.end - partition.start
    records = offsets = 0
    for offset in sorted({partition.start + int(width * place) for place in _PLACES}):
        here, of = records_among(await reader.read(offset), offset)
        records, offsets = records + here, offsets + of
    return 1 - records / offsets if offsets else None


def records_among(spans: Sequence[Span], offset: int) -> tuple[int, int]:
    """The number of visible records of the spans from an offset on, and of the offsets that they take."""
    whole = [each for each in spans if each.first >= offset]
    if not whole:
        return 0, 0
    return sum(each.count for each in whole), whole[-1].next_offset - whole[0].first
