"""The reading half of a copy task: raw fetches from the source's leaders, within the task's memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from mirror_lib.cluster.batches.left_out import LeftOut
from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.fetch_protocol import UNKNOWN_EPOCH
from mirror_lib.cluster.kafka_errors import Needed, error_for_code
from mirror_lib.cluster.raw import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.cluster.retry import may_pass, without_frames
from mirror_lib.config.model import CopySettings
from mirror_lib.errors import (
    BrokerUnreachableError,
    CorruptBatchError,
    MirrorError,
    OffsetOutOfRangeError,
    RetriesExhaustedError,
    SourceTruncatedError,
)
from mirror_lib.relay.assembler import Part
from mirror_lib.relay.background import Background
from mirror_lib.relay.distance import FetchPace, Reach, far_request_bytes, reach
from mirror_lib.relay.partition_copy import PartitionCopy
from mirror_lib.relay.quarantine import Omissions
from mirror_lib.relay.read_replicas import Place, ReadReplicas
from mirror_lib.relay.throttle import Throttle
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

#: Two requests per connection: one is answered by the broker while the records of the other are worked on.
_REQUESTS_PER_CONNECTION = 2
#: What a task holds at the most while both clusters are near, in requests: two that are answered, two to be written.
_REQUESTS_AHEAD = 4
_LEAST_AHEAD = 32 * 1024 * 1024
#: And for each partition, in the most that a request asks of it.
_SHARES_AHEAD = 2
_FETCH_WAIT_MS = 500
_MIN_FETCH_BYTES = 64 * 1024


class Memory:
    """Bytes that a task holds: asked for, or read and not yet acknowledged by the target.

    An answer counts until all of it is worked on, beside the batches that were made of it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        #: The target is far away: much is on its way there at the same time.
        self.far_target = False

    def room(self, read_ahead: int) -> int:
        """Bytes that may still be asked for of a source next door, of which `read_ahead` are enough to hold.

        More would only wait for the target, in memory that must be found and cleared first.
        """
        return self.holds(read_ahead) - self.used

    def holds(self, read_ahead: int) -> int:
        """Bytes that are held at the most, of a source next door."""
        return self.limit if self.far_target else min(self.limit, read_ahead)


class SourceReader:
    """Keeps fetches running for every partition that has room, grouped by the source's leaders.

    `deliver` gets each partition with the parts that became ready; it is called in the order of the offsets.
    """

    def __init__(
        self,
        client: RawClient,
        copies: Sequence[PartitionCopy],
        settings: CopySettings,
        memory: Memory,
        background: Background,
        *,
        read_committed: bool,
        deliver: Callable[[PartitionCopy, Sequence[Part]], None],
        settled: Callable[[PartitionCopy], None],
        omissions: Omissions,
        throttle: Throttle | None = None,
        replicas: ReadReplicas | None = None,
        tasks: int = 1,
    ) -> None:
        self._tasks = tasks
        self._replicas = replicas or ReadReplicas("", 0)
        self._throttle = throttle
        self._paused: asyncio.TimerHandle | None = None
        self._client = client
        self._copies = {copy.source: copy for copy in copies}
        self._settings = settings
        self._memory = memory
        self._pace = FetchPace()
        #: Some leader of the source is far away.
        self._far_source = False
        self._read_committed = read_committed
        self._deliver = deliver
        self._settled = settled
        self._omissions = omissions
        #: By leader: the requests under way on each of the connections to it.
        self._outstanding: dict[int, list[int]] = {}
        self._unfinished = len(self._copies)
        self._background = background
        self._refreshing: asyncio.Task[None] | None = None
        self._waking = False
        #: What each partition may hold of what the task holds.
        self._share = memory.limit
        #: Above so many bytes that are held nothing is asked for, so there is no need to look who could be.
        self._full_from = memory.limit

    async def start(self) -> None:
        """Find the leaders and send the first fetches."""
        await self._client.refresh_leaders({source.topic for source in self._copies})
        self._pump()

    def wake(self) -> None:
        """Send every fetch that may be sent, soon. Call whenever memory was freed or a pause ended.

        That looks at all partitions, so it is done once for all that happens in one turn of the loop.
        """
        if self._waking or 0 < self._memory.used > self._full_from:
            return
        self._waking = True
        asyncio.get_running_loop().call_soon(self._pump)

    def _wake_after(self, seconds: float) -> None:
        if self._paused is None:
            self._paused = asyncio.get_running_loop().call_later(seconds, self._pause_ended)

    def _pause_ended(self) -> None:
        self._paused = None
        self.wake()

    @property
    def _near_ahead(self) -> int:
        # A partition whose target's leader is away holds its share: that of the others must be enough to go on.
        shares = _SHARES_AHEAD * self._unfinished * self._settings.fetch_partition_max_bytes
        return max(_REQUESTS_AHEAD * self._settings.fetch_max_bytes, shares, _LEAST_AHEAD)

    @property
    def _held_most(self) -> int:
        return self._memory.limit if self._far_source else self._memory.holds(self._near_ahead)

    def _pump(self) -> None:
        self._waking = False
        by_place: dict[Place, list[PartitionCopy]] = {}
        homeless = False
        unfinished = 0
        self._share = max(self._held_most // max(self._unfinished, 1), self._settings.fetch_partition_max_bytes)
        for copy in self._copies.values():
            if copy.read_done:
                continue
            unfinished += 1
            if copy.fetching or copy.backoff.waiting or self._has_its_share(copy):
                continue
            leader = self._client.leader(copy.source)
            if leader is None:
                homeless = True
            else:
                by_place.setdefault(self._replicas.place(copy.source, leader), []).append(copy)
        self._unfinished = unfinished
        self._full_from = self._held_most - self._worthwhile
        if homeless:
            self._refresh_leaders()
        for place, ready in by_place.items():
            self._fetch_from(place, ready)

    def _has_its_share(self, copy: PartitionCopy) -> bool:
        held = copy.unacknowledged_bytes
        if self._far_source:
            return held >= self._share
        # Next door no more than the share: those whose target's leaders are away leave the others theirs.
        return held > self._share - min(self._settings.fetch_partition_max_bytes, self._settings.fetch_max_bytes)

    @property
    def _worthwhile(self) -> int:
        """Room below which it is better to wait: asking for what each acknowledgement frees would make many requests.

        Each of them costs the CPU as much as some ten batches, and ends with one that was cut off and comes again.
        """
        most = self._settings.fetch_max_bytes
        wanted = most // 4 if self._far_source else self._share
        return min(max(wanted, _MIN_FETCH_BYTES), most, self._memory.limit // 4)

    def _fetch_from(self, place: Place, ready: list[PartitionCopy]) -> None:
        ready.sort(key=lambda copy: copy.last_served)
        round_trip = self._client.round_trip(place.node)
        distance = reach(round_trip, self._settings.connections_per_broker, tasks=self._tasks)
        lanes = self._outstanding.setdefault(place.node, [])
        lanes += [0] * (distance.connections - len(lanes))
        self._far_source = self._far_source or distance.far
        ahead = self._memory.limit if distance.far else self._near_ahead
        while ready:
            free = _REQUESTS_PER_CONNECTION * len(lanes) - sum(lanes)
            wanted, room = self._request_bytes(distance, len(lanes)), self._memory.room(ahead)
            if free <= 0 or (room < min(self._worthwhile, wanted) and self._memory.used > 0):
                return
            starved = next((copy for copy in ready if copy.empty_fetches > 1), None)
            # Next door, half of the partitions go into the first request, so that the second can overlap with it.
            chosen = [starved] if starved else ready[: -(-len(ready) // free)]
            max_bytes = min(wanted, room)
            if not distance.far:
                max_bytes = min(max_bytes, len(chosen) * self._settings.fetch_partition_max_bytes)
            if self._throttle is not None:
                if (seconds := self._throttle.pause()) > 0:
                    self._wake_after(seconds)
                    return
                max_bytes = min(max_bytes, self._throttle.burst)
                self._throttle.spend(max_bytes)
            ready = [copy for copy in ready if copy not in chosen] if starved else ready[len(chosen) :]
            self._memory.used += max_bytes
            lane = lanes.index(min(lanes))
            lanes[lane] += 1
            for copy in chosen:
                copy.fetching = True
            self._background.start(self._fetch(place, lane, chosen, max_bytes, far=distance.far))

    def _request_bytes(self, distance: Reach, lanes: int) -> int:
        if not distance.far:
            return self._settings.fetch_max_bytes
        requests = min(_REQUESTS_PER_CONNECTION * lanes, self._unfinished)
        return self._pace.ask(far_request_bytes(self._memory.limit, requests, self._settings.fetch_max_bytes))

    async def _fetch(self, place: Place, lane: int, copies: list[PartitionCopy], max_bytes: int, *, far: bool) -> None:
        partition_bytes = self._settings.fetch_partition_max_bytes
        if far:
            partition_bytes = max(partition_bytes, max_bytes // len(copies))
        partition_bytes = min(partition_bytes, max_bytes)
        request = [
            FetchRequestPartition(
                copy.source.topic,
                copy.source.partition,
                copy.assembler.next_offset,
                partition_bytes,
                copy.assembler.leader_epoch,
            )
            for copy in copies
        ]
        answers: list[FetchedPartition] = []
        failure: MirrorError | None = None
        began = time.monotonic()
        try:
            answers = await self._client.fetch(
                place.node,
                request,
                max_bytes=max_bytes,
                max_wait_ms=_FETCH_WAIT_MS,
                read_committed=self._read_committed,
                lane=lane,
                rack=place.rack,
            )
        except MirrorError as error:
            failure = error
            without_frames(error)
            if far and isinstance(error, BrokerUnreachableError):
                self._pace.unanswered(max_bytes)
        finally:
            self._memory.used -= max_bytes
            self._outstanding[place.node][lane] -= 1
        received = sum(len(answer.records) for answer in answers)
        if far and failure is None:
            self._pace.answered(max_bytes, received, time.monotonic() - began)
        if self._throttle is not None:
            # All that was asked for has been counted.
            self._throttle.spend(received - max_bytes)
        self._memory.used += received
        try:
            # The next request leaves before this answer is worked on: its partitions stay marked until then.
            self._pump()
            await self._work_on(place, copies, answers, failure)
        finally:
            self._memory.used -= received
        self._pump()

    async def _work_on(
        self, place: Place, copies: list[PartitionCopy], answers: list[FetchedPartition], failure: MirrorError | None
    ) -> None:
        now = time.monotonic()
        # A partition that was answered may be asked for again before the others are worked on.
        unanswered = {copy.source: copy for copy in copies}
        for answer in answers:
            copy = unanswered.pop(TopicPartition(answer.topic, answer.partition))
            copy.last_served = now
            if not self._believed(place, copy, answer, alone=len(copies) == 1):
                pass
            elif answer.diverging_end is not None:
                self._diverged(copy, answer.diverging_end)
            elif len(answer.records) or answer.error_code:
                await self._take(copy, answer, alone=len(copies) == 1)
            elif not copy.read_done:
                await self._empty(copy, answer, place.node, alone=len(copies) == 1)
            copy.fetching = False
            await asyncio.sleep(0)
        for copy in unanswered.values():
            copy.fetching = False
            if not self._replicas.lost(place, copy.source):
                self._retry(copy, failure or BrokerUnreachableError("the broker left the partition out of its answer."))

    def _believed(self, place: Place, copy: PartitionCopy, answer: FetchedPartition, *, alone: bool) -> bool:
        """False where another replica is to be asked instead, by the next request."""
        readable_to = self._readable_to(answer)
        end = copy.opened.plan.end
        return copy.read_done or self._replicas.takes(place, answer, readable_to=readable_to, end=end, alone=alone)

    def _readable_to(self, answer: FetchedPartition) -> int:
        return answer.last_stable_offset if self._read_committed else answer.high_watermark

    async def _take(self, copy: PartitionCopy, answer: FetchedPartition, *, alone: bool) -> None:
        if copy.read_done:
            return
        if answer.error_code:
            self._refused(copy, answer)
            return
        assembler = copy.assembler
        before = assembler.next_offset
        ready: Sequence[Part] = assembler.feed(answer.records, answer.aborted)
        if assembler.next_offset > before:
            copy.backoff.progressed()
            copy.empty_fetches = 0
        elif assembler.failure is None:
            self._incomplete(copy, alone=alone)
        left_out = assembler.take_left_out()
        # Nothing may wait in the assembler while something is left out: an acknowledgement would let it overtake.
        if left_out or assembler.finished or assembler.failure is not None or copy.unacknowledged_batches == 0:
            held = assembler.flush()
            if held is not None:
                ready = [*ready, held]
        if left_out and not await self._left_out(copy, ready, left_out):
            return
        self._deliver(copy, ready)
        if assembler.failure is not None:
            copy.fail(assembler.failure)
        elif assembler.finished:
            copy.read_done = True
        self._settled(copy)

    async def _left_out(self, copy: PartitionCopy, ready: Sequence[Part], left_out: list[LeftOut]) -> bool:
        """See to what is left out before anything behind it is sent; returns whether the partition goes on."""
        try:
            await self._omissions.leave_out(copy, left_out)
        except MirrorError as error:
            if not copy.read_done:
                first = left_out[0].first_offset
                self._deliver(copy, [part for part in ready if part.source_next <= first])
                copy.fail(error)
        if copy.read_done:
            self._settled(copy)
        return not copy.read_done

    def _incomplete(self, copy: PartitionCopy, *, alone: bool) -> None:
        """Only part of a batch came. A partition that is asked for alone always gets a whole one (KIP-74)."""
        copy.empty_fetches += 1
        if alone:
            self._retry(
                copy,
                CorruptBatchError(
                    "the source does not send a whole record batch.",
                    where=copy.where(copy.assembler.next_offset),
                    action="Compare the source's replicas of this partition (kafka-dump-log).",
                ),
            )

    async def _empty(self, copy: PartitionCopy, answer: FetchedPartition, leader: int, *, alone: bool) -> None:
        readable_to = self._readable_to(answer)
        copy.empty_fetches += 1
        if readable_to >= copy.opened.plan.end:
            if alone and copy.empty_fetches > 1:
                await self._skip_removed(copy, leader)
            else:
                # The broker is well; others took what there was room for.
                copy.backoff.progressed()
        else:
            self._retry(
                copy,
                RetriesExhaustedError(
                    f"the source shows records only up to offset {readable_to}, though it had {copy.opened.plan.end} "
                    "when the run was planned.",
                    where=copy.where(copy.assembler.next_offset),
                    action="A replica is behind or the log was truncated: check the source's replicas.",
                ),
            )

    async def _skip_removed(self, copy: PartitionCopy, leader: int) -> None:
        """Nothing stands between here and the end, since compaction removed it after the plan was made.

        Unless it lies in remote storage: a broker that waits for that in vain answers without records and without an
        error (Java `DelayedRemoteFetch.onComplete`).
        """
        try:
            local_start = await self._client.local_log_start(leader, copy.source)
        except MirrorError as error:
            self._retry(copy, error)
            return
        offset = copy.assembler.next_offset
        if local_start is not None and local_start > offset:
            self._retry(
                copy,
                RetriesExhaustedError(
                    f"the source gives no records though its own disks begin at offset {local_start} only: its remote "
                    "storage is slow or does not answer.",
                    where=copy.where(offset),
                    action="Check the remote storage, or raise remote.fetch.max.wait.ms on the source's brokers.",
                ),
            )
        elif not copy.read_done:
            held = copy.assembler.skip_to_end()
            self._deliver(copy, [held] if held is not None else [])
            if copy.assembler.failure is not None:
                copy.fail(copy.assembler.failure)
            copy.read_done = True
            self._settled(copy)

    def _diverged(self, copy: PartitionCopy, end: int) -> None:
        """The leader does not know the epoch that was read last, or has another log where it ended."""
        if copy.read_done:
            return
        offset = copy.assembler.next_offset
        if end >= offset:
            # Nothing that was read is gone: what else was of that epoch was compacted away, or never copied. As in
            # `losses`, only an end before the next offset tells of a loss.
            copy.assembler.leader_epoch = UNKNOWN_EPOCH
            return
        copy.fail(
            SourceTruncatedError(
                f"the source was cut while it was copied: what was read up to offset {offset - 1} is in its log only "
                f"up to offset {min(end, offset) - 1}.",
                where=copy.where(offset),
                action="The next run notes what is lost; then decide (`mirror gaps`). Look for an unclean leader "
                "election on the source.",
            )
        )
        self._settled(copy)

    def _refused(self, copy: PartitionCopy, answer: FetchedPartition) -> None:
        offset = copy.assembler.next_offset
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            copy.fail(
                OffsetOutOfRangeError(
                    "the source no longer holds this offset: it was deleted or truncated during the run.",
                    where=copy.where(offset),
                    action="Raise the source topic's retention or run more often.",
                )
            )
            self._settled(copy)
            return
        error = error_for_code(
            answer.error_code, where=copy.where(offset), doing="read from the source", needs=self._needed(copy)
        )
        # Java's consumer asks again after an unknown error too; brokers answer so when their remote storage fails.
        if may_pass(error) or answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR:
            self._retry(copy, error)
        else:
            copy.fail(error)
            self._settled(copy)

    def _retry(self, copy: PartitionCopy, error: MirrorError) -> None:
        if copy.read_done:
            return
        if copy.backoff.failed(error):
            self._refresh_leaders()
            loop = asyncio.get_running_loop()
            loop.call_later(max(copy.backoff.not_before - time.monotonic(), 0) + 0.01, self.wake)
            return
        copy.fail(
            type(error)(
                f"reading did not succeed for {copy.backoff.seconds_failing:.0f} s; last: {error.what}",
                where=copy.where(copy.assembler.next_offset),
                action=error.action or "Check the source's brokers; the next run goes on from here.",
            )
        )
        self._settled(copy)

    def _refresh_leaders(self) -> None:
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._background.start(self._refresh())

    async def _refresh(self) -> None:
        topics = {copy.source.topic for copy in self._copies.values() if not copy.read_done}
        if not topics:
            return
        try:
            failed = await self._client.refresh_leaders(topics)
        except MirrorError as error:
            failed = {}
            for copy in self._copies.values():
                if not copy.read_done and not copy.fetching and self._client.leader(copy.source) is None:
                    self._retry_later(copy, error)
        for copy in self._copies.values():
            if copy.read_done or copy.fetching:
                continue
            code = failed.get(copy.source.topic)
            if code is not None or self._client.leader(copy.source) is None:
                code, doing = code or ErrorCode.LEADER_NOT_AVAILABLE, "find the leader on the source"
                cause = error_for_code(code, where=copy.where(), doing=doing, needs=self._needed(copy))
                self._retry_later(copy, cause)
        await asyncio.sleep(0.05)
        self.wake()

    def _needed(self, copy: PartitionCopy) -> Needed:
        return Needed(Grant.on_topic(Operation.READ, copy.source.topic), self._client.cluster)

    def _retry_later(self, copy: PartitionCopy, error: MirrorError) -> None:
        """As `_retry`, but never twice for one pause: refreshing is itself a consequence of a failure."""
        if not copy.backoff.waiting:
            self._retry(copy, error)
