"""Reads the producers of partitions from their leaders (KIP-664)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from mirror_lib.cluster.protocol.kafka_errors import Needed, error_for_code
from mirror_lib.cluster.protocol.transactions import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_PRODUCERS_VERSION,
    DescribedProducers,
    ProducerState,
    encode_describe_producers,
    parse_describe_all_producers,
    parse_describe_producers,
)
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.partition_client import Patience
from mirror_lib.errors import MirrorError, Where
from mirror_lib.topology.access import Operation
from mirror_lib.topology.names import TopicPartition

_PARTITIONS_AT_ONCE = 500


async def producer_states(
    client: RawClient, partitions: Iterable[TopicPartition], *, retry_seconds: float, where: Where
) -> dict[TopicPartition, Mapping[int, ProducerState]]:
    """The producers of partitions by id; without partitions whose leader is older than Kafka 2.8.

    Args:
        retry_seconds: how long to retry if a leader does not respond.
        where: the place of errors.

    Raises:
        MirrorError: a leader did not respond in time, or rejected the request.
    """
    leaders = [_Leader(client, each, retry_seconds, where=where, operation=Operation.READ) for each in partitions]
    found = await asyncio.gather(*(leader.states() for leader in leaders))
    return {leader.partition: states for leader, states in zip(leaders, found, strict=True) if states is not None}


async def described_producers(
    client: RawClient, node: int, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, DescribedProducers]:
    """The producers of some partitions according to one broker, each with an error code; empty before Kafka 2.8.

    Args:
        node: the leader of the partitions.

    Raises:
        MirrorError: the broker did not respond.
    """
    if not await client.speaks(node, DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION):
        return {}
    found: dict[TopicPartition, DescribedProducers] = {}
    for first in range(0, len(partitions), _PARTITIONS_AT_ONCE):
        question = encode_describe_producers(*partitions[first : first + _PARTITIONS_AT_ONCE])
        response = await client.ask(node, DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION, question)
        found |= parse_describe_all_producers(response)
    return found


class _Leader(Patience):
    @property
    def partition(self) -> TopicPartition:
        return self._partition

    async def states(self) -> Mapping[int, ProducerState] | None:
        backoff = self.patient()
        while True:
            try:
                return await self._states()
            except MirrorError as error:
                await self.pause(backoff, error)

    async def _states(self) -> Mapping[int, ProducerState] | None:
        node = await self.leader()
        if not await self._client.speaks(node, DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION):
            return None
        question = encode_describe_producers(self._partition)
        response = await self._client.ask(node, DESCRIBE_PRODUCERS, DESCRIBE_PRODUCERS_VERSION, question)
        described = parse_describe_producers(response)
        if described.error_code:
            doing = f"list the producers of {self._partition}"
            needs = Needed(self._needs, self._client.cluster)
            raise error_for_code(described.error_code, where=self._where, doing=doing, needs=needs)
        return described.producers
