"""The writing half of a copy task: completed batches to the target's leaders, in order, each exactly once.

Every target partition has one writer with one producer identity. Its batches have consecutive sequence numbers, so a
broker appends each once regardless of retries (KIP-98; it remembers the last five batches, and never more than five
are in flight), and a single writer knows the offset that each batch must get.

Brokers keep the order only for producers that they know: from a producer without state on the partition they accept
any sequence number (Java `ProducerAppendInfo.checkSequence`). So the first batch on each connection goes alone. And all
batches in flight are on one connection to one leader: on another one a batch could arrive before those that the first
one lost, or be the sixth.

Resending a batch whose response was lost is not enough. A broker that restarts forgets all but the last batch of a
producer, and the whole producer if that batch's own timestamps are older than a day (`ProducerStateManager`), as in
many copied records. So the writer checks the end of the log first: it shows which of the batches were appended.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.fields import encode_topic_id
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.backoff import may_pass, without_frames
from mirror_lib.cluster.raw.client import ProducedPartition, RawClient
from mirror_lib.copy.transfer.broker_connections import ConnectionSlots
from mirror_lib.copy.transfer.old_records import OldRecords
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.copy.transfer.produce_errors import WriteFaults, about_records
from mirror_lib.copy.transfer.producer_state import (
    EPOCH,
    LOOK,
    NOT_ALONE,
    SEND,
    Chosen,
    ConnectionSlot,
    Outgoing,
    PartitionWriter,
    first_of_each,
)
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.copy.transfer.torn_connections import TornConnections
from mirror_lib.errors import MirrorError, TargetTruncatedError, TransientError
from mirror_lib.planning.model import CopyJob
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.topology.names import TopicPartition

if TYPE_CHECKING:
    from mirror_lib.copy.transfer.halves import Upstream
    from mirror_lib.copy.transfer.holes import Holes

_REQUEST_BYTES = 4 * 1024 * 1024
_PRODUCE_TIMEOUT_MS = 30_000
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TICK_SECONDS = 1.0
#: A task that was suspended for longer may have been taken over; for a part of the lease, if that is shorter.
_STALL_SECONDS = 5.0
_STALL_SHARE = 0.5
#: Number of waiting partitions that fill a request. If batches go one at a time, fewer wait until the request before
#: is answered: else each would always have its own request.
_FILLING_PARTITIONS = 16
#: At 150 ms of round-trip time it takes one second to connect with TLS and SASL.
_CONNECT_SECONDS = 3.0


class TargetWriter:
    """Sends batches to the target's leaders, one per partition and request, a few requests at a time per connection."""

    def __init__(
        self,
        client: RawClient,
        copies: Sequence[PartitionCopy],
        job: CopyJob,
        background: Background,
        *,
        upstream: Upstream,
        omissions: Omissions,
    ) -> None:
        settings = job.settings
        self._flow = job.flow
        self._client = client
        self._settings = settings
        self._acknowledged = upstream.acknowledged
        self._faults = WriteFaults(
            client=client,
            background=background,
            acknowledged=upstream.acknowledged,
            lost_leader=self._refresh_leaders,
            resume=self._pump,
        )
        self._omissions = omissions
        self._old = OldRecords(
            client,
            job.producer_memory,
            background,
            self._faults,
            retry_seconds=settings.retry_max_seconds,
            upstream=upstream,
            resume=self._pump,
        )
        self._holes: Holes | None = None
        self._upstream = upstream
        self._writers: dict[TopicPartition, PartitionWriter] = {}
        self._stall_seconds = _STALL_SECONDS
        self._topic_ids: dict[str, bytes] = {}
        for copy in copies:
            self._writer_of(copy).copies.append(copy)
        self._slots = ConnectionSlots(client, settings, self._writers.values(), tasks=len(job.bins))
        self._queues: dict[ConnectionSlot, deque[PartitionWriter]] = {}
        self._outstanding: dict[ConnectionSlot, int] = {}
        #: The connection whose response is processed: only afterwards is it known what the next request can hold.
        self._settling: ConnectionSlot | None = None
        self._torn = TornConnections()
        #: Leaders with only one batch in flight, which is suspected of ending connections.
        self._alone: set[int] = set()
        #: Leaders that get no request until all responses are in, so that such a batch can go; with its connection.
        self._clearing: dict[int, ConnectionSlot] = {}
        self._held_back = False
        self._request_bytes = min(_REQUEST_BYTES, settings.request_max_bytes or _REQUEST_BYTES)
        self._background = background
        self._refreshing: asyncio.Task[None] | None = None
        self._awake_at = _now()
        #: How often the process was suspended, as far as that was noticed.
        self._stalls = 0

    def add(self, copy: PartitionCopy) -> None:
        """Add a partition; the client knows its target's leader."""
        writer = self._writer_of(copy)
        writer.copies.append(copy)
        if writer.failed is not None:
            copy.fail(writer.failed)

    def _writer_of(self, copy: PartitionCopy) -> PartitionWriter:
        writer = self._writers.get(copy.target)
        if writer is None:
            writer = self._writers[copy.target] = PartitionWriter(
                copy.opened,
                self._settings.retry_max_seconds,
                same_offsets=self._settings.same_offsets,
            )
            # A task may begin long after the claim, for example behind another one of a run that was suspended. With a
            # clock that is behind the claiming machine's the time is unknown.
            stall_seconds = min(_STALL_SECONDS, _STALL_SHARE * copy.opened.lease_seconds)
            writer.stale = not 0 <= time.time() - copy.opened.claimed_at <= stall_seconds
            # The loop itself may come late by as much as it sleeps.
            self._stall_seconds = min(self._stall_seconds, max(stall_seconds, 2 * _TICK_SECONDS))
            self._old.guard(writer)
            if writer.topic_id is not None:
                self._topic_ids[copy.target.topic] = encode_topic_id(writer.topic_id)
        return writer

    def end_of(self, target: TopicPartition) -> int | None:
        """Log end offset of a partition after everything written is appended; None if it has no writer."""
        writer = self._writers.get(target)
        return None if writer is None else writer.next_offset

    def ended_transaction(self, target: TopicPartition) -> int:
        """Record that a transaction's marker follows everything that was written to a partition, all acknowledged.

        Return the log end offset.
        """
        writer = self._writers[target]
        assert not writer.waiting
        assert not writer.in_flight
        writer.record_marker()
        return writer.next_offset

    def may_end(self, copy: PartitionCopy) -> None:
        """Record that a partition may have no more batches: its transaction ends, and holes at its end are filled."""
        if copy.read_done and copy.has_uncommitted:
            self._old.consider(self._writers[copy.target])
        if copy.lacks_end and copy.target in self._writers:
            self._fill(self._writers[copy.target], copy.read_to)

    def _fill(self, writer: PartitionWriter, upto: int) -> None:
        """Fill a hole of the source at the end of a target partition; sending continues afterwards."""
        if self._holes is None:
            # Tasks of other flows do not load it.
            from mirror_lib.copy.transfer.holes import Holes

            self._holes = Holes(
                self._flow,
                self._client,
                self._background,
                self._faults,
                most=self._settings.offsets_pad_max_records,
                retry_seconds=self._settings.retry_max_seconds,
                upstream=self._upstream,
                resume=self._pump,
            )
        self._holes.fill(writer, upto)

    async def run(self) -> None:
        """End transactions in time, and detect when the process was suspended; until cancelled."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            self._notice_stall()
            self._old.end_due()

    async def close(self) -> None:
        """End all transactions."""
        await self._old.close()

    def _notice_stall(self) -> None:
        """Detect a suspended process before anything is sent: another run may have taken over meanwhile."""
        now = _now()
        if now - self._awake_at > self._stall_seconds:
            self._stalls += 1
            for writer in self._writers.values():
                writer.stale = True
        self._awake_at = now

    @property
    def far(self) -> bool:
        """True if some leader has high latency."""
        return self._slots.far

    async def start(self) -> None:
        """Find the leaders and their round-trip times: these determine the size of the first batches."""
        await self._client.refresh_leaders({target.topic for target in self._writers})
        leaders = {leader for target in self._writers if (leader := self._client.leader(target)) is not None}
        if leaders:
            connecting = [self._background.start(self._connect(leader)) for leader in leaders]
            # A leader that does not respond must not delay the partitions of the others.
            await asyncio.wait(connecting, timeout=_CONNECT_SECONDS)
        await self._compare_topics()

    async def _compare_topics(self) -> None:
        """Check partitions first whose topic is not the planned one, if requests will name topics."""
        by_name = [writer for writer in self._writers.values() if self._names_topic(writer)]
        if not by_name:
            return
        try:
            now = await self._client.topic_ids(writer.target.topic for writer in by_name)
        except MirrorError:
            return  # Sending finds it, and retries.
        for writer in by_name:
            found = now.get(writer.target.topic)
            writer.unsure |= found is not None and found.topic_id != writer.topic_id

    def _names_topic(self, writer: PartitionWriter) -> bool:
        if writer.topic_id is None:
            return False
        leader = self._client.leader(writer.target)
        in_transactions = writer.transactions is not None or writer.guards_old
        return in_transactions or leader is None or not self._client.produces_by_id(leader)

    async def _connect(self, leader: int) -> None:
        try:
            await self._client.connect(leader)
        except MirrorError:
            return  # Sending to it finds it, and retries.
        for writer in self._writers.values():
            if self._client.leader(writer.target) == leader:
                self._slots.of(writer, leader)

    def write(self, copy: PartitionCopy, batches: Sequence[ReadyBatch]) -> int:
        """Append batches after everything that was written to the copy's target before.

        Returns:
            The accepted bytes, all of which `acknowledged` will report; 0 if writing has failed.
        """
        writer = self._writers[copy.target]
        if writer.failed is not None:
            return 0
        batches = self._torn.divide(batches)
        taken = writer.append(copy, batches, old_before=self._old.before)
        copy.unacknowledged_batches += len(batches)
        copy.unacknowledged_bytes += taken
        self._pump(writer)
        return taken

    def _pump(self, writer: PartitionWriter) -> None:
        """Queue the partition at its leader and send what can be sent."""
        if writer.lost:
            return
        if writer.unsure:
            if not writer.looking and writer.failed is None and not writer.backoff.is_waiting:
                writer.looking = True
                self._background.start(self._look(writer))
            return
        if writer.needs_transaction:
            self._old.begin(writer)
            return
        if writer.needs_filling:
            if writer.stale:
                self._look_first(writer)
            else:
                self._fill(writer, writer.waiting[0].expected_offset)
            return
        if writer.queued or not writer.sendable:
            return
        leader = self._client.leader(writer.target)
        if leader is None:
            self._faults.postpone(
                writer,
                error_for_code(
                    self._client.why_no_leader(writer.target),
                    where=self._faults.where(writer),
                    doing="find the leader on the target",
                    needs=self._faults.needed_grant(writer, ErrorCode.LEADER_NOT_AVAILABLE),
                ),
            )
            return
        slot = self._slots.of(writer, leader)
        step = writer.step_over(self._client.connection(*slot))
        if step is LOOK:
            self._look_first(writer)
        if step is not SEND:
            return
        writer.queued = True
        self._queues.setdefault(slot, deque()).append(writer)
        self._send_over(slot)

    def _send_over(self, slot: ConnectionSlot) -> None:
        if slot == self._settling:
            return
        queue = self._queues.get(slot)
        connection = self._client.connection(*slot)
        while queue and (outstanding := self._outstanding.get(slot, 0)) < self._settings.produce_max_in_flight:
            if outstanding and len(queue) < _FILLING_PARTITIONS and queue[0].goes_one_by_one:
                return
            self._notice_stall()
            if self._must_wait(slot, queue[0]):
                return
            chosen = first_of_each(queue, slot, connection, most=self._request_bytes, look=self._look_first)
            if chosen:
                # A suspected batch goes alone.
                if len(chosen) == 1 and next(iter(chosen.values()))[1].is_suspected:
                    self._alone.add(slot.leader)
                self._outstanding[slot] = self._outstanding.get(slot, 0) + 1
                self._produce(slot, connection, chosen)

    def _must_wait(self, slot: ConnectionSlot, writer: PartitionWriter) -> bool:
        """Return whether the connection must stay free, so that a suspected batch goes alone.

        Alone among all connections to the leader: what ends one of them may end the others too.
        """
        if not (self._alone or self._clearing or (writer.waiting and writer.waiting[0].is_suspected)):
            return False
        busy = slot.leader in self._alone
        if not busy and self._is_busy(slot.leader):
            if writer.waiting and writer.waiting[0].is_suspected:
                self._clearing.setdefault(slot.leader, slot)
            busy = slot.leader in self._clearing
        self._held_back |= busy
        return busy

    def _is_busy(self, leader: int) -> bool:
        return any(count for slot, count in self._outstanding.items() if slot.leader == leader)

    def _go_on_after(self, slot: ConnectionSlot) -> None:
        self._alone.discard(slot.leader)
        if not self._held_back:
            self._send_over(slot)
            return
        if not self._is_busy(slot.leader):
            self._send_over(self._clearing.pop(slot.leader, slot))
        for each in [each for each in self._queues if each.leader == slot.leader]:
            self._send_over(each)

    def _produce(self, slot: ConnectionSlot, connection: object, chosen: Chosen) -> None:
        produced = self._client.produce(
            slot.leader,
            [(*target, outgoing.batch.payload) for target, (_, outgoing) in chosen.items()],
            timeout_ms=_PRODUCE_TIMEOUT_MS,
            slot=slot.connection,
            connection=connection,
            transactional_id=next(iter(chosen.values()))[0].names_in_request,
            topic_ids=self._topic_ids,
        )
        self._background.when_done(produced, partial(self._handle_response, slot, chosen))

    def _handle_response(
        self, slot: ConnectionSlot, chosen: Chosen, produced: asyncio.Future[list[ProducedPartition]]
    ) -> None:
        error = produced.exception()
        self._settling = slot
        if error is None:
            for response in produced.result():
                if (sent := chosen.pop(response[:2], None)) is not None and not self._appended_next(*sent, response):
                    self._settle_with(*sent, response)
            for writer, outgoing in chosen.values():
                missing = error_for_code(
                    ErrorCode.REQUEST_TIMED_OUT, where=self._faults.where(writer), doing="write to the target"
                )
                self._settle_with(writer, outgoing, missing)
        elif isinstance(error, MirrorError):
            without_frames(error)
            self._torn.note(error, (outgoing for _, outgoing in chosen.values()))
            for writer, outgoing in chosen.values():
                self._settle_with(writer, outgoing, error)
        else:
            raise error
        # Only now, so that the next request takes the batches of all partitions that can continue.
        self._settling = None
        self._outstanding[slot] -= 1
        self._go_on_after(slot)

    def _appended_next(self, writer: PartitionWriter, outgoing: Outgoing, response: ProducedPartition) -> bool:
        """Settle the common case: the batch was appended at the expected offset, directly after the one before it."""
        in_flight = writer.in_flight
        if (
            response.error_code
            or response.base_offset != outgoing.expected_offset
            or not writer.is_untroubled
            or in_flight[0] is not outgoing
        ):
            return False
        in_flight.popleft()
        writer.known_over = writer.connection
        self._acknowledge(writer, outgoing)
        if in_flight and in_flight[0].response is not None:
            self._settle(writer)
        elif not writer.queued or writer.needs_filling:
            self._pump(writer)
        return True

    def _settle_with(
        self, writer: PartitionWriter, outgoing: Outgoing, response: ProducedPartition | MirrorError
    ) -> None:
        outgoing.record_response(response)
        self._settle(writer)

    def _settle(self, writer: PartitionWriter) -> None:
        """Process the responses in the order of the batches."""
        in_flight = writer.in_flight
        while in_flight and in_flight[0].response is not None:
            outgoing = in_flight.popleft()
            # Everything after a refused batch is sent again too; the broker drops duplicates.
            if writer.failed is None and not writer.resend and self._accept(writer, outgoing):
                continue
            if writer.has_failed:
                self._faults.abandon(outgoing)
            else:
                writer.resend.append(outgoing)
        if writer.resend and not writer.in_flight and writer.failed is None:
            self._requeue(writer)
        elif writer.failed is None:
            self._pump(writer)
        else:
            self._old.consider(writer)

    def _accept(self, writer: PartitionWriter, outgoing: Outgoing) -> bool:
        response = outgoing.response
        if not isinstance(response, ProducedPartition):
            return False
        if response.error_code == 0 and response.base_offset == outgoing.expected_offset:
            pass
        elif response.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER and outgoing.tries > 1:
            pass  # Appended at an earlier try, too long ago for the broker to return its offset.
        elif response.error_code == 0:
            self._faults.fail_diverged(
                writer,
                f"the target appended a batch at offset {response.base_offset}, expected {outgoing.expected_offset}",
            )
            return False
        else:
            self._handle_rejection(writer, outgoing, response)
            return False
        writer.known_over = writer.connection
        self._acknowledge(writer, outgoing)
        return True

    def _acknowledge(self, writer: PartitionWriter, outgoing: Outgoing) -> None:
        if writer.backoff.failing_since is not None:
            writer.backoff.record_progress()
        copy, batch = outgoing.copy, outgoing.batch
        writer.end = outgoing.expected_offset + batch.count
        if writer.guard is EPOCH:
            copy.record_acknowledged(batch, outgoing.expected_offset)
            self._acknowledged(copy, len(batch.payload))
        else:
            copy.record_appended(batch, outgoing.expected_offset)
            self._acknowledged(copy, len(batch.payload))
            if not writer.in_flight:
                self._old.consider(writer)

    def _handle_rejection(self, writer: PartitionWriter, outgoing: Outgoing, response: ProducedPartition) -> None:
        error = self._faults.refusal(writer, outgoing, response)
        if not may_pass(error) and not about_records(outgoing):
            certain = response.error_code not in NOT_ALONE and not outgoing.maybe_appended
            self._faults.fail(writer, error, certain=certain)

    def _requeue(self, writer: PartitionWriter) -> None:
        """Requeue all unacknowledged batches, and retry after a pause."""
        for outgoing in writer.resend:
            response = outgoing.response
            if not isinstance(response, ProducedPartition) or response.error_code:
                continue
            if response.base_offset != outgoing.expected_offset:
                self._faults.fail_diverged(
                    writer,
                    f"the target appended a batch at offset {response.base_offset}, expected another one",
                )
                return
        cause = writer.resend[0].response
        if isinstance(cause, ProducedPartition):
            cause = error_for_code(
                cause.error_code,
                where=writer.resend[0].copy.where(),
                doing=f"append to {writer.target}",
                needs=self._faults.needed_grant(writer, cause.error_code),
            )
        assert cause is not None
        # The broker may have forgotten the producer by now: the first batch goes alone again.
        writer.known_over = None
        writer.unsure = any(outgoing.maybe_appended for outgoing in writer.resend)
        writer.waiting.extendleft(reversed(writer.resend))
        writer.resend.clear()
        if not writer.unsure and about_records(writer.waiting[0]):
            self._divide(writer)
            return
        self._faults.postpone(writer, cause)

    def _divide(self, writer: PartitionWriter) -> None:
        writer.dividing = True
        self._background.start(self._faults.divide(writer, self._omissions))

    def _look_first(self, writer: PartitionWriter) -> None:
        writer.unsure = True
        self._pump(writer)

    async def _look(self, writer: PartitionWriter) -> None:
        """Request the log end offset, and settle the batches that the log has."""
        failure: MirrorError | None = None
        high_watermark = end = 0
        self._notice_stall()
        stalls = self._stalls
        leader = self._client.leader(writer.target)
        try:
            if leader is None:
                raise error_for_code(
                    self._client.why_no_leader(writer.target), where=self._faults.where(writer), doing="find the leader"
                )
            high_watermark, end = await self._client.log_ends(leader, writer.target)
            # Only now: if the topic id is unchanged, the ends are of the same topic.
            await self._faults.check_topic(writer, leader)
            await self._faults.check_identity(writer)
        except MirrorError as error:
            failure = error
        self._notice_stall()
        # A response from before the process was suspended does not show what another run has written since.
        if writer.failed is None and (failure is not None or self._stalls == stalls):
            # What the log settles frees memory, and more is written at once: that must not start another check, whose
            # response would be older than what is sent when this one is processed.
            if failure is None:
                self._settle_by_log(writer, high_watermark, end)
            elif may_pass(failure):
                self._faults.postpone(writer, failure)
            else:
                self._faults.fail(writer, failure, certain=False)
        writer.looking = False
        if writer.unsure:
            # The process was suspended meanwhile.
            self._pump(writer)

    def _settle_by_log(self, writer: PartitionWriter, high_watermark: int, end: int) -> None:
        while writer.waiting and writer.waiting[0].maybe_appended:
            outgoing = writer.waiting[0]
            upto = outgoing.expected_offset + outgoing.batch.count
            if upto > end:
                break
            if upto > high_watermark:
                self._faults.postpone(
                    writer,
                    TransientError(
                        f"records up to offset {upto - 1} of {writer.target} are not replicated yet.",
                        where=self._faults.where(writer),
                        action="Check that the target's replicas are in sync.",
                    ),
                )
                return
            writer.waiting.popleft()
            self._acknowledge(writer, outgoing)
        expected = writer.end
        if end > expected:
            self._faults.fail_diverged(
                writer, f"log end offset of {writer.target} is {end}, expected {expected}: another producer wrote to it"
            )
        elif end < expected:
            self._faults.fail(
                writer,
                TargetTruncatedError(
                    f"log end offset of {writer.target} is {end}, but records up to offset {expected - 1} were "
                    "acknowledged.",
                    where=self._faults.where(writer),
                    action="The target lost records (unclean leader election?); find the cause before the next run.",
                ),
                certain=False,
            )
        else:
            for outgoing in writer.waiting:
                outgoing.maybe_appended = False
            writer.unsure = writer.stale = False
            writer.known_over = writer.connection = None
            if writer.waiting and self._torn.is_refused(writer.waiting[0]):
                self._divide(writer)
            else:
                self._old.consider(writer)
                self._pump(writer)

    def _refresh_leaders(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._background.start(self._refresh())

    async def _refresh(self) -> None:
        topics = {writer.target.topic for writer in self._writers.values() if writer.failed is None}
        try:
            failed = await self._client.refresh_leaders(topics) if topics else {}
        except MirrorError:
            return  # The partitions' backoff limits how long this lasts.
        for writer in self._writers.values():
            code = failed.get(writer.target.topic)
            if code is not None and writer.failed is None and writer.waiting:
                needs = self._faults.needed_grant(writer, code)
                error = error_for_code(code, where=self._faults.where(writer), doing="write to the target", needs=needs)
                self._faults.postpone(writer, error)
            else:
                self._pump(writer)


def _now() -> float:
    """Seconds of a clock that includes suspend, if there is one."""
    return time.clock_gettime(_CLOCK)
