"""The reading half of a copy task: raw fetches from the source's leaders, within the task's memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from mirror_lib.cluster.batches.assemble import ReadyBatch
from mirror_lib.cluster.error_codes import ErrorCode
from mirror_lib.cluster.kafka_errors import error_for_code
from mirror_lib.cluster.raw import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.config.model import CopySettings
from mirror_lib.errors import BrokerUnreachableError, MirrorError, OffsetOutOfRangeError, RetriesExhaustedError
from mirror_lib.relay.background import Background
from mirror_lib.relay.partition_copy import PartitionCopy
from mirror_lib.relay.retry import may_pass
from mirror_lib.topology.names import TopicPartition

#: Two requests per leader: one is answered by the broker while the records of the other are worked on.
_REQUESTS_PER_LEADER = 2
_FETCH_WAIT_MS = 500
_MIN_FETCH_BYTES = 64 * 1024


class Memory:
    """Bytes that a task holds: asked for, or read and not yet acknowledged by the target."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def room(self) -> int:
        """Bytes that may still be asked for."""
        return self.limit - self.used


class SourceReader:
    """Keeps fetches running for every partition that has room, grouped by the source's leaders.

    `deliver` gets each partition with the batches that became ready; it is called in the order of the offsets.
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
        deliver: Callable[[PartitionCopy, list[ReadyBatch]], None],
        settled: Callable[[PartitionCopy], None],
    ) -> None:
        self._client = client
        self._copies = {copy.source: copy for copy in copies}
        self._settings = settings
        self._memory = memory
        self._read_committed = read_committed
        self._deliver = deliver
        self._settled = settled
        self._outstanding: dict[int, int] = {}
        self._background = background
        self._refreshing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Find the leaders and send the first fetches."""
        await self._client.refresh_leaders({source.topic for source in self._copies})
        self.pump()

    def pump(self) -> None:
        """Send every fetch that may be sent now. Call whenever memory was freed or a pause ended."""
        by_leader: dict[int, list[PartitionCopy]] = {}
        homeless = False
        share = max(self._memory.limit // max(len(self._copies), 1), self._settings.fetch_partition_max_bytes)
        for copy in self._copies.values():
            if copy.read_done or copy.fetching or copy.backoff.waiting or copy.unacknowledged_bytes >= share:
                continue
            leader = self._client.leader(copy.source)
            if leader is None:
                homeless = True
            else:
                by_leader.setdefault(leader, []).append(copy)
        if homeless:
            self._refresh_leaders()
        for leader, ready in by_leader.items():
            self._fetch_from(leader, ready)

    def _fetch_from(self, leader: int, ready: list[PartitionCopy]) -> None:
        ready.sort(key=lambda copy: copy.last_served)
        while ready and self._outstanding.get(leader, 0) < _REQUESTS_PER_LEADER:
            max_bytes = min(self._settings.fetch_max_bytes, self._memory.room)
            if max_bytes < min(_MIN_FETCH_BYTES, self._memory.limit) and self._memory.used > 0:
                return
            starved = next((copy for copy in ready if copy.empty_fetches > 1), None)
            # Half of the partitions go into the first request, so that the second can overlap with it.
            free = _REQUESTS_PER_LEADER - self._outstanding.get(leader, 0)
            chosen = [starved] if starved else ready[: -(-len(ready) // free)]
            ready = [copy for copy in ready if copy not in chosen] if starved else ready[len(chosen) :]
            self._memory.used += max_bytes
            self._outstanding[leader] = self._outstanding.get(leader, 0) + 1
            for copy in chosen:
                copy.fetching = True
            self._background.start(self._fetch(leader, chosen, max_bytes))

    async def _fetch(self, leader: int, copies: list[PartitionCopy], max_bytes: int) -> None:
        partition_bytes = min(self._settings.fetch_partition_max_bytes, max_bytes)
        request = [
            FetchRequestPartition(copy.source.topic, copy.source.partition, copy.assembler.next_offset, partition_bytes)
            for copy in copies
        ]
        answers: list[FetchedPartition] = []
        failure: MirrorError | None = None
        try:
            answers = await self._client.fetch(
                leader,
                request,
                max_bytes=max_bytes,
                max_wait_ms=_FETCH_WAIT_MS,
                read_committed=self._read_committed,
            )
        except MirrorError as error:
            failure = error
        finally:
            self._memory.used -= max_bytes
            self._outstanding[leader] -= 1
        # The next request leaves before this answer is worked on: its partitions stay marked until then.
        self.pump()
        now = time.monotonic()
        for answer in answers:
            copy = self._copies[TopicPartition(answer.topic, answer.partition)]
            copy.last_served = now
            self._take(copy, answer, alone=len(copies) == 1)
            copy.fetching = False
            await asyncio.sleep(0)
        for copy in copies:
            if copy.fetching:
                copy.fetching = False
                self._retry(copy, failure or BrokerUnreachableError("the broker left the partition out of its answer."))
        self.pump()

    def _take(self, copy: PartitionCopy, answer: FetchedPartition, *, alone: bool) -> None:
        if copy.read_done:
            return
        if answer.error_code:
            self._refused(copy, answer)
            return
        if not len(answer.records):
            self._empty(copy, answer, alone=alone)
            return
        copy.backoff.progressed()
        copy.empty_fetches = 0
        before = copy.assembler.next_offset
        ready = copy.assembler.feed(answer.records, answer.aborted)
        assembler = copy.assembler
        if assembler.failure is None and not assembler.finished and not ready and assembler.next_offset == before:
            # Only part of a batch fitted; the broker always sends the first one whole, so this is an old broker's cut.
            copy.empty_fetches += 1
        if assembler.finished or assembler.failure is not None or copy.unacknowledged_batches == 0:
            held = assembler.flush()
            if held is not None:
                ready.append(held)
        self._deliver(copy, list(ready))
        if assembler.failure is not None:
            copy.fail(assembler.failure)
        elif assembler.finished:
            copy.read_done = True
        self._settled(copy)

    def _empty(self, copy: PartitionCopy, answer: FetchedPartition, *, alone: bool) -> None:
        readable_to = answer.last_stable_offset if self._read_committed else answer.high_watermark
        copy.empty_fetches += 1
        if alone and copy.empty_fetches > 1 and readable_to >= copy.opened.plan.end:
            # Nothing stands between here and the end: compaction removed it after the plan was made.
            held = copy.assembler.skip_to_end()
            self._deliver(copy, [held] if held is not None else [])
            copy.read_done = True
            self._settled(copy)
        elif readable_to < copy.opened.plan.end:
            self._retry(
                copy,
                RetriesExhaustedError(
                    f"the source shows records only up to offset {readable_to}, though it had {copy.opened.plan.end} "
                    "when the run was planned.",
                    where=copy.where(copy.assembler.next_offset),
                    action="A replica is behind or the log was truncated: check the source's replicas.",
                ),
            )

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
        error = error_for_code(answer.error_code, where=copy.where(offset), doing="read from the source")
        if may_pass(error):
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
            loop.call_later(max(copy.backoff.not_before - time.monotonic(), 0) + 0.01, self.pump)
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
                doing = "find the leader on the source"
                self._retry_later(
                    copy, error_for_code(code or ErrorCode.LEADER_NOT_AVAILABLE, where=copy.where(), doing=doing)
                )
        await asyncio.sleep(0.05)
        asyncio.get_running_loop().call_soon(self.pump)

    def _retry_later(self, copy: PartitionCopy, error: MirrorError) -> None:
        """As `_retry`, but never twice for one pause: refreshing is itself a consequence of a failure."""
        if not copy.backoff.waiting:
            self._retry(copy, error)
