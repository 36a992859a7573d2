"""What a copy task holds: counted byte by byte on every path, and bounded whatever the number of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.errors import MirrorError
from mirror_lib.topology.names import TopicPartition
from tests.support.brokers.fake_cluster import fill
from tests.unit.copy.conftest import FakePair, WatchedMemory


def test_a_writer_that_gives_up_gives_back_all_that_it_took(pair: FakePair, memory: list[WatchedMemory]) -> None:
    # Batches go on arriving while the leader is missing; the last one meets the end of the writer's patience.
    fill(pair.source.add("orders"), [1000] * 400)
    partition = pair.opened()
    pair.target.leaders.clear()

    async def slowly(*_: object) -> None:
        await asyncio.sleep(0.01)

    pair.source.on_fetch = slowly

    (result,) = pair.copy(partition, retry_max_seconds=0.5, fetch_partition_max_bytes=2000)

    assert result.error is not None


def test_reading_that_fails_gives_back_what_waited_for_more(pair: FakePair, memory: list[WatchedMemory]) -> None:
    fill(pair.source.add("orders"), [1000] * 40)
    partition = pair.opened()
    acknowledge = asyncio.Event()

    async def held(*_: object) -> None:
        await acknowledge.wait()

    def expire(node: int, wanted: Sequence[object]) -> list[object] | None:
        if len(pair.source.fetches) == 4:
            acknowledge.set()
            pair.source.partitions[TopicPartition("orders", 0)].log_start = 40
            return [pair.source.fetched(wanted[0], b"", error_code=ErrorCode.OFFSET_OUT_OF_RANGE)]  # type: ignore[list-item]
        return None

    pair.target.before_answer, pair.source.on_fetch = held, expire  # type: ignore[assignment]
    settings = {"batch_passthrough_min_bytes": 16_384, "fetch_partition_max_bytes": 3000}

    (result,) = pair.copy(partition, **settings)

    assert isinstance(result.error, MirrorError)
    assert result.certain
    assert memory[0].highest > 8000


def test_small_batches_that_wait_for_more_count_as_memory(pair: FakePair, memory: list[WatchedMemory]) -> None:
    # While the target does not answer, each of many partitions waits with what it has read.
    partitions, limit = 40, 400_000
    for partition in range(partitions):
        fill(pair.source.add("orders", partition), [1000] * 100)
    served: list[int] = []
    answers = asyncio.Event()

    async def pause(*_: object) -> None:
        if not served:
            served.append(0)
            await asyncio.sleep(0.5)
            served.append(pair.source.served)
            answers.set()
        await answers.wait()

    pair.target.before_answer = pause
    settings = {
        "batch_passthrough_min_bytes": 16_384,
        "task_memory_bytes": limit,
        "fetch_max_bytes": 40_000,
        "fetch_partition_max_bytes": 10_000,
    }

    results = pair.copy_all(partitions, **settings)

    assert all(result.complete for result in results)
    assert limit / 2 < served[1] <= limit + 2 * 40_000


def test_an_answer_counts_as_memory_while_it_is_worked_on(pair: FakePair, memory: list[WatchedMemory]) -> None:
    # KIP-74: the first batch comes whole, however little was asked for.
    fill(pair.source.add("orders"), [300_000] * 5)

    result = pair.copy_orders(task_memory_bytes=100_000, fetch_partition_max_bytes=50_000)

    assert result.complete
    # The answer and the batch made of it.
    assert memory[0].highest >= 600_000
