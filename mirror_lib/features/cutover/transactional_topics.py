"""Finds the topics that are written in transactions of one transactional id (KIP-664).

A coordinator forgets the partitions of a transaction when it has ended; the partitions' leaders remember producers for
`producer.id.expiration.ms` after their last record (a day by default). So the producer ids of partitions are compared
with those of transactional ids, which also finds topics of idle transactional producers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mirror_lib.cluster.admin.results import batches
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.cluster.raw.describe_producers import described_producers
from mirror_lib.cluster.raw.leaders import by_leader
from mirror_lib.topology.names import TopicPartition

_TOPICS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class TransactionalWriters:
    """The topics of transactional ids that brokers remember and this user may describe."""

    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: False if brokers are older than Kafka 3.0.
    known: bool = True
    #: Topics whose producers are unknown, because the permission to read them or a leader is missing.
    unknown: frozenset[str] = frozenset()


def transactional_writers(
    connection: Connection, topics: Collection[str], others: Callable[[], Iterable[str]]
) -> TransactionalWriters:
    """The topics of all transactional ids that write to some of the given ones.

    Args:
        others: further topics that they may write to; called only if there are transactional ids.

    Raises:
        MirrorError: a broker did not respond.
    """

    async def ask() -> TransactionalWriters:
        async with open_clients(connection) as (client,):
            return await _Writers(client).find(topics, others)

    return asyncio.run(ask())


class _Writers:
    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._unknown: set[str] = set()

    async def find(self, topics: Collection[str], others: Callable[[], Iterable[str]]) -> TransactionalWriters:
        ids = await self._client.producers.transactional_ids()
        if ids is None:
            return TransactionalWriters(known=False)
        names = {producer_id: name for name, producer_id in ids.items() if producer_id >= 0}
        if not names:
            return TransactionalWriters()
        written: dict[str, set[str]] = {}
        for topic, name in await self._writers(sorted(topics), names):
            written.setdefault(name, set()).add(topic)
        if written:
            mine = {producer_id: name for producer_id, name in names.items() if name in written}
            for topic, name in await self._writers(sorted(set(others()) - set(topics)), mine):
                written[name].add(topic)
        return TransactionalWriters(
            {name: frozenset(each) for name, each in sorted(written.items())}, unknown=frozenset(self._unknown)
        )

    async def _writers(self, topics: Sequence[str], names: Mapping[int, str]) -> set[tuple[str, str]]:
        """Topics with each of the transactional ids that write to them."""
        found: set[tuple[str, str]] = set()
        for some in batches(topics, _TOPICS_AT_ONCE):
            self._unknown |= (await self._client.refresh_leaders(some)).keys()
            grouped = by_leader(
                self._client,
                (
                    TopicPartition(topic, number)
                    for topic in some
                    for number in range(self._client.partition_count(topic) or 0)
                ),
            )
            self._unknown |= {place.topic for place in grouped.without}
            for node, places in grouped.led.items():
                found |= await self._writers_of(node, places, names)
        return found

    async def _writers_of(
        self, node: int, places: Sequence[TopicPartition], names: Mapping[int, str]
    ) -> set[tuple[str, str]]:
        found = set()
        for place, described in (await described_producers(self._client, node, places)).items():
            if described.error_code:
                self._unknown.add(place.topic)
            found |= {(place.topic, names[each]) for each in described.producers if each in names}
        return found
