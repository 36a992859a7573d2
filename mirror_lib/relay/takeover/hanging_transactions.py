"""Transactions that hang: the coordinator believes them to be over, and partitions of theirs have no marker.

A coordinator takes partitions for deleted that have no leader at that moment, and completes without their markers
(Kafka from 4.0 on, KAFKA-20734). What stands behind the first record of such a transaction is hidden from readers of
committed records until somebody has a marker written there, and only its own producer can.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mirror_lib.cluster.protocol import TransactionState
from mirror_lib.cluster.raw import ProducerIdentity, RawClient, producer_states
from mirror_lib.errors import TransientError, Where
from mirror_lib.topology import TopicPartition

_log = logging.getLogger(__name__)
_COORDINATOR_SECONDS = 60.0
#: Markers that are not there so long after a transaction has ended may have been left out.
_LATE_SECONDS = 5.0
#: Seconds between looks for markers, which come a little later than the answer to a commit.
FIRST_LOOK, LAST_LOOK = 0.005, 0.2


class OpenTransaction(NamedTuple):
    """What a coordinator tells of a producer's transactions, and where its rows have no marker."""

    told: TransactionState
    #: The first offset on each partition.
    open_from: Mapping[TopicPartition, int]

    def counted(self, positions: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Those that hold rows of which positions say that they count, and that no transaction covers now."""
        return [
            partition
            for partition, first in self.open_from.items()
            if first < positions.get(partition, 0) and partition not in self.told.partitions
        ]


class Hanging:
    """What of one producer's transactions has no marker yet."""

    def __init__(self, client: RawClient, name: str, *, retry_seconds: float, where: Where) -> None:
        """Args:
        client: of the target.
        name: the transactional id.
        retry_seconds: how long leaders are waited for.
        where: the place of errors.
        """
        self._client = client
        self._name = name
        self._retry_seconds = retry_seconds
        self._where = where

    async def without_marker(
        self, partitions: Iterable[TopicPartition], producer_id: int, *, seconds: float
    ) -> list[TopicPartition]:
        """Those of some partitions where the producer's transaction is still open after some seconds.

        Brokers older than Kafka 2.8 do not tell; they write all markers.

        Raises:
            MirrorError: a leader did not answer in time, or refused.
        """
        pause, until = FIRST_LOOK, time.monotonic() + seconds
        left: Collection[TopicPartition] = list(partitions)
        while True:
            left = await self._open_from(left, producer_id)
            if not left or time.monotonic() > until:
                return list(left)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_LOOK)

    async def found(self, partitions: Iterable[TopicPartition]) -> OpenTransaction | None:
        """What the producer of the id has open on partitions; None for nothing.

        Raises:
            MirrorError: the coordinator or a leader did not answer in time, or refused.
        """
        producers, deadline = self._client.producers, coordinator_deadline()
        told = await producers.transaction_state(self._name, deadline=deadline)
        while told is not None and told.ending and time.monotonic() < deadline:
            await asyncio.sleep(LAST_LOOK)
            told = await producers.transaction_state(self._name, deadline=deadline)
        if told is None:
            return None
        open_from = await self._open_from(partitions, told.producer_id)
        return OpenTransaction(told, open_from) if open_from else None

    async def settle(self, found: OpenTransaction, counted: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """End what hangs of what was found as it was decided, and leave what is still to be decided; returns what hung.

        To be called before the producer is fenced, which aborts all: rows would be lost whose positions count.

        Args:
            counted: the target offsets up to which committed positions say that rows count. What begins before them
                was committed, whatever the coordinator has done since.

        Raises:
            TransientError: the markers do not appear.
            MirrorError: the coordinator or a leader did not answer in time, or refused.
        """
        told, proven = found.told, found.counted(counted)
        decided = proven if told.committed is None else list(found.open_from)
        left = await self.without_marker(decided, told.producer_id, seconds=_LATE_SECONDS)
        if not left:
            return []
        identity = await self._client.producers.init_producer_id(self._name, deadline=coordinator_deadline())
        if identity.producer_id != told.producer_id:
            # Its epochs are used up, and markers of another producer end nothing of it.
            raise self.no_marker(left)
        if identity.epoch != told.epoch + 1:
            # Another transaction has begun since, and may be what is open: nothing but positions tells how it ended.
            left = [partition for partition in left if partition in proven]
        for commit in (True, False):
            ending = [each for each in left if (each in proven or told.committed is True) is commit]
            if ending:
                await self._end(ending, identity, commit=commit)
        return left

    async def _end(self, partitions: Collection[TopicPartition], identity: ProducerIdentity, *, commit: bool) -> None:
        names = ", ".join(map(str, partitions))
        _log.warning("the coordinator of %s left out the markers of %s: they are written now", self._name, names)
        producers = self._client.producers
        await producers.add_to_transaction(self._name, identity, partitions, deadline=coordinator_deadline())
        await producers.end_transaction(self._name, identity, commit=commit, deadline=coordinator_deadline())
        missing = await self.without_marker(partitions, identity.producer_id, seconds=self._retry_seconds)
        if missing:
            raise self.no_marker(missing)

    async def _open_from(self, partitions: Iterable[TopicPartition], producer_id: int) -> dict[TopicPartition, int]:
        known = await producer_states(self._client, partitions, retry_seconds=self._retry_seconds, where=self._where)
        return {
            partition: own.open_from
            for partition, producers in known.items()
            if (own := producers.get(producer_id)) is not None and own.open_from is not None
        }

    def no_marker(self, partitions: Iterable[TopicPartition]) -> TransientError:
        """The error for markers that do not appear."""
        return TransientError(
            f"the marker of the transaction of {self._name} does not appear on {', '.join(map(str, partitions))}.",
            where=self._where,
            action="Check that the target's brokers reach each other; the next run goes on behind what is committed.",
        )


def coordinator_deadline() -> float:
    """Until when a transaction's coordinator is waited for, by the monotonic clock."""
    return time.monotonic() + _COORDINATOR_SECONDS
