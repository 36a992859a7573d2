"""Hanging transactions: complete for the coordinator, but without a marker on some partitions.

A coordinator treats partitions without a leader at that moment as deleted, and completes without their markers
(since Kafka 4.0, KAFKA-20734). `read_committed` consumers do not see the records after the first one of such a
transaction until a marker is written there, and only its own producer can write it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from mirror_lib.cluster.protocol.transactions import TransactionState
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.describe_producers import producer_states
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.errors import TransientError, Where
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
_COORDINATOR_SECONDS = 60.0
#: Seconds after the end of a transaction from which a missing marker counts as never written.
LATE_SECONDS = 5.0
#: Seconds between checks for markers, which come a little later than the response to a commit.
FIRST_LOOK, LAST_LOOK = 0.005, 0.2


class OpenTransaction(NamedTuple):
    """The coordinator's state of a producer's transaction, and the partitions without its marker."""

    state: TransactionState
    #: The first offset on each partition.
    open_from: Mapping[TopicPartition, int]

    def already_committed(self, positions: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """Partitions with rows that are committed by the positions, and that no transaction includes now."""
        return [
            partition
            for partition, first in self.open_from.items()
            if first < positions.get(partition, 0) and partition not in self.state.partitions
        ]


class ProducerTransactions:
    """The transactions of one producer on the target, and their markers."""

    def __init__(self, client: RawClient, name: str, *, retry_seconds: float, where: Where) -> None:
        """Args:
        client: client of the target.
        name: the transactional id.
        retry_seconds: how long to wait for leaders.
        where: the location of errors.
        """
        self._client = client
        self._name = name
        self._retry_seconds = retry_seconds
        self._where = where

    async def without_marker(
        self, partitions: Iterable[TopicPartition], producer_id: int, *, seconds: float
    ) -> list[TopicPartition]:
        """The partitions on which the producer's transaction is still open after some seconds.

        Brokers before Kafka 2.8 do not report it; they write all markers.

        Raises:
            MirrorError: a leader did not respond in time, or refused.
        """
        pause, until = FIRST_LOOK, time.monotonic() + seconds
        left: Collection[TopicPartition] = list(partitions)
        while True:
            left = await self._open_from(left, producer_id)
            if not left or time.monotonic() > until:
                return list(left)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_LOOK)

    def no_marker(self, partitions: Iterable[TopicPartition]) -> TransientError:
        """The error for markers that do not appear."""
        return TransientError(
            f"the transaction marker of {self._name} did not appear on {', '.join(map(str, partitions))}.",
            where=self._where,
            action="Check that the target's brokers reach each other; the next run continues at the last committed "
            "record.",
        )

    def _report_missing(self, partitions: Iterable[TopicPartition]) -> None:
        names = ", ".join(map(str, partitions))
        _log.warning("the coordinator of %s wrote no marker for %s; writing it now", self._name, names)

    async def _open_from(self, partitions: Iterable[TopicPartition], producer_id: int) -> dict[TopicPartition, int]:
        known = await producer_states(self._client, partitions, retry_seconds=self._retry_seconds, where=self._where)
        return {
            partition: own.open_from
            for partition, producers in known.items()
            if (own := producers.get(producer_id)) is not None and own.open_from is not None
        }


class Hanging(ProducerTransactions):
    """The transactions of one producer that have no marker yet."""

    async def find(self, partitions: Iterable[TopicPartition]) -> OpenTransaction | None:
        """The open transaction of the producer on partitions; None if there is none.

        Raises:
            MirrorError: the coordinator or a leader did not respond in time, or refused.
        """
        producers, deadline = self._client.producers, coordinator_deadline()
        state = await producers.transaction_state(self._name, deadline=deadline)
        while state is not None and state.is_ending and time.monotonic() < deadline:
            await asyncio.sleep(LAST_LOOK)
            state = await producers.transaction_state(self._name, deadline=deadline)
        if state is None:
            return None
        open_from = await self._open_from(partitions, state.producer_id)
        return OpenTransaction(state, open_from) if open_from else None

    async def settle(self, found: OpenTransaction, counted: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """End hanging transactions as they were decided, skip undecided ones; return the partitions that were hanging.

        Call it before the producer is fenced, which aborts all: committed rows would be lost.

        Args:
            counted: the target offsets up to which rows are committed by the positions. A transaction that begins
                before
                them was committed, regardless of what the coordinator has done since.

        Raises:
            TransientError: the markers do not appear.
            MirrorError: the coordinator or a leader did not respond in time, or refused.
        """
        state, proven = found.state, found.already_committed(counted)
        decided = proven if state.has_committed is None else list(found.open_from)
        left = await self.without_marker(decided, state.producer_id, seconds=LATE_SECONDS)
        if not left:
            return []
        identity = await self._client.producers.init_producer_id(self._name, deadline=coordinator_deadline())
        if identity.producer_id != state.producer_id:
            # Its epochs are exhausted, and markers of another producer do not end its transaction.
            raise self.no_marker(left)
        if identity.epoch != state.epoch + 1:
            # Another transaction has begun since, and may be the open one: only positions show how the first one ended.
            left = [partition for partition in left if partition in proven]
        for commit in (True, False):
            ending = [each for each in left if (each in proven or state.has_committed is True) is commit]
            if ending:
                await self._end(ending, identity, commit=commit)
        return left

    async def _end(self, partitions: Collection[TopicPartition], identity: ProducerIdentity, *, commit: bool) -> None:
        self._report_missing(partitions)
        producers = self._client.producers
        await producers.add_to_transaction(self._name, identity, partitions, deadline=coordinator_deadline())
        await producers.end_transaction(self._name, identity, commit=commit, deadline=coordinator_deadline())
        missing = await self.without_marker(partitions, identity.producer_id, seconds=self._retry_seconds)
        if missing:
            raise self.no_marker(missing)


def coordinator_deadline() -> float:
    """Deadline for a transaction's coordinator, by the monotonic clock."""
    return time.monotonic() + _COORDINATOR_SECONDS
