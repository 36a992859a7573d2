"""Which connection to its leader each target partition is written over, and how far away leaders are."""

from __future__ import annotations

from collections.abc import Iterable

from mirror_lib.cluster.raw import RawClient
from mirror_lib.config.model import CopySettings
from mirror_lib.relay.distance import Reach, far_batch_bytes, reach
from mirror_lib.relay.partition_writer import Lane, PartitionWriter


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

    def of(self, writer: PartitionWriter, leader: int) -> Lane:
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
        if writer.lane is None or writer.lane != (leader, number):
            writer.lane = Lane(leader, number)
        return writer.lane

    def _reach(self, leader: int) -> Reach:
        round_trip = self._client.round_trip(leader)
        found = reach(round_trip, self._settings.connections_per_broker, tasks=self._tasks)
        if round_trip is not None:
            self._reaches[leader] = found
            for writer in self._writers:
                if writer.leader == leader:
                    # It was given one when nothing was known yet.
                    writer.lane = None
        return found
