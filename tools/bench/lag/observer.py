"""Observes a growing topic: when each batch can be read, and the timestamps of its records."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import MirrorError
from mirror_lib.records.header import HEADER_SIZE, LOG_OVERHEAD, parse_header
from mirror_lib.topology.names import TopicPartition
from tools.bench.errors import BenchError
from tools.bench.lag.arrivals import Arrival

#: Limits of a fetch; it waits for this long if there is nothing new.
_FETCH_BYTES, _PARTITION_BYTES, _WAIT_MS = 16 * 1024 * 1024, 4 * 1024 * 1024, 50
_LOOK_FOR_TOPIC_SECONDS = 0.1
_START_SECONDS = 30.0
_CONTROL_BIT = 0x20


class TopicObserver:
    """A context in which a thread reads a topic from its beginning; the topic need not exist yet.

    It reads raw batches and only their headers, of all partitions in one request, so that its cost is small compared
    with the copy.
    """

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        """Nothing is read yet."""
        settings = ClientSettings(cluster="bench", role="observer", properties={"bootstrap.servers": bootstrap_servers})
        self._connection = Connection.from_settings(settings)
        self._topic, self._partitions = topic, partitions
        self._arrivals: list[Arrival] = []
        self._records = 0
        self._ended = threading.Event()
        self._looking = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"observer {topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def arrivals(self) -> tuple[Arrival, ...]:
        """The batches read so far."""
        return tuple(self._arrivals)

    @property
    def records(self) -> int:
        """The number of records read so far.

        Raises:
            BenchError: the topic cannot be read any more.
        """
        if self._failed is not None:
            raise BenchError(f"{self._topic} cannot be observed: {self._failed}.") from self._failed
        return self._records

    def wait_looking(self) -> None:
        """Return when the topic exists and is being read.

        Raises:
            BenchError: that does not happen.
        """
        if not self._looking.wait(_START_SECONDS):
            raise BenchError(f"{self._topic} was not there to be observed within {_START_SECONDS:g} s.")

    def _run(self) -> None:
        try:
            asyncio.run(self._observe())
        except (MirrorError, OSError) as error:
            self._failed = error

    async def _observe(self) -> None:
        async with RawClient(self._connection) as client:
            leader = await self._leader(client)
            if leader is None:
                return
            self._looking.set()
            offsets = dict.fromkeys(range(self._partitions), 0)
            while not self._ended.is_set():
                # The broker fills the response from the front: rotate the list so that no partition waits for another.
                turn = len(self._arrivals) % self._partitions
                numbers = [*range(turn, self._partitions), *range(turn)]
                answers = await client.fetch(
                    leader,
                    [FetchRequestPartition(self._topic, each, offsets[each], _PARTITION_BYTES) for each in numbers],
                    max_bytes=_FETCH_BYTES,
                    max_wait_ms=_WAIT_MS,
                    read_committed=False,
                )
                self._note(answers, offsets, int(time.time() * 1000))

    async def _leader(self, client: RawClient) -> int | None:
        """Return the one broker of the cluster, once it leads all partitions; None when the observer was stopped."""
        while not self._ended.is_set():
            if not await client.refresh_leaders([self._topic]):
                leaders = {client.leader(TopicPartition(self._topic, each)) for each in range(self._partitions)}
                if None not in leaders:
                    return leaders.pop()
            await asyncio.sleep(_LOOK_FOR_TOPIC_SECONDS)
        return None

    def _note(self, answers: list[FetchedPartition], offsets: dict[int, int], now: int) -> None:
        for answer in answers:
            if answer.error_code and not self._records:
                # A leader in the metadata may not have taken over yet.
                continue
            if answer.error_code:
                raise BenchError(f"{answer.topic}-{answer.partition} answers with error code {answer.error_code}.")
            for arrival, after in batches_in(answer.records, answer.partition, now):
                offsets[answer.partition] = after
                if arrival.records:
                    self._arrivals.append(arrival)
                    self._records += arrival.records


def batches_in(data: memoryview, partition: int, now: int) -> Iterator[tuple[Arrival, int]]:
    """Yield the whole batches of a response, and the offset after each; control batches hold no records."""
    position = 0
    while position + HEADER_SIZE <= len(data):
        header = parse_header(data, position)
        size = LOG_OVERHEAD + header.length
        if position + size > len(data):
            return
        records = 0 if header.attributes & _CONTROL_BIT else header.count
        arrival = Arrival(now, partition, records, header.first_timestamp, header.max_timestamp)
        yield arrival, header.base_offset + header.last_offset_delta + 1
        position += size
