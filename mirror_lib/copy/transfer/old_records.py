"""Batches so old that brokers forget their producer: they are written in transactions.

A broker forgets a producer, and with it the epoch and the sequence numbers that fence other writers, if the newest
timestamp of its last batch is older than `producer.id.expiration.ms` (Java `ProducerStateManager.isProducerExpired`,
checked every ten minutes). Copied records are often that old, and then a writer that was fenced long ago can append
again. The broker does not forget a producer whose transaction is open. And it accepts a batch of a transaction only
after it has asked the coordinator, which knows the newest epoch (KIP-890, since Kafka 3.6).

So a partition's transaction begins before its first old batch, contains all batches that follow, and is committed when
there are no more batches or some seconds have passed. Its marker takes one offset. Its batches use the partition's
usual producer and sequence numbers, so a take-over of the partition ends the transaction as well.

The account of the partition does not advance before the commit (`PartitionCopy.appended`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.protocol.transactions import ADD_PARTITIONS_TO_TXN, VERIFYING_VERSION
from mirror_lib.cluster.raw.backoff import may_pass
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.cluster.raw.producer_ids import ProducerIdentity
from mirror_lib.copy.takeover.transaction_markers import Markers, overtime
from mirror_lib.copy.transfer.produce_errors import WriteFaults
from mirror_lib.copy.transfer.producer_state import Guard, PartitionWriter
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.errors import FencedError, MirrorError
from mirror_lib.planning.model import ProducerMemory

if TYPE_CHECKING:
    from mirror_lib.copy.transfer.halves import Upstream

#: Maximum seconds until a transaction is committed; half of the default transaction timeout.
COMMIT_SECONDS = 30.0
_CLOSING_SECONDS = 5.0
_STALLED = "Find out why the task stopped for so long. The next run continues at the last committed record."


class OldRecords:
    """The transactions of a task's target partitions."""

    def __init__(
        self,
        client: RawClient,
        memory: ProducerMemory,
        background: Background,
        faults: WriteFaults,
        *,
        retry_seconds: float,
        upstream: Upstream,
        resume: Callable[[PartitionWriter], None],
    ) -> None:
        """Start without transactions.

        Args:
            client: client of the target.
            memory: what the target's brokers remember of producers.
            retry_seconds: how long to retry for coordinators and leaders.
            upstream: is notified of ended transactions.
            resume: sends to a partition again.
        """
        self._client = client
        self._background = background
        self._faults = faults
        self._retry_seconds = retry_seconds
        self._upstream = upstream
        self._resume = resume
        self._in_transactions = memory.verifies_transactions
        #: Epoch milliseconds; a batch whose newest timestamp is before it is old.
        self.before = memory.old_before(time.time())
        #: Start of each open transaction, in monotonic seconds.
        self._began: dict[PartitionWriter, float] = {}

    def guard(self, writer: PartitionWriter) -> None:
        """Put old batches of a partition into transactions, if brokers and the writer support that.

        With the same offsets there is no place for their markers.
        """
        writer.guards_old = (
            self._in_transactions
            and writer.transactional_id is not None
            and writer.transactions is None
            and not writer.same_offsets
        )

    # ------------------------------------------------------------ begin

    def begin(self, writer: PartitionWriter) -> None:
        """Begin a partition's transaction; sending continues when it has begun."""
        writer.guard = Guard.BEGINNING
        self._background.start(self._begin(writer))

    async def _begin(self, writer: PartitionWriter) -> None:
        try:
            if not await self._verifies_transactions(writer):
                self._in_transactions = writer.guards_old = False
                writer.guard = Guard.EPOCH
                self._resume(writer)
                return
            await self._client.producers.add_to_transaction(
                _name(writer), _identity(writer), [writer.target], deadline=self._deadline()
            )
        except MirrorError as error:
            writer.guard = Guard.EPOCH
            if writer.failed is not None:
                pass
            elif may_pass(error):
                self._faults.postpone(writer, error)
            else:
                self._faults.fail(writer, error, certain=not isinstance(error, FencedError))
            return
        writer.guard = Guard.TRANSACTION
        # A broker may have forgotten the producer since the last commit: the first batch goes alone.
        writer.known_over = None
        self._began[writer] = time.monotonic()
        if writer.failed is None:
            self._resume(writer)
        self.consider(writer)

    async def _verifies_transactions(self, writer: PartitionWriter) -> bool:
        """Return whether the leader verifies transactions with the coordinator, by its AddPartitionsToTxn version."""
        leader = self._client.leader(writer.target)
        if leader is None:
            where = self._faults.where(writer)
            raise error_for_code(ErrorCode.LEADER_NOT_AVAILABLE, where=where, doing="find the leader on the target")
        return await self._client.speaks(leader, ADD_PARTITIONS_TO_TXN, VERIFYING_VERSION)

    # ------------------------------------------------------------ end

    def end_due(self) -> None:
        """End the transactions that are older than `COMMIT_SECONDS`."""
        before = time.monotonic() - COMMIT_SECONDS
        for writer in [each for each, began in self._began.items() if began < before]:
            if writer.guard is Guard.TRANSACTION:
                writer.guard = Guard.ENDING
            self.consider(writer)

    def consider(self, writer: PartitionWriter) -> None:
        """End a partition's transaction if no more batches follow, or if it only waited for those in flight."""
        if writer.guard is Guard.TRANSACTION and (writer.failed is not None or _all_written(writer)):
            writer.guard = Guard.ENDING
        if writer.guard is Guard.ENDING and writer in self._began and writer.at_rest:
            began = self._began.pop(writer)
            self._background.start(self._end(writer, began))

    async def _end(self, writer: PartitionWriter, began: float) -> None:
        end = writer.end + 1
        try:
            await self._client.producers.end_transaction(
                _name(writer), _identity(writer), commit=True, deadline=self._deadline()
            )
            end = await self._markers(writer).behind(_identity(writer), writer.target, end)
        except MirrorError as error:
            # A take-over finds the result in the log.
            for copy in writer.copies:
                copy.not_committed()
            explained = overtime(error, _name(writer), began=began, limit_seconds=2 * COMMIT_SECONDS, action=_STALLED)
            self._faults.fail(writer, explained, certain=False)
        else:
            writer.record_marker()
            for copy in writer.copies:
                copy.record_committed(end)
            self._upstream.committed(writer.copies)
        writer.guard = Guard.EPOCH
        for copy in writer.copies:
            self._upstream.acknowledged(copy, 0)
        if writer.failed is None:
            self._resume(writer)

    async def close(self) -> None:
        """Commit open transactions, so that readers need not wait for their timeout; their content is valid."""
        left = list(self._began)
        self._began.clear()
        await asyncio.gather(*(self._close(writer) for writer in left))

    async def _close(self, writer: PartitionWriter) -> None:
        deadline = time.monotonic() + _CLOSING_SECONDS
        producers = self._client.producers
        try:
            await producers.end_transaction(_name(writer), _identity(writer), commit=True, deadline=deadline)
        except MirrorError:
            return  # The next run ends it.

    def _markers(self, writer: PartitionWriter) -> Markers:
        where = self._faults.where(writer)
        return Markers(self._client, _name(writer), retry_seconds=self._retry_seconds, where=where)

    def _deadline(self) -> float:
        return time.monotonic() + self._retry_seconds


def _all_written(writer: PartitionWriter) -> bool:
    return not writer.waiting and writer.at_rest and all(copy.read_done for copy in writer.copies)


def _name(writer: PartitionWriter) -> str:
    assert writer.transactional_id is not None
    return writer.transactional_id


def _identity(writer: PartitionWriter) -> ProducerIdentity:
    return ProducerIdentity(writer.producer_id, writer.epoch)
