"""Reaction of a copy task to a target that refuses appends, does not respond, or diverges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import Needed, error_for_code
from mirror_lib.cluster.raw.client import ProducedPartition, RawClient
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.copy.transfer.producer_state import Outgoing, PartitionWriter
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.copy.transfer.torn_connections import too_large_to_send
from mirror_lib.errors import (
    FencedError,
    MirrorError,
    TargetDeletedError,
    TargetDivergedError,
    TargetRecreatedError,
    TopicMissingError,
    Where,
)
from mirror_lib.records.poison import POLICIES
from mirror_lib.records.split import halves, readable, skipped_batch
from mirror_lib.topology.access import Grant, Operation

#: How long the coordinator of a writer may take.
_COORDINATOR_SECONDS = 30.0
#: Errors about a record in the batch, which is then searched by bisection.
_RECORD_REFUSED = frozenset(
    {
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFaults:
    """Updates the accounts of target partitions with write errors.

    Attributes:
        acknowledged: called with a partition's bytes that are no longer held.
        lost_leader: refreshes the leaders.
        resume: sends to a partition again, after a pause.
    """

    client: RawClient
    background: Background
    acknowledged: Callable[[PartitionCopy, int], None]
    lost_leader: Callable[[], None]
    resume: Callable[[PartitionWriter], None]

    def refusal(self, writer: PartitionWriter, outgoing: Outgoing, response: ProducedPartition) -> MirrorError:
        """The error for a refused batch."""
        batch = outgoing.batch
        return error_for_code(
            response.error_code,
            where=outgoing.copy.where(batch.source_runs[0][0]),
            doing=f"append {batch.count} records ({len(batch.payload)} bytes) to {writer.target}",
            needs=self.needed_grant(writer, response.error_code),
        )

    def fail_diverged(self, writer: PartitionWriter, what: str) -> None:
        """End a partition to which another producer writes."""
        self.fail(
            writer,
            TargetDivergedError(
                f"{what}: another producer writes to this partition.",
                where=self.where(writer),
                action=f"Find the other producer of {writer.target} on {self.client.cluster}; only the replicator may "
                "write to it. The next run compares the records; this sets where copying continues: "
                f"{self.where(writer).position_set()}.",
            ),
            certain=False,
        )

    def postpone(self, writer: PartitionWriter, cause: MirrorError) -> None:
        """Retry a partition after a pause; end it if that has lasted too long."""
        if writer.backoff.is_waiting:
            return
        if not writer.backoff.record_failure(cause):
            if isinstance(cause, TopicMissingError):
                writer.lost = True
                self.background.start(self._end_missing(writer, cause))
            else:
                self._give_up(writer, cause)
            return
        for outgoing in writer.waiting:
            # A batch that waits for long must not keep the whole response in memory.
            if isinstance(outgoing.batch.payload, memoryview):
                outgoing.batch.payload = bytearray(outgoing.batch.payload)
        self.lost_leader()
        asyncio.get_running_loop().call_later(writer.backoff.pause_left + 0.01, self.resume, writer)

    def _give_up(self, writer: PartitionWriter, cause: MirrorError) -> None:
        error = type(cause)(
            f"produce to {writer.target} failed for {writer.backoff.seconds_failing:.0f} s; last error: {cause.what}",
            where=self.where(writer),
            action=cause.action or "Check the target's brokers; the next run continues from here.",
        )
        self.fail(writer, error, certain=not any(outgoing.maybe_appended for outgoing in writer.waiting))

    async def _end_missing(self, writer: PartitionWriter, cause: TopicMissingError) -> None:
        """End a partition whose topic the brokers have not known for a while, with an error that names the cause."""
        topic = writer.target.topic
        try:
            failed = await self.client.refresh_leaders([topic])
            now = await self.client.topic_ids([topic])
        except MirrorError:
            failed, now = {}, {}
        if writer.failed is not None:
            return
        action = "The next run reports what was lost and how to continue; find out who deleted the topic."
        if failed.get(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            deleted = f"{topic} was deleted on the target while the run wrote to it."
            self.fail(writer, TargetDeletedError(deleted, where=self.where(writer), action=action), certain=False)
            return
        found = now.get(topic)
        if found is not None and None not in (found.topic_id, writer.topic_id) and found.topic_id != writer.topic_id:
            recreated = (
                f"{topic} was deleted on the target and created again during the run: its topic id was "
                f"{writer.topic_id} and is now {found.topic_id}."
            )
            self.fail(writer, TargetRecreatedError(recreated, where=self.where(writer), action=action), certain=False)
            return
        self._give_up(writer, cause)

    async def check_topic(self, writer: PartitionWriter, leader: int) -> None:
        """Raise a transient error if the leader has another topic of the same name than the planned one.

        A broker that learns late of a new topic knows the earlier one for a moment.
        """
        if writer.topic_id is None:
            return
        found = (await self.client.topic_ids([writer.target.topic], node=leader)).get(writer.target.topic)
        if found is None or found.topic_id == writer.topic_id:
            return
        code = found.error_code or ErrorCode.INCONSISTENT_TOPIC_ID
        needs = self.needed_grant(writer, code)
        raise error_for_code(
            code, where=self.where(writer), doing=f"read the log end offset of {writer.target}", needs=needs
        )

    async def check_identity(self, writer: PartitionWriter) -> None:
        """Raise an error if a later run has taken over a partition with the same offsets.

        It has written no marker, so its leader knows only when it has written; the coordinator knows at once.
        """
        if not writer.same_offsets or writer.transactional_id is None:
            return
        deadline = time.monotonic() + _COORDINATOR_SECONDS
        state = await self.client.producers.transaction_state(writer.transactional_id, deadline=deadline)
        if state is not None and (state.producer_id, state.epoch) != (writer.producer_id, writer.epoch):
            raise FencedError(
                f"a later run has taken over {writer.target}.",
                where=self.where(writer),
                action="Nothing to do: that run, or the next one, copies the rest.",
            )

    def fail(self, writer: PartitionWriter, error: MirrorError, *, certain: bool) -> None:
        """End a partition.

        Args:
            certain: whether everything on the target is known.
        """
        writer.failed = error
        for copy in writer.copies:
            if not copy.finished:
                copy.fail(error, certain=certain)
        abandoned = [*writer.resend, *writer.waiting]
        writer.resend.clear()
        writer.waiting.clear()
        for outgoing in abandoned:
            self.abandon(outgoing)
        for copy in writer.copies:
            self.acknowledged(copy, 0)

    def abandon(self, outgoing: Outgoing) -> None:
        """Drop a batch of a partition that has ended, or a skipped batch."""
        copy, size = outgoing.copy, len(outgoing.batch.payload)
        if outgoing.maybe_appended or outgoing.got_no_response:
            copy.certain = False
        copy.unacknowledged_batches -= 1
        copy.unacknowledged_bytes -= size
        self.acknowledged(copy, size)

    def _torn_apart(self, writer: PartitionWriter, outgoing: Outgoing) -> MirrorError:
        where = outgoing.copy.where(outgoing.batch.source_runs[0][0])
        return too_large_to_send(outgoing, cluster=self.client.cluster, target=str(writer.target), where=where)

    async def divide(self, writer: PartitionWriter, omissions: Omissions) -> None:
        """Split the first waiting batch, or handle its only record: the target refuses something in it."""
        if writer.failed is not None:
            return
        outgoing = writer.waiting[0]
        copy, size, response = outgoing.copy, len(outgoing.batch.payload), outgoing.response
        # Finding the record is progress: the backoff restarts.
        writer.backoff.record_progress()
        parts = halves(outgoing.batch) if outgoing.batch.count > 1 else None
        if parts is not None:
            writer.divide_first(parts)
            now = sum(len(part.payload) for part in parts)
            copy.unacknowledged_batches += 1
            copy.unacknowledged_bytes += now - size
            writer.dividing = False
            self.acknowledged(copy, size - now)
            self.resume(writer)
            return
        refused = isinstance(response, ProducedPartition)
        if isinstance(response, ProducedPartition):
            error = self.refusal(writer, outgoing, response)
        else:
            error = self._torn_apart(writer, outgoing)
        try:
            if not omissions.may_skip:
                error.action = f"{error.action} {POLICIES}".strip()
                raise error
            await omissions.skip(copy, [skipped_batch(outgoing.batch, error)], small_requests=not refused)
        except MirrorError as failure:
            writer.dividing = False
            # A request without a response may still be in flight.
            self.fail(writer, failure, certain=refused)
            return
        writer.dividing = False
        if writer.failed is None:
            writer.drop_first()
            self.abandon(outgoing)
            self.resume(writer)

    def where(self, writer: PartitionWriter) -> Where:
        """The location of a partition's errors."""
        return writer.copies[0].where()

    def needed_grant(self, writer: PartitionWriter, code: int) -> Needed:
        """The rights that appending to a partition needs, as far as the broker requires them."""
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            # Only brokers before Kafka 2.8 (KIP-679).
            return Needed(Grant.on_cluster(Operation.IDEMPOTENT_WRITE), self.client.cluster)
        return Needed(Grant.on_topic(Operation.WRITE, writer.target.topic), self.client.cluster)


def about_records(outgoing: Outgoing) -> bool:
    """True if the target refuses the batch because of its content."""
    response = outgoing.response
    return isinstance(response, ProducedPartition) and (
        response.error_code in _RECORD_REFUSED
        or (response.error_code == ErrorCode.CORRUPT_MESSAGE and not readable(outgoing.batch))
    )
