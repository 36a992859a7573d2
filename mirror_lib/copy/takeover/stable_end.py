"""The final end of a target's log: all replicated, no transaction open.

An open transaction may still be aborted, so its records cannot be compared with the source before it ends. The broker
ends it after the producer's `transaction.timeout.ms`; a hanging one (KIP-664), which no coordinator knows any more,
stays open until an operator aborts it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from mirror_lib.cluster.protocol.transactions import ProducerState
from mirror_lib.cluster.raw.backoff import Backoff
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.describe_producers import producer_states
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.errors import MirrorError, OpenTransactionError, TransientError, Where
from mirror_lib.topology.names import TopicPartition

#: Seconds between checks for the end of a transaction.
_FIRST_LOOK, _LONGEST_PAUSE = 0.05, 2.0


async def replicated_end(
    client: RawClient, target: TopicPartition, log: PartitionReader, *, retry_seconds: float, where: Where
) -> int:
    """Return the target's end once all of it is replicated: unreplicated records might still be lost.

    Raises:
        MirrorError: the cluster did not respond in time, or refused.
    """
    backoff = Backoff(retry_seconds)
    while True:
        try:
            high_watermark, end = await client.log_ends(await log.leader(), target)
            if high_watermark >= end:
                return end
            raise TransientError(
                f"records up to offset {end - 1} of {target} are not replicated yet.",
                where=where,
                action="Check that the target's replicas are in sync.",
            )
        except MirrorError as error:
            await log.pause(backoff, error)


async def stable_end(
    client: RawClient,
    target: TopicPartition,
    log: PartitionReader,
    *,
    retry_seconds: float,
    where: Where,
    end_own: Callable[[Collection[int]], Awaitable[None]] | None = None,
) -> int:
    """Return the target's end once all of it is replicated and every transaction before it has ended.

    Both are read until they agree.

    Args:
        retry_seconds: how long a transaction may stay open.
        end_own: called with the ids of the producers with an open transaction; ends those of this flow.

    Raises:
        OpenTransactionError: a transaction did not end in time.
        MirrorError: the cluster did not respond in time, or refused.
    """
    end = await replicated_end(client, target, log, retry_seconds=retry_seconds, where=where)
    if end_own is not None and await _stable(client, target, log) < end:
        writing = await open_producers(client, target, retry_seconds=retry_seconds, where=where)
        await end_own(writing)
        # Fencing has appended a marker.
        end = await replicated_end(client, target, log, retry_seconds=retry_seconds, where=where)
    until = time.monotonic() + retry_seconds
    while True:
        await until_stable(client, target, log, upto=end, retry_seconds=retry_seconds, where=where)
        # A transaction that has ended meanwhile has left a marker behind that end. A producer that keeps writing is
        # detected later.
        now = await replicated_end(client, target, log, retry_seconds=retry_seconds, where=where)
        if now == end or time.monotonic() > until:
            return now
        end = now


async def until_stable(
    client: RawClient, target: TopicPartition, log: PartitionReader, *, upto: int, retry_seconds: float, where: Where
) -> None:
    """Wait until every transaction before an offset has ended.

    Raises:
        OpenTransactionError: a transaction did not end in time.
        MirrorError: the cluster did not respond in time, or refused.
    """
    pause, until = _FIRST_LOOK, time.monotonic() + retry_seconds
    while (stable := await _stable(client, target, log)) < upto:
        if time.monotonic() > until:
            raise await _open_transaction(client, target, stable, retry_seconds=retry_seconds, where=where)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


async def _stable(client: RawClient, target: TopicPartition, log: PartitionReader) -> int:
    backoff = log.patient()
    while True:
        try:
            return await client.last_stable_offset(await log.leader(), target)
        except MirrorError as error:
            await log.pause(backoff, error)


async def open_producers(
    client: RawClient, target: TopicPartition, *, retry_seconds: float, where: Where
) -> Mapping[int, ProducerState]:
    """Return the producers with an open transaction on a partition, by their ids; none before Kafka 2.8.

    Raises:
        MirrorError: the leader did not respond in time, or refused.
    """
    known = await producer_states(client, [target], retry_seconds=retry_seconds, where=where)
    states = known.get(target, {})
    return {number: state for number, state in states.items() if state.open_from is not None}


async def _open_transaction(
    client: RawClient, target: TopicPartition, stable: int, *, retry_seconds: float, where: Where
) -> OpenTransactionError:
    """The error for a transaction that does not end, with its producer if the brokers report it."""
    try:
        writing = await open_producers(client, target, retry_seconds=retry_seconds, where=where)
        names = await client.producers.names_of(writing) if writing else []
    except MirrorError:
        writing, names = {}, []
    first = min((state.open_from for state in writing.values() if state.open_from is not None), default=stable)
    producers = ", ".join(map(str, writing)) or "unknown"
    known = f"transactional id {', '.join(names)}" if names else "no coordinator knows its transactional id"
    return OpenTransactionError(
        f"a transaction on {target} is open from offset {first} (producer id {producers}, {known}): whether its "
        "records are committed is unknown, so they cannot be compared with the source.",
        where=where,
        action="Stop that producer: the coordinator aborts its transaction after its transaction.timeout.ms, and the "
        "next run continues. If no coordinator knows the transaction, abort it: `kafka-transactions.sh "
        f"--bootstrap-server ... abort --topic {target.topic} --partition {target.partition} --start-offset {first}`.",
    )
