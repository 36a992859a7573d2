"""A broker that throttles us answers a fetch with nothing at all; that is no answer about any partition."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchRequestPartition, RawClient
from mirror_lib.cluster.raw.connection import Buffer

_WANTED = FetchRequestPartition("orders", 0, 5, 1024)


def answer(*, throttle_ms: int, partitions: int) -> memoryview:
    """A Fetch answer v11: throttle time, error code, session; then topics with partitions without records."""
    head = struct.pack(">ihi", throttle_ms, 0, 0)
    if not partitions:
        return memoryview(head + struct.pack(">i", 0))
    name = b"orders"
    partition = struct.pack(">ihqqqiii", 0, 0, 9, 9, 0, 0, -1, 0)
    return memoryview(head + struct.pack(">ih", 1, len(name)) + name + struct.pack(">i", 1) + partition)


class Throttled(RawClient):
    """Gives scripted answers."""

    def __init__(self, *answers: memoryview) -> None:
        super().__init__(Connection("A", ("localhost:1",)))
        self.left = list(answers)

    async def speaks(self, node: int, api_key: int, version: int) -> bool:
        return False

    async def ask(self, node: int, api_key: int, version: int, body: Sequence[Buffer], **_: Any) -> memoryview:
        return self.left.pop(0)


def fetched(client: RawClient) -> list[tuple[str, int, int]]:
    found = asyncio.run(client.fetch(1, [_WANTED], max_bytes=1024, max_wait_ms=1, read_committed=False))
    return [(each.topic, each.partition, each.high_watermark) for each in found]


def test_a_throttled_fetch_is_sent_again_after_the_time_that_the_broker_tells() -> None:
    client = Throttled(
        answer(throttle_ms=5, partitions=0), answer(throttle_ms=1, partitions=0), answer(throttle_ms=0, partitions=1)
    )

    assert fetched(client) == [("orders", 0, 9)]
    assert client.left == []


def test_an_answer_that_is_throttled_and_has_partitions_counts() -> None:
    client = Throttled(answer(throttle_ms=5_000, partitions=1))

    assert fetched(client) == [("orders", 0, 9)]


def test_an_answer_without_partitions_that_is_not_throttled_is_left_to_the_caller() -> None:
    assert fetched(Throttled(answer(throttle_ms=0, partitions=0))) == []
