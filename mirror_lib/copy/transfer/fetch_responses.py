"""Handling of the responses to a copy task's fetches: batches for the target, a retry, or a partition's end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.fetch import UNKNOWN_EPOCH
from mirror_lib.cluster.protocol.kafka_errors import Needed, error_for_code
from mirror_lib.cluster.raw.backoff import may_pass
from mirror_lib.cluster.raw.client import FetchedPartition, RawClient
from mirror_lib.copy.transfer.assembler_protocol import Part
from mirror_lib.copy.transfer.follower_fetch import Place, ReadReplicas
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.errors import (
    BrokerUnreachableError,
    CorruptBatchError,
    ManySkippedRangesError,
    MirrorError,
    OffsetOutOfRangeError,
    RetriesExhaustedError,
    SourceTruncatedError,
)
from mirror_lib.records.last_records import find_last_records
from mirror_lib.records.skipped import SkippedRecords
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

if TYPE_CHECKING:
    from mirror_lib.copy.transfer.halves import Downstream

#: Separate ranges of skipped records that a task holds of a partition: the commit of the round stores them.
_MOST_SKIPPED_RANGES = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponses:
    """Handles the source's responses, for each partition in the order of the offsets.

    Attributes:
        downstream: takes the parts of each partition.
        lost_leader: refreshes the leaders.
        wake: sends fetches again, after a pause.
    """

    client: RawClient
    read_committed: bool
    downstream: Downstream
    omissions: Omissions
    replicas: ReadReplicas
    lost_leader: Callable[[], None]
    wake: Callable[[], None]

    async def work_on(
        self, place: Place, copies: list[PartitionCopy], responses: list[FetchedPartition], failure: MirrorError | None
    ) -> None:
        """Handle one response.

        Args:
            place: the replica that was asked.
            copies: the partitions in the request.
            failure: why there is no response.
        """
        now = time.monotonic()
        # A partition with a response may be requested again before the others are handled.
        unanswered = {copy.source: copy for copy in copies}
        for response in responses:
            copy = unanswered.pop(TopicPartition(response.topic, response.partition))
            copy.last_served = now
            if not self._is_believed(place, copy, response, alone=len(copies) == 1):
                pass
            elif response.diverging_end is not None:
                self._handle_divergence(copy, response.diverging_end)
            elif len(response.records) or response.error_code:
                await self._take(copy, response, alone=len(copies) == 1)
            elif not copy.read_done:
                await self._empty(copy, response, place.node, alone=len(copies) == 1)
            copy.fetching = False
            await asyncio.sleep(0)
        for copy in unanswered.values():
            copy.fetching = False
            if not self.replicas.leave_follower(place, copy.source):
                self.retry(
                    copy, failure or BrokerUnreachableError("the broker's response does not contain the partition.")
                )

    def _is_believed(self, place: Place, copy: PartitionCopy, response: FetchedPartition, *, alone: bool) -> bool:
        """False if the next request must ask another replica instead."""
        readable_to = self._readable_to(response)
        end = copy.opened.plan.end
        return copy.read_done or self.replicas.takes(place, response, readable_to=readable_to, end=end, alone=alone)

    def _readable_to(self, response: FetchedPartition) -> int:
        return response.last_stable_offset if self.read_committed else response.high_watermark

    async def _take(self, copy: PartitionCopy, response: FetchedPartition, *, alone: bool) -> None:
        if copy.read_done:
            return
        if response.error_code:
            self._handle_rejection(copy, response)
            return
        if not await self._has_room(copy):
            return
        assembler = copy.assembler
        before = assembler.next_offset
        ready: Sequence[Part] = assembler.feed(response.records, response.aborted)
        if assembler.next_offset == before and assembler.failure is None:
            self._incomplete(copy, alone=alone)
        while await self._continue(copy, response, ready, before) and assembler.has_more and await self._has_room(copy):
            before = assembler.next_offset
            ready = assembler.more()

    async def _has_room(self, copy: PartitionCopy) -> bool:
        """Wait for memory; return False if the partition has ended meanwhile."""
        await self.downstream.room()
        return not copy.read_done

    async def _continue(
        self, copy: PartitionCopy, response: FetchedPartition, ready: Sequence[Part], before: int
    ) -> bool:
        """Deliver the parts of a response that was delivered up to the offset `before`.

        Return False at the end of the partition.
        """
        assembler = copy.assembler
        if assembler.is_finished and assembler.failure is None:
            # Read it first: sending writes into the batches.
            copy.note_last(find_last_records(response.records, end=copy.opened.plan.end))
        if assembler.next_offset > before:
            copy.backoff.record_progress()
            copy.empty_fetches = 0
        skipped = assembler.take_skipped()
        # No batch may wait in the assembler while records are skipped: a later acknowledgement would overtake it.
        if skipped or assembler.is_finished or assembler.failure is not None or copy.unacknowledged_batches == 0:
            held = assembler.flush()
            if held is not None:
                ready = [*ready, held]
        if skipped and not await self._handle_skipped(copy, ready, skipped):
            return False
        self.downstream.deliver(copy, ready)
        if assembler.failure is not None:
            copy.fail(assembler.failure)
        elif assembler.is_finished:
            copy.read_done = True
        elif copy.omission_count >= _MOST_SKIPPED_RANGES:
            copy.leave_early(
                ManySkippedRangesError(
                    f"{copy.omission_count:,} separate ranges of records were skipped in one round, between records "
                    "that were copied.",
                    where=copy.where(assembler.next_offset),
                    action="They are stored, and the next run continues here. `mirror gaps` lists why they were "
                    "skipped: a target that accepts these records spares it.",
                )
            )
        self.downstream.settle(copy)
        return not copy.read_done

    async def _handle_skipped(self, copy: PartitionCopy, ready: Sequence[Part], skipped: list[SkippedRecords]) -> bool:
        """Record skipped records before anything after them is sent; return whether the partition continues."""
        try:
            await self.omissions.skip(copy, skipped)
        except MirrorError as error:
            if not copy.read_done:
                first = skipped[0].first_offset
                self.downstream.deliver(copy, [part for part in ready if part.source_next <= first])
                copy.fail(error)
        if copy.read_done:
            self.downstream.settle(copy)
        return not copy.read_done

    def _incomplete(self, copy: PartitionCopy, *, alone: bool) -> None:
        """Handle a truncated batch. A partition that is requested alone always gets a whole one (KIP-74)."""
        copy.empty_fetches += 1
        if alone:
            self.retry(
                copy,
                CorruptBatchError(
                    "the source does not return a whole record batch.",
                    where=copy.where(copy.assembler.next_offset),
                    action="Compare the source's replicas of this partition (kafka-dump-log).",
                ),
            )

    async def _empty(self, copy: PartitionCopy, response: FetchedPartition, leader: int, *, alone: bool) -> None:
        readable_to = self._readable_to(response)
        copy.empty_fetches += 1
        if readable_to >= copy.opened.plan.end:
            if alone and copy.empty_fetches > 1:
                await self._skip_removed(copy, leader)
            else:
                # The broker is healthy; other partitions used up the response.
                copy.backoff.record_progress()
        else:
            self.retry(
                copy,
                RetriesExhaustedError(
                    f"the source returns records only up to offset {readable_to}, but its log end offset was "
                    f"{copy.opened.plan.end} when the run was planned.",
                    where=copy.where(copy.assembler.next_offset),
                    action="A replica is lagging, or the log was truncated: check the source's replicas.",
                ),
            )

    async def _skip_removed(self, copy: PartitionCopy, leader: int) -> None:
        """Skip to the end: there are no records before it, since compaction removed them after the plan was made.

        Unless they are in remote storage: a broker whose remote read times out returns neither records nor an error
        (Java `DelayedRemoteFetch.onComplete`).
        """
        try:
            local_start = await self.client.local_log_start(leader, copy.source)
        except MirrorError as error:
            self.retry(copy, error)
            return
        offset = copy.assembler.next_offset
        if local_start is not None and local_start > offset:
            self.retry(
                copy,
                RetriesExhaustedError(
                    f"the source returns no records, because its local log starts at offset {local_start}: its "
                    "remote storage is slow or does not respond.",
                    where=copy.where(offset),
                    action="Check the remote storage, or raise remote.fetch.max.wait.ms on the source's brokers.",
                ),
            )
        elif not copy.read_done:
            held = copy.assembler.skip_to_end()
            self.downstream.deliver(copy, [held] if held is not None else [])
            if copy.assembler.failure is not None:
                copy.fail(copy.assembler.failure)
            copy.read_done = True
            self.downstream.settle(copy)

    def _handle_divergence(self, copy: PartitionCopy, end: int) -> None:
        """Handle a leader that does not know the last fetched epoch, or whose log differs at its end."""
        if copy.read_done:
            return
        offset = copy.assembler.next_offset
        if end >= offset:
            # No fetched record is lost: the rest of that epoch was compacted away, or never replicated. As in
            # `source_losses`, only an end before the next offset means a loss.
            copy.assembler.leader_epoch = UNKNOWN_EPOCH
            return
        copy.fail(
            SourceTruncatedError(
                f"the source log was truncated during the copy: records were read up to offset {offset - 1}, and the "
                f"log now ends at offset {min(end, offset) - 1}.",
                where=copy.where(offset),
                action="The next run stores the lost records as a gap; then decide (`mirror gaps`). Check for an "
                "unclean leader election on the source.",
            )
        )
        self.downstream.settle(copy)

    def _handle_rejection(self, copy: PartitionCopy, response: FetchedPartition) -> None:
        offset = copy.assembler.next_offset
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            copy.fail(
                OffsetOutOfRangeError(
                    "the source no longer has this offset: it was deleted or truncated during the run.",
                    where=copy.where(offset),
                    action="Run the flow again: it compares the source log with the position and reports what was lost "
                    "and how to continue. Raise the source topic's retention, or run more often.",
                )
            )
            self.downstream.settle(copy)
            return
        error = error_for_code(
            response.error_code, where=copy.where(offset), doing="read from the source", needs=self.needed_grant(copy)
        )
        # Java's consumer retries after an unknown error too; brokers return it if their remote storage fails.
        if may_pass(error) or response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self.retry(copy, error)
        else:
            copy.fail(error)
            self.downstream.settle(copy)

    def retry(self, copy: PartitionCopy, error: MirrorError) -> None:
        """Request a partition again after a pause; end it if that has lasted too long."""
        if copy.read_done:
            return
        if copy.backoff.record_failure(error):
            self.lost_leader()
            asyncio.get_running_loop().call_later(copy.backoff.pause_left + 0.01, self.wake)
            return
        copy.fail(
            type(error)(
                f"fetch failed for {copy.backoff.seconds_failing:.0f} s; last error: {error.what}",
                where=copy.where(copy.assembler.next_offset),
                action=error.action or "Check the source's brokers; the next run continues from here.",
            )
        )
        self.downstream.settle(copy)

    def retry_later(self, copy: PartitionCopy, error: MirrorError) -> None:
        """As `retry`, but never twice for one pause: a refresh is itself the consequence of a failure."""
        if not copy.backoff.is_waiting:
            self.retry(copy, error)

    def needed_grant(self, copy: PartitionCopy) -> Needed:
        """The rights that reading a partition needs."""
        return Needed(Grant.on_topic(Operation.READ, copy.source.topic), self.client.cluster)
