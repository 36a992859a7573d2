"""How a broker is worked with by how far away it is.

A request that is under way carries what one connection may have unacknowledged: next door that is plenty, while over
150 ms a connection gives 27 MB/s with Linux' largest windows, and 1.3 MB/s with the socket buffers that Kafka's brokers
have by default (`socket.send.buffer.bytes`). So brokers far away get more connections, larger requests and larger
batches, as much as the bandwidth-delay product asks for and the task's memory allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from mirror_lib.cluster.raw import RawClient
from mirror_lib.config import CopySettings
from mirror_lib.relay.copy.producer_state import ConnectionSlot, PartitionWriter

#: Round trips from this on are a distance; in a data centre, or between neighbouring ones, they take less.
FAR_SECONDS = 0.01
#: A broker works on one request of a connection at a time: of two connections, it appends what came over one while it
#: reads from the other. Those of other tasks do as well, and a request costs less that more partitions share.
_NEAR_CONNECTIONS = 2
#: One more connection for each so many seconds of round trip.
_SECONDS_PER_CONNECTION = 0.01
_MOST_CONNECTIONS = 16
#: Part of the task's memory that may be asked for from far away; the rest is for what is on its way to the target.
_MEMORY_SHARE = 0.75
#: Brokers cut larger answers off (`fetch.max.bytes`, 55 MiB by default).
_LARGEST_REQUEST = 48 * 1024 * 1024
#: A producer may have five batches of a partition under way, so over a distance they should be large. Kafka's default
#: for what a topic accepts (`max.message.bytes`), and for what a consumer asks of a partition.
_FAR_BATCH_BYTES = 1024 * 1024


#: What a request to a broker far away asks for at first, and at the least.
_FIRST_BYTES, _LEAST_BYTES = 1024 * 1024, 32 * 1024
#: Answers that take less let requests grow, those that take longer let them shrink: `request.timeout.ms` is 30 s. Each
#: answer ends with a batch that was cut off and must be read again, so small requests cost more than they spare.
_QUICK_SECONDS, _SLOW_SECONDS = 1.0, 12.0


class FetchPace:
    """How much a request to brokers far away asks for, by how long the answers to earlier ones took.

    A line that loses segments may carry a thousandth of what another one of the same round trip does: nothing but
    trying tells.
    """

    def __init__(self) -> None:
        self._bytes = _FIRST_BYTES

    def ask(self, most: int) -> int:
        """Bytes to ask for, at most what memory allows."""
        return min(self._bytes, most)

    def answered(self, asked: int, received: int, seconds: float) -> None:
        """Note what came of a request. One that asked for another amount than the next will says nothing of that."""
        if seconds > _SLOW_SECONDS:
            self._bytes = max(min(self._bytes, asked // 2), _LEAST_BYTES)
        elif seconds < _QUICK_SECONDS and asked >= self._bytes and received >= asked // 2:
            self._bytes = min(2 * asked, _LARGEST_REQUEST)

    def unanswered(self, asked: int) -> None:
        """Note that no answer came in time."""
        self.answered(asked, 0, math.inf)


class Reach(NamedTuple):
    """How many connections a broker gets, and whether it is far away."""

    connections: int
    far: bool


def reach(round_trip: float | None, connections: int = 0, *, tasks: int = 1) -> Reach:
    """How to work with a broker.

    Args:
        round_trip: seconds; None when it is not known yet.
        connections: what the flow asks for; 0 decides by the distance.
        tasks: how many of the job work with the same brokers, each over connections of its own.
    """
    far = round_trip is not None and round_trip >= FAR_SECONDS
    wanted = math.ceil((round_trip or 0) / _SECONDS_PER_CONNECTION)
    least = _NEAR_CONNECTIONS if far else math.ceil(_NEAR_CONNECTIONS / tasks)
    return Reach(connections or min(max(wanted, least), _MOST_CONNECTIONS), far)


def far_request_bytes(memory_limit: int, requests: int, at_least: int) -> int:
    """Bytes that one of several fetch requests to a broker far away asks for, all of them within the task's memory.

    Args:
        memory_limit: of the task.
        requests: how many will be under way.
        at_least: what would be asked of a broker next door.
    """
    return min(max(int(memory_limit * _MEMORY_SHARE) // max(requests, 1), at_least), _LARGEST_REQUEST)


def far_batch_bytes(target_max_message_bytes: int, at_least: int) -> int:
    """Size up to which batches are put together for a broker far away; at most what its topic accepts."""
    return min(max(_FAR_BATCH_BYTES, at_least), target_max_message_bytes)


class Lanes:
    """Deals the partitions of each leader to the connections that its distance asks for."""

    def __init__(
        self, client: RawClient, settings: CopySettings, writers: Iterable[PartitionWriter], *, tasks: int
    ) -> None:
        """Args:
        writers: those of the task; looked at again and again, since more may be added.
        tasks: how many copy tasks there are.
        """
        self._client = client
        self._settings = settings
        self._writers = writers
        self._tasks = tasks
        #: How many partitions of each leader have been given a connection.
        self._led: dict[int, int] = {}
        self._reaches: dict[int, Reach] = {}
        #: Some leader is far away.
        self.far = False

    def of(self, writer: PartitionWriter, leader: int) -> ConnectionSlot:
        """All batches of a partition go over one connection: brokers keep the order within one only."""
        distance = self._reaches.get(leader) or self._reach(leader)
        if distance.far and not writer.gathers_more:
            self.far = True
            writer.gathers_more = True
            for copy in writer.copies:
                copy.assembler.gather_up_to(
                    far_batch_bytes(copy.opened.plan.target_max_message_bytes, self._settings.batch_max_bytes)
                )
        if writer.leader != leader:
            # Counted by leader, since leaders change from one partition to the next.
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
                    # It was given one when nothing was known yet.
                    writer.slot = None
        return found
