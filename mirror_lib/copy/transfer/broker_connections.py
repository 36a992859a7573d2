"""Connections and request sizes for a broker, by its round-trip time.

A connection carries at most one window of unacknowledged data: with a low round-trip time that is plenty, while at
150 ms a connection gives 27 MB/s with Linux' largest windows, and 1.3 MB/s with the default socket buffers of Kafka's
brokers (`socket.send.buffer.bytes`). So high-latency brokers get more connections, larger requests and larger batches,
up to the bandwidth-delay product and the task's memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.copy.transfer.producer_state import ConnectionSlot, PartitionWriter

#: Round-trip time from which a broker counts as high-latency; within a data centre, or between neighbours, it is less.
FAR_SECONDS = 0.01
#: A broker handles one request of a connection at a time: with two connections, it appends the data of one while it
#: reads from the other. Other tasks have the same effect, and a request costs less if more partitions share it.
_NEAR_CONNECTIONS = 2
#: One more connection for each 10 ms of round-trip time.
_SECONDS_PER_CONNECTION = 0.01
_MOST_CONNECTIONS = 16
#: Share of the task's memory for fetches from high-latency brokers; the rest is for batches in flight to the target.
_MEMORY_SHARE = 0.75
#: Brokers truncate larger responses (`fetch.max.bytes`, 55 MiB by default).
_LARGEST_REQUEST = 48 * 1024 * 1024
#: A producer may have five batches of a partition in flight, so for high latency they should be large. Kafka's default
#: of `max.message.bytes` of a topic, and of what a consumer requests for a partition.
_FAR_BATCH_BYTES = 1024 * 1024


#: First and minimum size of a request to a high-latency broker.
_FIRST_BYTES, _LEAST_BYTES = 1024 * 1024, 32 * 1024
#: Faster responses let requests grow, slower ones let them shrink: `request.timeout.ms` is 30 s. Each response ends
#: with a truncated batch that must be fetched again, so small requests cost more than they save.
_QUICK_SECONDS, _SLOW_SECONDS = 1.0, 12.0


class FetchPace:
    """Size of requests to high-latency brokers, by the time that earlier responses took.

    A link that loses segments may carry a thousandth of another one with the same round-trip time: only trying shows
    the throughput.
    """

    def __init__(self) -> None:
        self._bytes = _FIRST_BYTES

    def ask(self, most: int) -> int:
        """Bytes to request, at most what memory allows."""
        return min(self._bytes, most)

    def record_response(self, requested: int, received: int, seconds: float) -> None:
        """Record the result of a request. Only one of at least the current size lets it grow."""
        if seconds > _SLOW_SECONDS:
            self._bytes = max(min(self._bytes, requested // 2), _LEAST_BYTES)
        elif seconds < _QUICK_SECONDS and requested >= self._bytes and received >= requested // 2:
            self._bytes = min(2 * requested, _LARGEST_REQUEST)

    def record_timeout(self, requested: int) -> None:
        """Record that no response came in time."""
        self.record_response(requested, 0, math.inf)


class Reach(NamedTuple):
    """Number of connections to a broker, and whether it is a high-latency broker."""

    connections: int
    far: bool


def reach(round_trip: float | None, connections: int = 0, *, tasks: int = 1) -> Reach:
    """Return how to connect to a broker.

    Args:
        round_trip: seconds; None if unknown.
        connections: the flow's setting; 0 decides by the round-trip time.
        tasks: number of tasks of the job that use the same brokers, each over its own connections.
    """
    far = round_trip is not None and round_trip >= FAR_SECONDS
    wanted = math.ceil((round_trip or 0) / _SECONDS_PER_CONNECTION)
    least = _NEAR_CONNECTIONS if far else math.ceil(_NEAR_CONNECTIONS / tasks)
    return Reach(connections or min(max(wanted, least), _MOST_CONNECTIONS), far)


def far_request_bytes(memory_limit: int, requests: int, at_least: int) -> int:
    """Bytes that one of several fetch requests to a high-latency broker asks for, all within the task's memory.

    Args:
        memory_limit: bytes of the task.
        requests: number of requests in flight.
        at_least: bytes to request from a low-latency broker.
    """
    return min(max(int(memory_limit * _MEMORY_SHARE) // max(requests, 1), at_least), _LARGEST_REQUEST)


def far_batch_bytes(target_max_message_bytes: int, at_least: int) -> int:
    """Size up to which batches for a high-latency broker are merged; at most what its topic accepts."""
    return min(max(_FAR_BATCH_BYTES, at_least), target_max_message_bytes)


class ConnectionSlots:
    """Assigns the partitions of each leader to its connections, whose number depends on the round-trip time."""

    def __init__(
        self, client: RawClient, settings: CopySettings, writers: Iterable[PartitionWriter], *, tasks: int
    ) -> None:
        """Args:
        writers: writers of the task; evaluated on each use, since more may be added.
        tasks: number of copy tasks.
        """
        self._client = client
        self._settings = settings
        self._writers = writers
        self._tasks = tasks
        #: Number of partitions of each leader that have a connection.
        self._led: dict[int, int] = {}
        self._reaches: dict[int, Reach] = {}
        #: True if some leader is a high-latency broker.
        self.far = False

    def of(self, writer: PartitionWriter, leader: int) -> ConnectionSlot:
        """The connection of a partition. All its batches use one: brokers keep the order only within a connection."""
        distance = self._reaches.get(leader) or self._reach(leader)
        if distance.far and not writer.gathers_more:
            self.far = True
            writer.gathers_more = True
            for copy in writer.copies:
                copy.assembler.gather_up_to(
                    far_batch_bytes(copy.opened.plan.target_max_message_bytes, self._settings.batch_max_bytes)
                )
        if writer.leader != leader:
            # Counted for each leader, since the leader of a partition changes.
            writer.leader, writer.number = leader, self._led.get(leader, 0)
            self._led[leader] = writer.number + 1
        number = writer.number % distance.connections
        if writer.slot is None or writer.slot != (leader, number):
            writer.slot = ConnectionSlot(leader, number)
        return writer.slot

    def _reach(self, leader: int) -> Reach:
        round_trip = self._client.round_trip(leader)
        found = reach(round_trip, self._settings.connections_per_broker, tasks=self._tasks)
        if round_trip is not None:
            self._reaches[leader] = found
            for writer in self._writers:
                if writer.leader == leader:
                    # It was assigned before the round-trip time was known.
                    writer.slot = None
        return found
