"""Batches so old that brokers forget their producer: they are written in transactions.

A broker forgets a producer, and with it the epoch and the sequence numbers that keep other writers off, when the newest
timestamp of its last batch is older than `producer.id.expiration.ms` (Java `ProducerStateManager.isProducerExpired`,
looked at every ten minutes). Copied records often are that old, and then a writer that was overtaken long ago can
append again. It does not forget one whose transaction is open. And what belongs to a transaction it takes only after
it has asked the coordinator, who knows the newest epoch (KIP-890, since Kafka 3.6).

So a partition's transaction begins before its first old batch, takes whatever comes then, and is committed when nothing
more comes or some seconds have passed. Its marker takes one offset. Its batches have the producer and the sequence
numbers that all others of the partition have: whoever takes the partition over ends the transaction as well.

Until it is committed the account of the partition stays where it was (`PartitionCopy.appended`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.kafka_errors import error_for_code
from mirror_lib.cluster.producers import ProducerIdentity
from mirror_lib.cluster.raw import RawClient
from mirror_lib.cluster.retry import may_pass
from mirror_lib.errors import FencedError, MirrorError, Where
from mirror_lib.relay.background import Background
from mirror_lib.relay.hanging import FIRST_LOOK, LAST_LOOK, Hanging
from mirror_lib.relay.model import ProducerMemory
from mirror_lib.relay.partition_copy import PartitionCopy
from mirror_lib.relay.partition_writer import Guard, PartitionWriter
from mirror_lib.relay.write_faults import WriteFaults

#: The request by which brokers ask a coordinator what is in a transaction, and its first version that can.
_ADD_PARTITIONS_TO_TXN, _VERIFYING_VERSION = 24, 4
#: What a transaction may take before it is committed; half of what coordinators grant producers unasked.
COMMIT_SECONDS = 30.0
_CLOSING_SECONDS = 5.0
#: Markers that are not there so long after a commit may have been left out.
_LATE_SECONDS = 5.0


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
        acknowledged: Callable[[PartitionCopy, int], None],
        go_on: Callable[[PartitionWriter], None],
    ) -> None:
        """Begin none.

        Args:
            client: of the target.
            memory: what its brokers remember.
            retry_seconds: how long coordinators and leaders are waited for.
            acknowledged: told of a partition whose transaction has ended.
            go_on: tries a partition again.
        """
        self._client = client
        self._background = background
        self._faults = faults
        self._retry_seconds = retry_seconds
        self._acknowledged = acknowledged
        self._go_on = go_on
        self._in_transactions = memory.verifies_transactions
        #: Epoch milliseconds; a batch whose newest timestamp lies before is old.
        self.before = memory.old_before(time.time())
        #: By the monotonic clock, when the open transactions began.
        self._began: dict[PartitionWriter, float] = {}

    def guard(self, writer: PartitionWriter) -> None:
        """Have old batches of a partition go into transactions, where brokers and the writer can do that."""
        writer.guards_old = (
            self._in_transactions and writer.transactional_id is not None and writer.transactions is None
        )

    # ------------------------------------------------------------ begin

    def begin(self, writer: PartitionWriter) -> None:
        """Begin a partition's transaction; it is tried again when that is done."""
        writer.guard = Guard.BEGINNING
        self._background.start(self._begin(writer))

    async def _begin(self, writer: PartitionWriter) -> None:
        try:
            if not await self._verified(writer):
                self._in_transactions = writer.guards_old = False
                writer.guard = Guard.EPOCH
                self._go_on(writer)
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
        # A broker may have forgotten it since the last one was committed: the first batch goes alone.
        writer.known_over = None
        self._began[writer] = time.monotonic()
        if writer.failed is None:
            self._go_on(writer)
        self.consider(writer)

    async def _verified(self, writer: PartitionWriter) -> bool:
        """Whether the leader's version asks coordinators about transactions, which it does by such a request."""
        leader = self._client.leader(writer.target)
        if leader is None:
            where = self._where(writer)
            raise error_for_code(ErrorCode.LEADER_NOT_AVAILABLE, where=where, doing="find the leader on the target")
        return await self._client.speaks(leader, _ADD_PARTITIONS_TO_TXN, _VERIFYING_VERSION)

    # ------------------------------------------------------------ end

    def end_due(self) -> None:
        """End the transactions that have taken long enough."""
        before = time.monotonic() - COMMIT_SECONDS
        for writer in [each for each, began in self._began.items() if began < before]:
            if writer.guard is Guard.TRANSACTION:
                writer.guard = Guard.ENDING
            self.consider(writer)

    def consider(self, writer: PartitionWriter) -> None:
        """End a partition's transaction if nothing more comes, or if it was only waited for what is on its way."""
        if writer.guard is Guard.TRANSACTION and (writer.failed is not None or _all_written(writer)):
            writer.guard = Guard.ENDING
        if writer.guard is Guard.ENDING and writer in self._began and writer.at_rest:
            began = self._began.pop(writer)
            self._background.start(self._end(writer, began))

    async def _end(self, writer: PartitionWriter, began: float) -> None:
        end = writer.acknowledged_end + 1
        try:
            await self._client.producers.end_transaction(
                _name(writer), _identity(writer), commit=True, deadline=self._deadline()
            )
            await self._see_marker(writer, end)
        except MirrorError as error:
            # Whoever takes over finds out from the log what became of it.
            for copy in writer.copies:
                copy.not_committed()
            self._faults.fail(writer, _told(error, writer, began), certain=False)
        else:
            writer.marked()
            for copy in writer.copies:
                copy.committed(end)
        writer.guard = Guard.EPOCH
        for copy in writer.copies:
            self._acknowledged(copy, 0)
        if writer.failed is None:
            self._go_on(writer)

    async def close(self) -> None:
        """Commit what is open, so that readers need not wait for its timeout; what is in it is a part of the source."""
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

    # ------------------------------------------------------------ markers

    async def _see_marker(self, writer: PartitionWriter, end: int) -> None:
        """Wait until the log reaches behind the marker, which comes a little later than the answer to the commit.

        Raises:
            MirrorError: it does not appear, or the cluster cannot be asked.
        """
        if await self._reaches(writer, end, _LATE_SECONDS):
            return
        where = self._where(writer)
        hanging = Hanging(self._client, _name(writer), retry_seconds=self._retry_seconds, where=where)
        # The coordinator takes no partition before it has completed the transaction before.
        if await hanging.without_marker([writer.target], writer.producer_id, seconds=0):
            # It left out the marker (KAFKA-20734); nobody else would write it.
            name, identity, producers = _name(writer), _identity(writer), self._client.producers
            await producers.add_to_transaction(name, identity, [writer.target], deadline=self._deadline())
            await producers.end_transaction(name, identity, commit=True, deadline=self._deadline())
        if not await self._reaches(writer, end, self._retry_seconds):
            raise hanging.no_marker([writer.target])

    async def _reaches(self, writer: PartitionWriter, end: int, seconds: float) -> bool:
        pause, until = FIRST_LOOK, time.monotonic() + seconds
        while True:
            leader = self._client.leader(writer.target)
            try:
                if leader is None:
                    await self._client.refresh_leaders([writer.target.topic])
                else:
                    high_watermark, _ = await self._client.log_ends(leader, writer.target)
                    if high_watermark >= end:
                        return True
            except MirrorError as error:
                if not may_pass(error):
                    raise
                await self._client.refresh_leaders([writer.target.topic])
            if time.monotonic() > until:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_LOOK)

    def _where(self, writer: PartitionWriter) -> Where:
        return self._faults.where(writer)

    def _deadline(self) -> float:
        return time.monotonic() + self._retry_seconds


def _all_written(writer: PartitionWriter) -> bool:
    return not writer.waiting and writer.at_rest and all(copy.read_done for copy in writer.copies)


def _name(writer: PartitionWriter) -> str:
    assert writer.transactional_id is not None
    return writer.transactional_id


def _identity(writer: PartitionWriter) -> ProducerIdentity:
    return ProducerIdentity(writer.producer_id, writer.epoch)


def _told(error: MirrorError, writer: PartitionWriter, began: float) -> MirrorError:
    """The error of a commit, which is refused as well when the coordinator has aborted what was open for too long."""
    seconds = time.monotonic() - began
    if not isinstance(error, FencedError) or seconds < 2 * COMMIT_SECONDS:
        return error
    return FencedError(
        f"the transaction of {_name(writer)} was open for {seconds:.0f} s: the coordinator has aborted it, or another "
        "run has taken over.",
        where=error.where,
        action="Find out what stopped the task for so long. The next run goes on behind what is committed.",
    )
