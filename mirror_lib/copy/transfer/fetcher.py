"""The reading half of a copy task: raw fetches from the source's leaders, within the task's memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.backoff import without_frames
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.copy.transfer.broker_connections import FetchPace, Reach, far_request_bytes, reach
from mirror_lib.copy.transfer.fetch_responses import FetchResponses
from mirror_lib.copy.transfer.follower_fetch import Place, ReadReplicas
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.poison_records import Omissions
from mirror_lib.copy.transfer.task_group import Background
from mirror_lib.copy.transfer.throttle import Throttle, task_bytes_per_second
from mirror_lib.errors import BrokerUnreachableError, MirrorError
from mirror_lib.planning.model import CopyJob

if TYPE_CHECKING:
    from mirror_lib.copy.transfer.halves import Downstream

#: Two requests per connection: the broker handles one while the records of the other are processed.
_REQUESTS_PER_CONNECTION = 2
#: Requests that a task holds at most while both clusters have low latency: two in flight, two to be written.
_REQUESTS_AHEAD = 4
_LEAST_AHEAD = 32 * 1024 * 1024
#: The same for each partition, in units of the maximum size of its part of a request.
_SHARES_AHEAD = 2
_FETCH_WAIT_MS = 500
_MIN_FETCH_BYTES = 64 * 1024


class Memory:
    """Bytes that a task holds: requested, or fetched and not yet acknowledged by the target.

    A response counts until all of it is processed, in addition to the batches made from it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        #: The target has high latency: many bytes are in flight to it.
        self.far_target = False

    def room(self, read_ahead: int) -> int:
        """Bytes that may still be requested from a low-latency source, of which holding `read_ahead` is enough.

        More would only wait for the target, in memory that must be allocated and cleared first.
        """
        return self.holds(read_ahead) - self.used

    def holds(self, read_ahead: int) -> int:
        """Maximum number of bytes to hold for a low-latency source."""
        return self.limit if self.far_target else min(self.limit, read_ahead)


class SourceReader:
    """Keeps fetches in flight for every partition that has room, grouped by the source's leaders."""

    def __init__(
        self,
        client: RawClient,
        copies: Sequence[PartitionCopy],
        job: CopyJob,
        memory: Memory,
        background: Background,
        *,
        downstream: Downstream,
        omissions: Omissions,
    ) -> None:
        self._tasks = len(job.bins)
        self._replicas = ReadReplicas(job.source.rack, job.source.metadata_max_age_ms / 1000)
        rate = task_bytes_per_second(job, copies[0].source)
        self._throttle = None if rate is None else Throttle(rate)
        self._paused: asyncio.TimerHandle | None = None
        self._client = client
        self._copies = {copy.source: copy for copy in copies}
        self._settings = job.settings
        self._memory = memory
        self._pace = FetchPace()
        #: True if some leader of the source has high latency.
        self._far_source = False
        self._read_committed = job.read_committed
        self._responses = FetchResponses(
            client=client,
            read_committed=job.read_committed,
            downstream=downstream,
            omissions=omissions,
            replicas=self._replicas,
            lost_leader=self._refresh_leaders,
            wake=self.wake,
        )
        #: For each leader: the number of requests in flight on each of its connections.
        self._outstanding: dict[int, list[int]] = {}
        self._unfinished = len(self._copies)
        self._background = background
        self._refreshing: asyncio.Task[None] | None = None
        self._waking = False
        #: Maximum number of bytes that each partition may hold.
        self._share = memory.limit
        #: Held bytes from which nothing is requested, so that the partitions need not be checked.
        self._full_from = memory.limit

    async def start(self) -> None:
        """Find the leaders and send the first fetches."""
        await self._client.refresh_leaders({source.topic for source in self._copies})
        self._pump()

    def wake(self) -> None:
        """Send every fetch that may be sent, soon. Call it when memory is freed or a pause has ended.

        It iterates over all partitions, so it runs once for all events of one turn of the event loop.
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
        # A partition whose target leader is unavailable keeps its share: the others must be able to use theirs.
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
            if copy.fetching or copy.backoff.is_waiting or self._has_its_share(copy):
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
        # With low latency no more than the share, so that partitions with unavailable leaders do not block others.
        return held > self._share - min(self._settings.fetch_partition_max_bytes, self._settings.fetch_max_bytes)

    @property
    def _worthwhile(self) -> int:
        """Room below which it is better to wait: a request for each acknowledgement would make many requests.

        Each of them costs the CPU as much as about ten batches, and ends with a truncated batch that is fetched again.
        """
        most = self._settings.fetch_max_bytes
        wanted = most // 4 if self._far_source else self._share
        return min(max(wanted, _MIN_FETCH_BYTES), most, self._memory.limit // 4)

    def _fetch_from(self, place: Place, ready: list[PartitionCopy]) -> None:
        ready.sort(key=lambda copy: copy.last_served)
        round_trip = self._client.round_trip(place.node)
        distance = reach(round_trip, self._settings.connections_per_broker, tasks=self._tasks)
        slots = self._outstanding.setdefault(place.node, [])
        slots += [0] * (distance.connections - len(slots))
        self._far_source = self._far_source or distance.far
        ahead = self._memory.limit if distance.far else self._near_ahead
        while ready:
            free = _REQUESTS_PER_CONNECTION * len(slots) - sum(slots)
            wanted, room = self._request_bytes(distance, len(slots)), self._memory.room(ahead)
            if free <= 0 or (room < min(self._worthwhile, wanted) and self._memory.used > 0):
                return
            starved = next((copy for copy in ready if copy.empty_fetches > 1), None)
            # With low latency, half of the partitions go into the first request, so that the second overlaps with it.
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
            slot = slots.index(min(slots))
            slots[slot] += 1
            for copy in chosen:
                copy.fetching = True
            self._background.start(self._fetch(place, slot, chosen, max_bytes, far=distance.far))

    def _request_bytes(self, distance: Reach, slots: int) -> int:
        if not distance.far:
            return self._settings.fetch_max_bytes
        requests = min(_REQUESTS_PER_CONNECTION * slots, self._unfinished)
        return self._pace.ask(far_request_bytes(self._memory.limit, requests, self._settings.fetch_max_bytes))

    async def _fetch(self, place: Place, slot: int, copies: list[PartitionCopy], max_bytes: int, *, far: bool) -> None:
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
                copy.opened.plan.topic_id,
            )
            for copy in copies
        ]
        responses: list[FetchedPartition] = []
        failure: MirrorError | None = None
        began = time.monotonic()
        try:
            responses = await self._client.fetch(
                place.node,
                request,
                max_bytes=max_bytes,
                max_wait_ms=_FETCH_WAIT_MS,
                read_committed=self._read_committed,
                slot=slot,
                rack=place.rack,
            )
        except MirrorError as error:
            failure = error
            without_frames(error)
            if far and isinstance(error, BrokerUnreachableError):
                self._pace.record_timeout(max_bytes)
        finally:
            self._memory.used -= max_bytes
            self._outstanding[place.node][slot] -= 1
        received = sum(len(response.records) for response in responses)
        if far and failure is None:
            self._pace.record_response(max_bytes, received, time.monotonic() - began)
        if self._throttle is not None:
            # The throttle has counted all bytes that were requested.
            self._throttle.spend(received - max_bytes)
        self._memory.used += received
        try:
            # The next request leaves before this response is processed: its partitions stay marked until then.
            self._pump()
            await self._responses.work_on(place, copies, responses, failure)
        finally:
            self._memory.used -= received
        self._pump()

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
                    self._responses.retry_later(copy, error)
        for copy in self._copies.values():
            if copy.read_done or copy.fetching:
                continue
            code = failed.get(copy.source.topic)
            if code is not None or self._client.leader(copy.source) is None:
                code, doing = code or ErrorCode.LEADER_NOT_AVAILABLE, "find the leader on the source"
                cause = error_for_code(code, where=copy.where(), doing=doing, needs=self._responses.needed_grant(copy))
                self._responses.retry_later(copy, cause)
        await asyncio.sleep(0.05)
        self.wake()
