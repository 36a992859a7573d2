"""Many topics on the source, and records spread evenly over their partitions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from mirror_lib.cluster.admin.results import batches
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.config.model import ClientSettings
from mirror_lib.topology.names import TopicPartition
from tools.bench.errors import BenchError
from tools.bench.workloads.workload import BatchKind, BatchMill, Codec, Workload

_TIMEOUT = 120.0
#: Of one request. A controller rejects requests that would write more than 10,000 records to its log
#: (`QuorumController`).
_NEW_PARTITIONS_AT_ONCE = 1000
#: Partitions of one topic: a topic with thousands is rare, and deleting it slow.
_PARTITIONS_OF_TOPIC = 100
_REQUESTS_IN_FLIGHT = 4
_REQUEST_BYTES = 4 * 1024 * 1024
_PRODUCE_TIMEOUT_MS = 60_000
#: Uncompressed bytes of a batch, as long as a record is smaller.
_BATCH_BYTES = 128 * 1000
_AGE_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Place:
    """A topic and its number of partitions."""

    topic: str
    partitions: int


def places(prefix: str, partitions: int) -> tuple[Place, ...]:
    """Return topics with this many partitions together."""
    full, rest = divmod(partitions, _PARTITIONS_OF_TOPIC)
    sizes = [_PARTITIONS_OF_TOPIC] * full + ([rest] if rest else [])
    return tuple(Place(f"{prefix}-{number:04}", size) for number, size in enumerate(sizes))


def records_of(value_bytes: int, total_bytes: int, partitions: int) -> Workload:
    """Return records of one size that have this many bytes together, at least one for each partition."""
    records = max(total_bytes // value_bytes, partitions)
    per_batch = max(min(_BATCH_BYTES // value_bytes, records // partitions), 1)
    return Workload("growth", "growth", records, value_bytes, Codec.LZ4, per_batch, BatchKind.FULL)


def create(bootstrap_servers: str, wanted: Sequence[Place]) -> None:
    """Create topics with one replica and the broker's defaults."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for part in batches(wanted, _NEW_PARTITIONS_AT_ONCE, weight=lambda each: each.partitions):
        some = [NewTopic(each.topic, each.partitions, 1) for each in part]
        for future in admin.create_topics(some, operation_timeout=_TIMEOUT, request_timeout=_TIMEOUT).values():
            future.result(_TIMEOUT)


def write(bootstrap_servers: str, workload: Workload, wanted: Sequence[Place]) -> None:
    """Write the workload, spread evenly over all partitions of these topics.

    Raises:
        BenchError: a batch was rejected, or the topics get no leaders.
    """
    asyncio.run(_write(bootstrap_servers, workload, wanted))


async def _write(bootstrap_servers: str, workload: Workload, wanted: Sequence[Place]) -> None:
    settings = ClientSettings(cluster="bench", role="loader", properties={"bootstrap.servers": bootstrap_servers})
    partitions = [TopicPartition(each.topic, number) for each in wanted for number in range(each.partitions)]
    mill = BatchMill(workload)
    first = int((time.time() - _AGE_SECONDS) * 1000)
    async with RawClient(Connection.from_settings(settings)) as client:
        leader = await _leader(client, wanted)
        free = asyncio.Semaphore(_REQUESTS_IN_FLIGHT)

        async def send(request: list[tuple[str, int, bytearray]]) -> None:
            try:
                for answer in await client.produce(leader, request, timeout_ms=_PRODUCE_TIMEOUT_MS):
                    if answer.error_code:
                        raise BenchError(f"{answer.topic}-{answer.partition}: error code {answer.error_code}.")
            finally:
                free.release()

        try:
            async with asyncio.TaskGroup() as requests:
                for request in _requests(mill, partitions, first):
                    await free.acquire()
                    requests.create_task(send(request))
        except ExceptionGroup as failed:
            # The others fail because of the first one's broken connection.
            raise failed.exceptions[0] from None


def _requests(
    mill: BatchMill, partitions: Sequence[TopicPartition], first: int
) -> Iterator[list[tuple[str, int, bytearray]]]:
    """Yield requests of a few megabytes; a request has at most one batch of a partition."""
    streams = {each: mill.batches(number, len(partitions), first) for number, each in enumerate(partitions)}
    request: list[tuple[str, int, bytearray]] = []
    size = 0
    while streams:
        for partition in list(streams):
            batch = next(streams[partition], None)
            if batch is None:
                del streams[partition]
                continue
            request.append((partition.topic, partition.partition, batch))
            size += len(batch)
            if size >= _REQUEST_BYTES:
                yield request
                request, size = [], 0
        if request:
            yield request
            request, size = [], 0


async def _leader(client: RawClient, wanted: Sequence[Place]) -> int:
    """Return the one broker, as soon as it leads everything."""
    deadline = time.monotonic() + _TIMEOUT
    while True:
        failed = await client.refresh_leaders([each.topic for each in wanted])
        ends = (TopicPartition(each.topic, each.partitions - 1) for each in wanted)
        leaders = {client.leader(each) for each in ends}
        if not failed and None not in leaders:
            leader = leaders.pop()
            assert leader is not None
            return leader
        if time.monotonic() > deadline:
            raise BenchError(f"some of {len(wanted)} topics got no leader within {_TIMEOUT:.0f} s.")
        await asyncio.sleep(0.1)
