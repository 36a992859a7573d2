"""Holes of the source: offsets without a record, which the target gets as markers of empty transactions.

With `mirror.offsets = same` each record is written at the offset that it has at the source. Where the source has no
record (markers of transactions, compaction, skipped records), as many transactions without a record are committed on
the target: the marker of each takes one offset that no consumer sees. The answer to EndTxn comes before the marker is
written (Java `TransactionCoordinator.endTransaction`), so nothing behind it is sent before it is on the partition.

The transactions are those of the partition's writer, by its own transactional id. A successor ends them when it takes
the id over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.partition_client import Patience
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.transfer.produce_errors import WriteFaults
from mirror_lib.copy.transfer.producer_state import Guard, PartitionWriter
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.errors import MirrorError, TransientError
from mirror_lib.topology.access import Operation

if TYPE_CHECKING:
    from mirror_lib.copy.transfer.halves import Upstream

#: Seconds between looks for a marker.
_FIRST_LOOK, _LAST_LOOK = 0.001, 0.1


class Holes:
    """Fills the holes of a task's target partitions."""

    def __init__(
        self,
        client: RawClient,
        background: Background,
        faults: WriteFaults,
        *,
        retry_seconds: float,
        upstream: Upstream,
        resume: Callable[[PartitionWriter], None],
    ) -> None:
        """Begin without holes.

        Args:
            client: client of the target.
            retry_seconds: how long to retry for coordinators, leaders and markers.
            upstream: is notified when the end of a partition is filled.
            resume: sends to a partition again.
        """
        self._client = client
        self._background = background
        self._faults = faults
        self._retry_seconds = retry_seconds
        self._upstream = upstream
        self._resume = resume

    def fill(self, writer: PartitionWriter, upto: int) -> None:
        """Fill the offsets from the end of a partition up to `upto`; sending continues afterwards."""
        if writer.guard is Guard.EPOCH and writer.failed is None:
            writer.guard = Guard.FILLING
            self._background.start(self._fill(writer, upto))

    async def _fill(self, writer: PartitionWriter, upto: int) -> None:
        try:
            while writer.end < upto and writer.failed is None:
                await self._write_marker(writer)
                for copy in writer.copies:
                    copy.ended_transaction(writer.end)
        except MirrorError as error:
            # Whether the marker will come is unknown: nothing may follow it unseen.
            self._faults.fail(writer, error, certain=False)
        writer.guard = Guard.EPOCH
        # A broker may have forgotten the producer meanwhile: the next batch goes alone.
        writer.known_over = None
        for copy in writer.copies:
            self._upstream.acknowledged(copy, 0)
        if writer.failed is None:
            self._resume(writer)

    async def _write_marker(self, writer: PartitionWriter) -> None:
        assert writer.transactional_id is not None
        name, identity = writer.transactional_id, ProducerIdentity(writer.producer_id, writer.epoch)
        producers, deadline = self._client.producers, time.monotonic() + self._retry_seconds
        await producers.add_to_transaction(name, identity, [writer.target], deadline=deadline)
        await producers.end_transaction(name, identity, commit=True, deadline=deadline)
        end = await self._end_behind_marker(writer)
        if end != writer.end + 1:
            self._faults.fail_diverged(
                writer, f"log end offset of {writer.target} is {end}, expected {writer.end + 1} behind a marker"
            )
            return
        writer.record_marker()

    async def _end_behind_marker(self, writer: PartitionWriter) -> int:
        """Wait until a marker is replicated; return the log end offset."""
        where = self._faults.where(writer)
        log = Patience(self._client, writer.target, self._retry_seconds, where=where, operation=Operation.DESCRIBE)
        pause, backoff, until = _FIRST_LOOK, log.patient(), time.monotonic() + self._retry_seconds
        while True:
            try:
                high_watermark, end = await self._client.log_ends(await log.leader(), writer.target)
            except MirrorError as error:
                await log.pause(backoff, error)
                continue
            if high_watermark > writer.end:
                # Both are requested one after the other.
                return max(high_watermark, end)
            if time.monotonic() > until:
                raise TransientError(
                    f"the marker of an ended transaction did not appear on {writer.target} at offset {writer.end}.",
                    where=where,
                    action="Check that the brokers of this cluster reach each other; the next run looks for it.",
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LAST_LOOK)
