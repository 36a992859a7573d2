"""Wait for the markers of a transaction, which come a little later than the coordinator's response.

Some never come (`hanging_transactions`, KAFKA-20734). The writer that ended the transaction then makes the coordinator
write them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence

from mirror_lib.cluster.raw.partition_client import Patience
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.takeover.hanging_transactions import (
    FIRST_LOOK,
    LAST_LOOK,
    LATE_SECONDS,
    ProducerTransactions,
    coordinator_deadline,
)
from mirror_lib.errors import FencedError, MirrorError
from mirror_lib.topology.access import Operation
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)


class Markers(ProducerTransactions):
    """The markers of one producer's transactions that were just ended."""

    async def complete(
        self, identity: ProducerIdentity, ends: Mapping[TopicPartition, int], shared: Sequence[TopicPartition]
    ) -> None:
        """Wait for the markers of a committed transaction, and have missing ones written.

        Args:
            ends: log end offset after the marker, for partitions without another writer.
            shared: the partitions that other writers use as well.

        Raises:
            MirrorError: the coordinator refused, or did not respond in time; or the markers do not appear.
        """
        unmarked = await self._ends_without_marker(ends, LATE_SECONDS)
        if unmarked or await self._hidden_without_marker(shared, identity, LATE_SECONDS):
            await self._write(identity, unmarked, shared)

    async def _write(
        self, identity: ProducerIdentity, unmarked: Mapping[TopicPartition, int], shared: Sequence[TopicPartition]
    ) -> None:
        """Have markers written by another transaction, which is committed without any row."""
        # The coordinator adds no partition before the previous transaction is complete. On shared partitions one more
        # marker is harmless; elsewhere it would take an unexpected offset if the first one was only late.
        await self._add(identity, shared)
        without_marker = await self._ends_without_marker(unmarked, 0)
        hidden = await self._hidden_without_marker(shared, identity, 0)
        if without_marker or hidden:
            self._report_missing((*without_marker, *hidden))
        if without_marker:
            await self._add(identity, list(without_marker))
        await self._commit(identity)
        missing = [
            *await self._ends_without_marker(without_marker, self._retry_seconds),
            *await self._hidden_without_marker(hidden, identity, self._retry_seconds),
        ]
        if missing:
            raise self.no_marker(missing)

    async def behind(self, identity: ProducerIdentity, partition: TopicPartition, end: int) -> int:
        """Wait for the marker of a transaction of one partition, and have it written if it does not come.

        Args:
            end: log end offset after the marker; the partition has no other writer.

        Returns:
            Log end offset after all markers: a late one may have been written in addition to the new one.

        Raises:
            MirrorError: as `complete`.
        """
        ends = {partition: end}
        if not await self._ends_without_marker(ends, LATE_SECONDS):
            return end
        # The response comes when the previous transaction is complete. From here on there will be one more marker.
        await self._add(identity, [partition])
        if not await self._ends_without_marker(ends, 0):
            ends = {partition: end + 1}
        else:
            self._report_missing([partition])
        await self._commit(identity)
        if await self._ends_without_marker(ends, self._retry_seconds):
            raise self.no_marker([partition])
        return ends[partition]

    async def _add(self, identity: ProducerIdentity, partitions: Sequence[TopicPartition]) -> None:
        await self._client.producers.add_to_transaction(
            self._name, identity, partitions, deadline=coordinator_deadline()
        )

    async def _commit(self, identity: ProducerIdentity) -> None:
        await self._client.producers.end_transaction(self._name, identity, commit=True, deadline=coordinator_deadline())

    async def _hidden_without_marker(
        self, partitions: Sequence[TopicPartition], identity: ProducerIdentity, seconds: float
    ) -> list[TopicPartition]:
        """The shared partitions that lack the marker after some seconds; their ends do not show it."""
        if not partitions:
            return []
        return await self.without_marker(partitions, identity.producer_id, seconds=seconds)

    async def _ends_without_marker(
        self, ends: Mapping[TopicPartition, int], seconds: float
    ) -> dict[TopicPartition, int]:
        """The partitions without a replicated marker after some seconds."""
        marked = await asyncio.gather(*(self._wait_for_marker(target, end, seconds) for target, end in ends.items()))
        return {target: end for (target, end), there in zip(ends.items(), marked, strict=True) if not there}

    async def _wait_for_marker(self, target: TopicPartition, end: int, seconds: float) -> bool:
        log = Patience(self._client, target, self._retry_seconds, where=self._where, operation=Operation.DESCRIBE)
        backoff = log.patient()
        pause, until = FIRST_LOOK, time.monotonic() + seconds
        while True:
            try:
                high_watermark, _ = await self._client.log_ends(await log.leader(), target)
            except MirrorError as error:
                await log.pause(backoff, error)
                continue
            if high_watermark >= end:
                return True
            if time.monotonic() > until:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_LOOK)


def overtime(error: MirrorError, name: str, *, began: float | None, limit_seconds: float, action: str) -> MirrorError:
    """The error of a transaction's producer, which is fenced as well if its own transaction took too long.

    Args:
        began: when the transaction began, by the monotonic clock.
        limit_seconds: seconds after which it may have been aborted.
        action: what to do if it was.
    """
    seconds = 0.0 if began is None else time.monotonic() - began
    if not isinstance(error, FencedError) or seconds < limit_seconds:
        return error
    return FencedError(
        f"the transaction of {name} was open for {seconds:.0f} s, and the coordinator may abort it after "
        f"{limit_seconds:.0f} s.",
        where=error.where,
        action=action,
    )
