"""Read one partition for a comparison, with read-ahead and through leader changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.admin.model import OffsetSpec
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.cluster.raw.partition_client import Patience
from mirror_lib.errors import CorruptBatchError, MirrorError, TransientError, Where
from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock, read_blocks
from mirror_lib.features.verify.model import CheckRange, KnownGap
from mirror_lib.features.verify.uncommitted import UncommittedRecords
from mirror_lib.records.compression.codecs import CodecError
from mirror_lib.records.records import RecordError
from mirror_lib.records.spans import Shown, Span, none_shown, read_spans
from mirror_lib.topology.access import Operation
from mirror_lib.topology.names import TopicPartition

_FETCH_WAIT_MS = 500
_SMALLEST_CHUNK = 256 * 1024
#: Consecutive responses without records after which there are none before the end.
_EMPTY_ANSWERS = 2


@dataclass(frozen=True, slots=True)
class Chunk:
    """The result of one fetch: the log up to `next_offset`."""

    spans: Sequence[Span | RecordBlock]
    next_offset: int
    size: int = 0
    #: Set when retention has removed everything below this offset.
    log_start: int | None = None


def chunk_size(range_: CheckRange, largest: int) -> int:
    """Return the fetch size for a range: of a short one, little is read beyond its end."""
    return min(max(2 * range_.estimated_bytes or largest, _SMALLEST_CHUNK), largest)


class LogReader(Patience):
    """Reads one partition a fetch at a time."""

    def __init__(
        self,
        client: RawClient,
        connection: Connection,
        partition: TopicPartition,
        *,
        read_committed: bool,
        retry_seconds: float,
        chunk_bytes: int,
        known_gaps: Sequence[KnownGap] = (),
        gather_small: bool = False,
        shown: Shown = none_shown,
        uncommitted: UncommittedRecords | None = None,
    ) -> None:
        """Nothing is requested yet.

        Args:
            connection: of the same cluster, for requests that the raw client does not have.
            retry_seconds: how long retriable errors are retried.
            known_gaps: where a damaged batch may be skipped.
            gather_small: return consecutive small batches as blocks of records.
            shown: aborted batches that count nevertheless.
            uncommitted: counts what readers of committed records do not see; it has a rule for aborted batches itself.
        """
        where = Where(cluster=client.cluster, topic=partition.topic, partition=partition.partition)
        super().__init__(client, partition, retry_seconds, where=where, operation=Operation.READ)
        self._connection = connection
        self._read_committed = read_committed
        self._chunk_bytes = chunk_bytes
        self._known_gaps = known_gaps
        self._gather_small = gather_small
        self._shown = shown if uncommitted is None else uncommitted.is_shown
        self._uncommitted = uncommitted
        #: True if the next fetch asks for committed records: also to learn which ones are aborted.
        self._asks_committed = read_committed or uncommitted is not None

    async def read(self, offset: int, end: int) -> Chunk:
        """Return the log from `offset` on, of [offset, end).

        Raises:
            MirrorError: an error that is not retriable, or that did not pass in time.
        """
        backoff, empty = self.patient(), 0
        while True:
            try:
                found = await self._fetch(offset, end, surely_empty=empty >= _EMPTY_ANSWERS - 1)
                if found is not None:
                    return found
                empty += 1
            except MirrorError as error:
                await self.pause(backoff, error)

    async def _fetch(self, offset: int, end: int, *, surely_empty: bool) -> Chunk | None:
        """Fetch once; return None if nothing came and more may come the next time."""
        leader = await self.leader()
        wanted = FetchRequestPartition(*self._partition, offset, self._chunk_bytes)
        (response,) = await self._client.fetch(
            leader,
            [wanted],
            max_bytes=self._chunk_bytes,
            max_wait_ms=_FETCH_WAIT_MS,
            read_committed=self._asks_committed,
        )
        where = replace(self._where, offset=offset)
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._behind_retention(offset, where)
        if response.error_code:
            raise error_for_code(response.error_code, where=where, doing="read the log", needs=self._needs)
        if not len(response.records):
            return await self._handle_empty(response, leader, offset, end, surely_empty=surely_empty)
        return self._chunk(response, offset, end, where)

    def _chunk(self, response: FetchedPartition, offset: int, end: int, where: Where) -> Chunk:  # noqa: ARG002 - for rows
        try:
            spans, size = self._parse(response)
        except (RecordError, CodecError) as error:
            for gap in self._known_gaps:
                if gap.first_offset <= offset < gap.next_offset:
                    return Chunk((), gap.next_offset)
            raise CorruptBatchError(
                f"a batch cannot be read: {error}.",
                where=where,
                action="Compare the replicas of this partition (kafka-dump-log).",
            ) from error
        if not spans:
            raise TransientError("the broker does not return a whole record batch.", where=where)
        return Chunk(spans, spans[-1].next_offset, size)

    def _parse(self, response: FetchedPartition) -> tuple[Sequence[Span | RecordBlock], int]:
        read = read_blocks if self._gather_small else read_spans
        if self._uncommitted is not None and not self._asks_committed:
            self._uncommitted.take_undecided(response.records)
        return read(response.records, response.aborted, read_committed=self._asks_committed, shown=self._shown)

    async def _behind_retention(self, offset: int, where: Where) -> Chunk:
        log_start = await asyncio.to_thread(self._log_start)
        if log_start <= offset:
            raise TransientError(
                "the broker reports that it does not have this offset, although its log starts before it.",
                where=where,
                action="The log may have been truncated: check the partition's replicas.",
            )
        return Chunk((), log_start, log_start=log_start)

    def _log_start(self) -> int:
        with ClusterAdmin(self._connection) as admin:
            fact = admin.list_offsets([self._partition], OffsetSpec.EARLIEST)[self._partition]
        if fact.error is not None:
            raise fact.error
        return fact.offset

    async def _handle_empty(
        self, response: FetchedPartition, leader: int, offset: int, end: int, *, surely_empty: bool
    ) -> Chunk | None:
        if self._asks_committed and not self._read_committed and response.last_stable_offset < end:
            # What follows is not decided yet.
            self._asks_committed = False
            return None
        readable_to = response.last_stable_offset if self._read_committed else response.high_watermark
        where = replace(self._where, offset=offset)
        if readable_to < end:
            raise TransientError(
                f"the broker returns records only up to offset {readable_to}, but the log end offset was {end}.",
                where=where,
                action="A replica is lagging, or the log was truncated: check the partition's replicas.",
            )
        if not surely_empty:
            return None
        # A broker that waits for remote storage in vain responds without records and without an error.
        local_start = await self._client.local_log_start(leader, self._partition)
        if local_start is not None and local_start > offset:
            raise TransientError(
                f"the broker returns no records, because its local log starts at offset {local_start}: its remote "
                "storage is slow or does not respond.",
                where=where,
                action="Check the remote storage.",
            )
        return Chunk((), end)


class LogStream:
    """Read [first, end) ahead of the consumer: one chunk waits, one is in flight, the next is requested."""

    def __init__(self, reader: LogReader, first: int, end: int) -> None:
        self._reader = reader
        self._next = first
        self._end = end
        self._ready: asyncio.Queue[Chunk | Exception] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[None] | None = None
        self.start()

    def start(self) -> None:
        """Continue reading if something is left."""
        if (self._task is None or self._task.done()) and self._next < self._end:
            self._task = asyncio.create_task(self._run())

    async def take(self, end: int) -> Chunk:
        """Return the next chunk.

        Args:
            end: the present end of the range.

        Raises:
            MirrorError: the log cannot be read.
        """
        self._end = end
        self.start()
        if self._ready.empty() and (self._task is None or self._task.done()):
            return Chunk((), max(self._next, end))
        found = await self._ready.get()
        if isinstance(found, Exception):
            raise found
        return found

    async def close(self) -> None:
        """Stop reading."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while self._next < self._end:
            try:
                chunk = await self._reader.read(self._next, self._end)
            except Exception as error:
                self._end = self._next
                await self._ready.put(error)
                return
            self._next = chunk.next_offset
            await self._ready.put(chunk)
