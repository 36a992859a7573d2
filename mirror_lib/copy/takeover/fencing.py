"""Fence the earlier writer of a target partition: its end is then final."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Mapping

from mirror_lib.cluster.protocol.transactions import ProducerState
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.describe_producers import producer_states
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.takeover.partition_reader import PartitionReader
from mirror_lib.copy.takeover.stable_end import stable_end
from mirror_lib.copy.transfer.open_positions import names_of_flow
from mirror_lib.errors import TargetTruncatedError, TransientError, Where
from mirror_lib.planning.model import CopyJob, OpenPartition, Takeover
from mirror_lib.planning.next_steps import after_lost_records
from mirror_lib.topology.names import FlowId, TopicPartition

_log = logging.getLogger(__name__)
#: How long coordinators may take to respond.
FENCING_SECONDS = 60.0


async def fence(
    job: CopyJob, opened: OpenPartition, client: RawClient, log: PartitionReader
) -> tuple[ProducerIdentity, int]:
    """Fence the earlier writer; return the new one, and the end of the target's log.

    No transaction is open before that end.

    Args:
        opened: a partition with a take-over.
        client: client of the target.
        log: reader of the target partition.

    Raises:
        TargetTruncatedError: the target is shorter than what was certainly copied.
        MirrorError: the cluster did not respond in time, or refused.
    """
    takeover = opened.takeover
    assert takeover is not None
    where = Where(flow=str(job.flow), topic=opened.plan.source.topic, partition=opened.plan.source.partition)
    retry_seconds = job.settings.retry_max_seconds
    identity = await _identity(job, opened, client, takeover, retry_seconds=retry_seconds, where=where)

    async def fence_open(writing: Collection[int]) -> None:
        # A run that died in its first transaction is not in any position.
        if opened.transactional_id is not None:
            await fence_producers(
                job.flow, client, writing, opened.plan.target, retry_seconds=retry_seconds, where=where
            )

    end = await stable_end(
        client, opened.plan.target, log, retry_seconds=retry_seconds, where=where, end_own=fence_open
    )
    check_not_truncated(opened.plan.target, end, takeover.target_offset, where)
    return identity, end


async def fence_name(
    client: RawClient,
    name: str,
    targets: Collection[TopicPartition],
    *,
    retry_seconds: float,
    where: Where,
    commit: bool = False,
) -> ProducerIdentity:
    """Make partitions refuse every older epoch of a transactional id, and end its transactions there.

    A marker does that, and a coordinator of Kafka 4 writes none to partitions that have no leader at that moment
    (KAFKA-20734). So the leaders are asked, and partitions whose leader does not know the new epoch are fenced again.

    Args:
        retry_seconds: how long to wait for leaders.
        where: the location of errors.
        commit: commit the earlier writer's open transaction, since it has the next records of the source
            (`old_records`); else it is aborted.

    Raises:
        MirrorError: the cluster did not respond in time, or refused.
    """
    until = time.monotonic() + retry_seconds
    left = targets
    while True:
        deadline = time.monotonic() + FENCING_SECONDS
        identity = await client.producers.fence(name, *left, deadline=deadline, commit=commit)
        known = await producer_states(client, left, retry_seconds=retry_seconds, where=where)
        left = [target for target, producers in known.items() if not _has_reached(producers, identity)]
        if not left:
            return identity
        names = ", ".join(map(str, left))
        if time.monotonic() > until:
            raise TransientError(
                f"the earlier writer could not be fenced on {names}: the marker of {name} did not appear there.",
                where=where,
                action="Check that the brokers of this cluster reach each other; the next run tries again.",
            )
        _log.warning("the coordinator of %s wrote no abort marker for %s; fencing again", name, names)


def _has_reached(producers: Mapping[int, ProducerState], identity: ProducerIdentity) -> bool:
    """True if a leader refuses all epochs before the one that fencing returned.

    The marker has the epoch before it. When the epochs of an id are exhausted the last one comes with another id, and
    the partition is fenced again.
    """
    known = producers.get(identity.producer_id)
    return known is not None and known.epoch >= identity.epoch - 1


def check_not_truncated(target: TopicPartition, end: int, written: int, where: Where) -> None:
    """Check that a target's log reaches the offset up to which it was certainly written.

    Raises:
        TargetTruncatedError: it ends before.
    """
    if end < written:
        raise TargetTruncatedError(
            f"log end offset of {target} is {end}, expected at least {written}: records of this flow are missing.",
            where=where,
            action=after_lost_records(where),
        )


async def _identity(
    job: CopyJob, opened: OpenPartition, client: RawClient, takeover: Takeover, *, retry_seconds: float, where: Where
) -> ProducerIdentity:
    """Take the partition from its writer; if the broker cannot fence it, wait until it must have ended."""
    name = opened.transactional_id
    if name is None:
        identity = await client.producers.new_producer_id(deadline=time.monotonic() + FENCING_SECONDS)
        await asyncio.sleep(seconds_until_ended(takeover, {identity.producer_id}))
        return identity
    # Uncommitted rows of a writer that stores positions in its transactions do not count.
    commit = not takeover.in_transactions and opened.transactions is None
    targets = [opened.plan.target]
    identity = await fence_name(client, name, targets, retry_seconds=retry_seconds, where=where, commit=commit)
    fenced = {identity.producer_id}
    if takeover.producer_id is not None and takeover.producer_id not in fenced:
        # The writer may have used another name of the flow: rows of a transform that chooses partitions share a
        # producer.
        fenced |= await fence_producers(
            job.flow, client, {takeover.producer_id}, opened.plan.target, retry_seconds=retry_seconds, where=where
        )
    await asyncio.sleep(seconds_until_ended(takeover, fenced))
    return identity


async def fence_producers(
    flow: FlowId,
    client: RawClient,
    producer_ids: Collection[int],
    target: TopicPartition,
    *,
    retry_seconds: float,
    where: Where,
) -> set[int]:
    """Fence producers of a flow on a partition by all their transactional ids; return the producer ids of the fenced.

    Kafka reports these names since 3.0.

    Raises:
        MirrorError: the cluster did not respond in time, or refused.
    """
    names = names_of_flow(flow, await client.producers.names_of(producer_ids))
    fenced = [await fence_name(client, name, [target], retry_seconds=retry_seconds, where=where) for name in names]
    return {each.producer_id for each in fenced}


def seconds_until_ended(takeover: Takeover, fenced: Collection[int]) -> float:
    """Seconds that the earlier writer may continue although its names were fenced: 0 if it was fenced.

    A transactional id whose epochs are exhausted, or that expired, gets another producer id: fencing by the name does
    not reach the old one.

    Args:
        fenced: the producer ids that its names have now.
    """
    reached = takeover.producer_id is None or takeover.producer_id in fenced
    return 0.0 if reached else takeover.lease_seconds
