"""The writing half of a copy task: ready batches to the target's leaders, in order, each exactly once.

Every target partition has one writer with one producer identity. Its batches carry consecutive sequence numbers, so a
broker appends each once whatever is resent (KIP-98; it remembers the last five batches, and never more than five are
on their way), and a single writer knows the offset that each batch must get.

Brokers keep the order only of producers that they know: from one that has nothing on the partition yet they take any
sequence number (Java `ProducerAppendInfo.checkSequence`). So the first batch goes alone. And no batch goes to a new
leader before the old one has answered, or more than five could be on their way.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mirror_lib.cluster.batches.assemble import ReadyBatch
from mirror_lib.cluster.batches.stamp import stamp
from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.kafka_errors import error_for_code
from mirror_lib.cluster.raw import ProducedPartition, RawClient
from mirror_lib.config.model import CopySettings
from mirror_lib.errors import MirrorError, TargetDivergedError, Where
from mirror_lib.relay.background import Background
from mirror_lib.relay.model import OpenPartition
from mirror_lib.relay.partition_copy import PartitionCopy
from mirror_lib.relay.retry import Backoff, may_pass
from mirror_lib.topology.names import TopicPartition

_REQUEST_BYTES = 4 * 1024 * 1024
_PRODUCE_TIMEOUT_MS = 30_000
_SEQUENCES = 2**31
#: Brokers answer so only where they have appended nothing. Others can also come after the append: a leader that steps
#: down while it waits for its followers answers NOT_LEADER_OR_FOLLOWER, and the next one may have the batch.
_NOT_APPENDED = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)
#: These tell of another writer, or of a log that lost what it had acknowledged: such a position is not ours to close.
_NOT_ALONE = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)


@dataclass(slots=True, eq=False)
class _Outgoing:
    """A batch with its place in the target's log, and the broker's answer once there is one."""

    batch: ReadyBatch
    copy: PartitionCopy
    expected_offset: int
    answer: ProducedPartition | MirrorError | None = None
    tries: int = 0


class _PartitionWriter:
    """One target partition: what waits, what is on its way, and which sequence and offset come next."""

    def __init__(self, opened: OpenPartition, retry_seconds: float) -> None:
        self.target = opened.plan.target
        #: What is written here: several source partitions in a merge.
        self.copies: list[PartitionCopy] = []
        self.producer_id = opened.producer_id
        self.epoch = opened.epoch
        self.next_sequence = 0
        self.next_offset = opened.target_offset
        self.waiting: deque[_Outgoing] = deque()
        self.in_flight: deque[_Outgoing] = deque()
        #: The broker that `in_flight` was sent to.
        self.leader: int | None = None
        #: Whether the partition has a batch of this producer.
        self.known = False
        #: Batches that were answered while an earlier one must be sent again: they all go again, in order.
        self.resend: list[_Outgoing] = []
        self.backoff = Backoff(retry_seconds)
        self.failed: MirrorError | None = None
        self.queued = False

    @property
    def has_failed(self) -> bool:
        return self.failed is not None

    @property
    def sendable(self) -> bool:
        return (
            bool(self.waiting)
            and not self.resend
            and self.failed is None
            and not self.backoff.waiting
            and (self.known or not self.in_flight)
        )

    def sendable_to(self, leader: int) -> bool:
        return self.sendable and (not self.in_flight or self.leader == leader)


class TargetWriter:
    """Sends batches to the target's leaders, one per partition and request, a few requests at a time per leader.

    `acknowledged` is called after each settled batch with its partition, so that reading can go on.
    """

    def __init__(
        self,
        client: RawClient,
        copies: Sequence[PartitionCopy],
        settings: CopySettings,
        background: Background,
        *,
        acknowledged: Callable[[PartitionCopy, int], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._acknowledged = acknowledged
        self._writers: dict[TopicPartition, _PartitionWriter] = {}
        for copy in copies:
            if copy.target not in self._writers:
                self._writers[copy.target] = _PartitionWriter(copy.opened, settings.retry_max_seconds)
            self._writers[copy.target].copies.append(copy)
        self._queues: dict[int, deque[_PartitionWriter]] = {}
        self._outstanding: dict[int, int] = {}
        self._background = background
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find the leaders."""
        await self._client.refresh_leaders({target.topic for target in self._writers})

    def write(self, copy: PartitionCopy, batches: Sequence[ReadyBatch]) -> int:
        """Append batches after everything that was written to the copy's target before.

        Returns:
            The bytes that were taken over, each of which `acknowledged` will report; 0 when writing has failed.
        """
        writer = self._writers[copy.target]
        if writer.failed is not None:
            return 0
        taken = 0
        for batch in batches:
            stamp(batch, writer.producer_id, writer.epoch, writer.next_sequence)
            writer.waiting.append(_Outgoing(batch, copy, writer.next_offset))
            writer.next_sequence = (writer.next_sequence + batch.count) % _SEQUENCES
            writer.next_offset += batch.count
            copy.unacknowledged_batches += 1
            copy.unacknowledged_bytes += len(batch.payload)
            taken += len(batch.payload)
        self._pump(writer)
        return taken

    def _pump(self, writer: _PartitionWriter) -> None:
        """Queue the partition at its leader and send what may be sent."""
        if not writer.sendable or writer.queued:
            return
        leader = self._client.leader(writer.target)
        if leader is None:
            self._postpone(
                writer,
                error_for_code(
                    ErrorCode.LEADER_NOT_AVAILABLE, where=self._where(writer), doing="find the leader on the target"
                ),
            )
            return
        if not writer.sendable_to(leader):
            return
        writer.queued = True
        self._queues.setdefault(leader, deque()).append(writer)
        self._send_to(leader)

    def _send_to(self, leader: int) -> None:
        queue = self._queues.get(leader)
        while queue and self._outstanding.get(leader, 0) < self._settings.produce_max_in_flight:
            chosen: list[tuple[_PartitionWriter, _Outgoing]] = []
            size = 0
            while queue and (not chosen or size < _REQUEST_BYTES):
                writer = queue.popleft()
                writer.queued = False
                if not writer.sendable_to(leader):
                    continue
                writer.leader = leader
                outgoing = writer.waiting.popleft()
                outgoing.tries += 1
                outgoing.answer = None
                writer.in_flight.append(outgoing)
                chosen.append((writer, outgoing))
                size += len(outgoing.batch.payload)
            # A partition goes to the end of its leader's queue again only now: one batch per request is allowed.
            for writer, _ in chosen:
                if writer.sendable and not writer.queued:
                    writer.queued = True
                    queue.append(writer)
            if chosen:
                self._outstanding[leader] = self._outstanding.get(leader, 0) + 1
                self._background.start(self._produce(leader, chosen))

    async def _produce(self, leader: int, chosen: list[tuple[_PartitionWriter, _Outgoing]]) -> None:
        request = [
            (writer.target.topic, writer.target.partition, outgoing.batch.payload) for writer, outgoing in chosen
        ]
        answers: dict[TopicPartition, ProducedPartition | MirrorError] = {}
        try:
            produced = await self._client.produce(leader, request, timeout_ms=_PRODUCE_TIMEOUT_MS)
            answers = {TopicPartition(answer.topic, answer.partition): answer for answer in produced}
        except MirrorError as error:
            answers = {writer.target: error for writer, _ in chosen}
        finally:
            self._outstanding[leader] -= 1
        for writer, outgoing in chosen:
            outgoing.answer = answers.get(writer.target) or error_for_code(
                ErrorCode.REQUEST_TIMED_OUT, where=self._where(writer), doing="write to the target"
            )
            self._settle(writer)
        self._send_to(leader)

    def _settle(self, writer: _PartitionWriter) -> None:
        """Work through the answers in the order of the batches."""
        while writer.in_flight and writer.in_flight[0].answer is not None:
            outgoing = writer.in_flight.popleft()
            # Everything behind a refused batch goes again too; the broker drops what it already has.
            again = writer.failed is None and (bool(writer.resend) or not self._accepted(writer, outgoing))
            if writer.has_failed:
                self._abandon(outgoing)
            elif again:
                writer.resend.append(outgoing)
        if writer.resend and not writer.in_flight and writer.failed is None:
            self._go_back(writer)
        elif writer.failed is None:
            self._pump(writer)

    def _accepted(self, writer: _PartitionWriter, outgoing: _Outgoing) -> bool:
        answer = outgoing.answer
        if not isinstance(answer, ProducedPartition):
            return False
        resent = outgoing.tries > 1
        if answer.error_code == 0 and answer.base_offset == outgoing.expected_offset:
            pass
        elif answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and resent:
            pass  # Appended at an earlier try, too long ago for the broker to say where.
        elif answer.error_code == 0:
            self._fail(
                writer,
                TargetDivergedError(
                    f"the target appended a batch at offset {answer.base_offset} where {outgoing.expected_offset} "
                    "was expected: somebody else writes to this partition.",
                    where=outgoing.copy.where(),
                    action=f"Find the other writer of {writer.target} on {self._client.cluster}; only the "
                    "replicator may write to it.",
                ),
                certain=False,
            )
            return False
        else:
            self._refused(writer, outgoing, answer)
            return False
        writer.known = True
        writer.backoff.progressed()
        copy, size = outgoing.copy, len(outgoing.batch.payload)
        copy.acknowledged(outgoing.batch, outgoing.expected_offset)
        self._acknowledged(copy, size)
        return True

    def _refused(self, writer: _PartitionWriter, outgoing: _Outgoing, answer: ProducedPartition) -> None:
        first = outgoing.batch.source_runs[0][0]
        error = error_for_code(
            answer.error_code,
            where=outgoing.copy.where(first),
            doing=f"append {outgoing.batch.count} records ({len(outgoing.batch.payload)} bytes) to {writer.target}",
        )
        if not may_pass(error):
            certain = answer.error_code not in _NOT_ALONE and not _maybe_appended(outgoing)
            self._fail(writer, error, certain=certain)

    def _go_back(self, writer: _PartitionWriter) -> None:
        """Put everything that was not acknowledged back in front, and try again after a pause."""
        cause = writer.resend[0].answer
        if isinstance(cause, ProducedPartition):
            cause = error_for_code(
                cause.error_code, where=writer.resend[0].copy.where(), doing=f"append to {writer.target}"
            )
        assert cause is not None
        writer.waiting.extendleft(reversed(writer.resend))
        writer.resend.clear()
        self._postpone(writer, cause)

    def _postpone(self, writer: _PartitionWriter, cause: MirrorError) -> None:
        if writer.backoff.waiting:
            return
        if not writer.backoff.failed(cause):
            self._fail(
                writer,
                type(cause)(
                    f"writing to {writer.target} did not succeed for {writer.backoff.seconds_failing:.0f} s; "
                    f"last: {cause.what}",
                    where=self._where(writer),
                    action=cause.action or "Check the target's brokers; the next run goes on from here.",
                ),
                certain=not any(_maybe_appended(outgoing) for outgoing in writer.waiting),
            )
            return
        self._refresh_leaders()
        delay = max(writer.backoff.not_before - time.monotonic(), 0) + 0.01
        asyncio.get_running_loop().call_later(delay, self._pump, writer)

    def _fail(self, writer: _PartitionWriter, error: MirrorError, *, certain: bool) -> None:
        writer.failed = error
        for copy in writer.copies:
            if not copy.finished:
                copy.fail(error, certain=certain)
        abandoned = [*writer.resend, *writer.waiting]
        writer.resend.clear()
        writer.waiting.clear()
        for outgoing in abandoned:
            self._abandon(outgoing)
        for copy in writer.copies:
            self._acknowledged(copy, 0)

    def _abandon(self, outgoing: _Outgoing) -> None:
        copy, size = outgoing.copy, len(outgoing.batch.payload)
        if _maybe_appended(outgoing):
            copy.certain = False
        copy.unacknowledged_batches -= 1
        copy.unacknowledged_bytes -= size
        self._acknowledged(copy, size)

    def _where(self, writer: _PartitionWriter) -> Where:
        return writer.copies[0].where()

    def _refresh_leaders(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._background.start(self._refresh())

    async def _refresh(self) -> None:
        topics = {writer.target.topic for writer in self._writers.values() if writer.failed is None}
        try:
            failed = await self._client.refresh_leaders(topics) if topics else {}
        except MirrorError:
            return  # The pauses of the partitions bound how long this may go on.
        for writer in self._writers.values():
            code = failed.get(writer.target.topic)
            if code is not None and writer.failed is None and writer.waiting:
                self._postpone(writer, error_for_code(code, where=self._where(writer), doing="write to the target"))
            else:
                self._pump(writer)


def _maybe_appended(outgoing: _Outgoing) -> bool:
    """Whether the target may hold this batch although it did not say so."""
    answer = outgoing.answer
    if outgoing.tries == 0:
        return False
    return not (isinstance(answer, ProducedPartition) and outgoing.tries == 1 and answer.error_code in _NOT_APPENDED)
