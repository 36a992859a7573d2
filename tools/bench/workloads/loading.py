"""Writes workloads into a source cluster, with exactly the specified batches, and reads them back.

An ordinary producer decides itself where a batch ends; here batches are built beforehand and produced unchanged.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchRequestPartition, ProducedPartition, RawClient
from mirror_lib.config.model import ClientSettings
from mirror_lib.topology.names import TopicPartition
from tools.bench.errors import BenchError
from tools.bench.workloads.shape import Shape, check_shape
from tools.bench.workloads.workload import BatchMill, Workload

_REQUESTS_IN_FLIGHT = 8
_PRODUCE_TIMEOUT_MS = 30_000
_FETCH_BYTES, _FETCH_PARTITION_BYTES = 16 * 1024 * 1024, 2 * 1024 * 1024


def load(bootstrap_servers: str, workload: Workload, partitions: int) -> Shape:
    """Write a workload into the existing topic of its name, then read all of it to check that it is as specified.

    Raises:
        BenchError: the topic does not hold the workload afterwards.
    """
    return asyncio.run(_load(bootstrap_servers, workload, partitions))


def write(bootstrap_servers: str, workload: Workload, partitions: int) -> None:
    """Write a workload into the existing topic of its name."""

    async def write_all() -> None:
        async with _connected(bootstrap_servers, workload.name) as client:
            await _write(client, workload, partitions)

    asyncio.run(write_all())


async def _load(bootstrap_servers: str, workload: Workload, partitions: int) -> Shape:
    async with _connected(bootstrap_servers, workload.name) as client:
        await _write(client, workload, partitions)
        shape = await _read(client, workload, partitions)
    check_shape(shape, workload, partitions)
    return shape


@asynccontextmanager
async def _connected(bootstrap_servers: str, topic: str) -> AsyncIterator[RawClient]:
    settings = ClientSettings(cluster="bench", role="loader", properties={"bootstrap.servers": bootstrap_servers})
    async with RawClient(Connection.from_settings(settings)) as client:
        failed = await client.refresh_leaders([topic])
        if failed:
            raise BenchError(f"topic {topic} cannot be described (error code {failed[topic]}).")
        yield client


def _leader(client: RawClient, topic: str) -> int:
    """Return the one broker of a cluster of the comparison."""
    leader = client.leader(TopicPartition(topic, 0))
    if leader is None:
        raise BenchError(f"topic {topic} has no leader.")
    return leader


async def _write(client: RawClient, workload: Workload, partitions: int) -> None:
    mill, leader = BatchMill(workload), _leader(client, workload.name)
    first_timestamp = workload.first_timestamp(partitions, time.time())
    streams = [mill.batches(partition, partitions, first_timestamp) for partition in range(partitions)]
    free = asyncio.Semaphore(_REQUESTS_IN_FLIGHT)

    async def send(request: Sequence[tuple[str, int, bytearray]]) -> None:
        try:
            _check(await client.produce(leader, request, timeout_ms=_PRODUCE_TIMEOUT_MS))
        finally:
            free.release()

    try:
        async with asyncio.TaskGroup() as requests:
            while request := [
                (workload.name, partition, batch)
                for partition, stream in enumerate(streams)
                if (batch := next(stream, None)) is not None
            ]:
                await free.acquire()
                requests.create_task(send(request))
    except ExceptionGroup as failed:
        # The others fail because of the first one's broken connection.
        raise failed.exceptions[0] from None


def _check(produced: Sequence[ProducedPartition]) -> None:
    for answer in produced:
        if answer.error_code:
            raise BenchError(
                f"{answer.topic}-{answer.partition} refused a batch with error code {answer.error_code}.",
            )


async def _read(client: RawClient, workload: Workload, partitions: int) -> Shape:
    shape, leader = Shape(), _leader(client, workload.name)
    ends = {partition: workload.records_of(partition, partitions) for partition in range(partitions)}
    next_offsets = dict.fromkeys(ends, 0)
    while wanted := [partition for partition, end in ends.items() if next_offsets[partition] < end]:
        # The broker fills the response from the front: rotate the list so that every partition makes progress.
        turn = sum(next_offsets.values()) % len(wanted)
        fetched = await client.fetch(
            leader,
            [
                FetchRequestPartition(workload.name, partition, next_offsets[partition], _FETCH_PARTITION_BYTES)
                for partition in wanted[turn:] + wanted[:turn]
            ],
            max_bytes=_FETCH_BYTES,
            max_wait_ms=500,
            read_committed=False,
        )
        progress = False
        for answer in fetched:
            if answer.error_code:
                raise BenchError(f"{answer.topic}-{answer.partition} cannot be read: error code {answer.error_code}.")
            after = shape.add(answer.records)
            if after is not None:
                next_offsets[answer.partition] = after
                progress = True
        if not progress:
            raise BenchError(f"{workload.name} ends early: {shape.records} of {workload.records} records are there.")
    return shape
