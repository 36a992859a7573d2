"""Reads small topics as a whole, within limits: every producer of a cluster may be able to write to them.

Batches are decompressed by the project's own decoder. librdkafka would keep every fetched record, and would decompress
a batch of kilobytes to gigabytes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.protocol.kafka_errors import error_for_code
from mirror_lib.cluster.raw.backoff import may_pass
from mirror_lib.cluster.raw.client import FetchedPartition, FetchRequestPartition, RawClient
from mirror_lib.cluster.topics.kept_records import Kept, TooManyRecordsError
from mirror_lib.cluster.topics.records import TopicRecord, leaderless_error
from mirror_lib.errors import (
    BrokerUnreachableError,
    CorruptBatchError,
    MirrorError,
    OversizedBatchError,
    TransientError,
    Where,
)
from mirror_lib.outside_limits import INTERNAL_BATCH_BYTES, INTERNAL_TOPIC_BYTES
from mirror_lib.records.compression.codecs import CodecError, decompress_up_to
from mirror_lib.records.header import CODEC_BITS
from mirror_lib.records.records import Record, RecordError, key_and_value, read_records
from mirror_lib.records.spans import Span, read_spans
from mirror_lib.topology.access import Grant, Operation
from mirror_lib.topology.names import TopicPartition

_Result = TypeVar("_Result")

#: The end of a topic is only detected when the broker responds to an empty fetch: keep that wait short.
_FETCH_WAIT_MS = 10
_FETCH_BYTES, _PARTITION_BYTES = 4 * 1024 * 1024, 1024 * 1024
_PAUSE_SECONDS = 0.05
#: Records after which other work of the event loop, such as the end of the time, gets its turn.
_RECORDS_AT_ONCE = 10_000
_PASSING = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
_FOREIGN = "Find out which program writes to this topic: only MirrorMaker 2 and its replacements may."


class HiddenRecordsError(TransientError):
    """An open transaction hides the end of a topic from read-committed consumers."""

    #: The affected partitions.
    partitions: frozenset[int] = frozenset()


class LeaderlessPartitions(NamedTuple):
    """The partitions of a topic that were not read because they have no leader."""

    numbers: frozenset[int]
    #: The number of partitions of the topic.
    of: int
    error: MirrorError


@dataclass(frozen=True, slots=True)
class TopicContent:
    """The wanted records of a topic.

    Attributes:
        records: in the order of each partition.
        next_offsets: by partition, the offset to continue from.
        unwanted: number of other records.
        unread: partitions that were not read; None if all were.
    """

    records: tuple[TopicRecord, ...]
    next_offsets: Mapping[int, int]
    unwanted: int = 0
    unread: LeaderlessPartitions | None = None


class SmallTopicReader:
    """Reads a topic to its end without joining a group or committing. Read committed."""

    def __init__(self, connection: Connection, topic: str, *, timeout: float = 30.0) -> None:
        """Args:
        timeout: maximum seconds of one call.
        """
        self.topic = topic
        self._connection = connection
        self._timeout = timeout
        self._where = Where(cluster=connection.cluster, topic=topic)
        self._runner: asyncio.Runner | None = None
        self._client: RawClient | None = None
        self._given_up = False

    def give_up(self) -> None:
        """Stop another thread's wait for this reader, which is not needed any more."""
        self._given_up = True

    def close(self) -> None:
        """Close the connections."""
        if self._runner is not None:
            if self._client is not None:
                self._run(self._client.__aexit__())
            self._runner.close()
            self._runner = self._client = None

    def read(
        self,
        start: Mapping[int, int],
        kept: Kept,
        *,
        partitions: Collection[int] | None = None,
        skip_oversized: bool = False,
        leaderless_seconds: float | None = None,
    ) -> TopicContent:
        """The wanted records from given offsets to the end.

        Args:
            start: offsets by partition; other partitions are read from the beginning.
            kept: takes the records of the topic's format; others take no memory.
            partitions: the partitions to read; by default all.
            skip_oversized: skip batches that are too large to be of the topic's format, instead of failing.
            leaderless_seconds: time after which partitions without a leader are skipped; None waits for them.

        Raises:
            TopicMissingError: the topic does not exist.
            HiddenRecordsError: a transaction is still open, and did not end in time.
            OversizedBatchError: a batch, or the wanted records together, exceed the limit.
            MirrorError: the end was not reached in time, or the cluster rejected the request.
        """
        reading = _Reading(self.topic, self._where, kept, skip_oversized)
        if leaderless_seconds is not None:
            reading.leaders_until = time.monotonic() + leaderless_seconds
        self._run(self._limited(reading, lambda: self._read(reading, start, partitions)))
        return TopicContent(
            tuple(reading.kept), reading.next_offsets, reading.kept.unwanted, self._unread(reading.unread)
        )

    def _unread(self, numbers: Collection[int]) -> LeaderlessPartitions | None:
        if not numbers or self._client is None:
            return None
        error = leaderless_error(self._where, f"read {self.topic}", sorted(numbers))
        return LeaderlessPartitions(frozenset(numbers), self._client.partition_count(self.topic) or 0, error)

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        if self._runner is None:
            self._runner = asyncio.Runner()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work)
        # The caller is a coroutine itself.
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="topic-reader") as pool:
            return pool.submit(self._runner.run, work).result()

    def _may_continue(self, deadline: float) -> bool:
        return not self._given_up and time.monotonic() < deadline

    async def _limited(self, reading: _Reading, work: Callable[[], Awaitable[None]]) -> None:
        """Retry errors that may pass, and stop at the end of the time."""
        deadline = time.monotonic() + self._timeout
        failure: MirrorError | None = None
        while True:
            task = asyncio.ensure_future(work())
            while not task.done() and self._may_continue(deadline):
                await asyncio.wait({task}, timeout=_PAUSE_SECONDS)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
                raise self._late_error(reading, failure)
            error = task.exception()
            if error is None:
                return
            if not isinstance(error, MirrorError) or not error.retriable or not self._may_continue(deadline):
                raise error
            failure = error
            await asyncio.sleep(_PAUSE_SECONDS)

    def _late_error(self, reading: _Reading, failure: MirrorError | None) -> MirrorError:
        if reading.hidden:
            return _hidden_error(self._where, reading.hidden)
        if failure is not None:
            return failure
        return BrokerUnreachableError(
            f"could not read {self.topic} to its end within {self._timeout:g} s: {len(reading.kept):,} records and "
            f"{reading.kept.unwanted:,} of other formats were read.",
            where=self._where,
            action="Check the load of the brokers. " + _FOREIGN,
        )

    async def _read(self, reading: _Reading, start: Mapping[int, int], only: Collection[int] | None) -> None:
        if self._client is None:
            client = RawClient(self._connection)
            await client.__aenter__()
            self._client = client
        client = self._client
        await self._find_leaders(client)
        count = client.partition_count(self.topic) or 0
        wanted = [number for number in range(count) if only is None or number in only]
        if not reading.next_offsets:
            reading.next_offsets.update({number: start.get(number, 0) for number in wanted})
            reading.unfinished.update(wanted)
        while reading.unfinished:
            by_leader: dict[int, list[int]] = {}
            for number in sorted(reading.unfinished):
                if client.leader(TopicPartition(self.topic, number)) is None and reading.is_late:
                    reading.leave_out(number)
                else:
                    by_leader.setdefault(self._leader(client, number), []).append(number)
            before = dict(reading.next_offsets)
            found = await asyncio.gather(*(self._fetch(client, reading, *each) for each in by_leader.items()))
            for response in (each for responses in found for each in responses):
                await self._take(client, reading, response)
            if before == reading.next_offsets and reading.unfinished:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _find_leaders(self, client: RawClient) -> None:
        code = (await client.refresh_leaders([self.topic])).get(self.topic, ErrorCode.NONE)
        if code:
            raise self._error(code, f"look up {self.topic}")

    def _leader(self, client: RawClient, number: int) -> int:
        leader = client.leader(TopicPartition(self.topic, number))
        if leader is None:
            everyone = range(client.partition_count(self.topic) or 0)
            leaderless = [each for each in everyone if client.leader(TopicPartition(self.topic, each)) is None]
            raise leaderless_error(self._where, f"read {self.topic}", leaderless)
        return leader

    async def _fetch(
        self, client: RawClient, reading: _Reading, leader: int, numbers: list[int]
    ) -> list[FetchedPartition]:
        wanted = [
            FetchRequestPartition(self.topic, number, reading.next_offsets[number], _PARTITION_BYTES)
            for number in numbers
        ]
        return await client.fetch(
            leader, wanted, max_bytes=_FETCH_BYTES, max_wait_ms=_FETCH_WAIT_MS, read_committed=True
        )

    async def _take(self, client: RawClient, reading: _Reading, response: FetchedPartition) -> None:
        number = response.partition
        if response.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            partition = TopicPartition(self.topic, number)
            reading.next_offsets[number] = await client.log_start(self._leader(client, number), partition)
        elif response.error_code:
            raise self._error(response.error_code, f"read {self.topic}")
        else:
            for count, record in enumerate(reading.records(response), start=1):
                reading.add(record)
                if count % _RECORDS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            reading.note_end(response)

    def _error(self, code: int, doing: str) -> MirrorError:
        needs = Grant.on_topic(Operation.READ, self.topic)
        found = error_for_code(code, where=self._where, doing=doing, needs=needs)
        if code in _PASSING and doing.startswith("read") and not found.retriable and may_pass(found):
            # A new leader learns of its topics late; the look-up says if the topic is really missing.
            return TransientError(found.what, where=found.where, action=found.action)
        return found


class _Reading:
    """What one call has read so far; an attempt continues where the last one ended."""

    def __init__(self, topic: str, where: Where, kept: Kept, skip_oversized: bool) -> None:
        self.kept = kept
        self.next_offsets: dict[int, int] = {}
        self.unfinished: set[int] = set()
        #: Partitions whose end is hidden by an open transaction, as far as is known.
        self.hidden: frozenset[int] = frozenset()
        #: When partitions without a leader are skipped; None if they are waited for.
        self.leaders_until: float | None = None
        self.unread: set[int] = set()
        self._topic = topic
        self._where = where
        self._skip_oversized = skip_oversized

    @property
    def is_late(self) -> bool:
        """True if partitions without a leader are skipped by now."""
        return self.leaders_until is not None and time.monotonic() > self.leaders_until

    def leave_out(self, number: int) -> None:
        """Read nothing more of a partition."""
        self.unread.add(number)
        self.unfinished.discard(number)
        self.next_offsets.pop(number, None)

    def records(self, response: FetchedPartition) -> Iterator[TopicRecord]:
        """Yield the records of a response, and advance the offset to continue from."""
        number = response.partition
        try:
            spans, _ = read_spans(
                response.records, response.aborted, read_committed=True, most_bytes=INTERNAL_BATCH_BYTES
            )
            for span in spans:
                if span.next_offset > self.next_offsets[number]:
                    yield from self._records(number, span)
                    self.next_offsets[number] = span.next_offset
        except (RecordError, CodecError) as error:
            raise CorruptBatchError(
                f"a batch of {self._topic} is damaged: {error}.",
                where=replace(self._where, partition=number, offset=self.next_offsets[number]),
                action="Compare the replicas of this partition (kafka-dump-log).",
            ) from error

    def _records(self, number: int, span: Span) -> Iterator[TopicRecord]:
        found: Iterable[Record] = span.old
        header = span.header
        if header is not None and header.count:
            body = decompress_up_to(header.attributes & CODEC_BITS, memoryview(span.body), INTERNAL_BATCH_BYTES)
            if body is None:
                if not self._skip_oversized:
                    raise self._oversized(number, span.first)
                self.kept.unwanted += header.count
                return
            found = read_records(
                body, base_offset=header.base_offset, base_timestamp=header.first_timestamp, count=header.count
            )
        for record in found:
            # The first batch may begin before the offset.
            if record.offset >= self.next_offsets[number]:
                time_ms = header.max_timestamp if header is not None and span.log_append_time else record.timestamp
                key, value = key_and_value(record)
                yield TopicRecord(number, record.offset, key, value, time_ms if time_ms >= 0 else None)

    def add(self, record: TopicRecord) -> None:
        """Keep a record, if it is wanted."""
        try:
            self.kept.add(record)
        except TooManyRecordsError:
            mebibytes = INTERNAL_TOPIC_BYTES // 1024 // 1024
            raise OversizedBatchError(
                f"the records of {self._topic} take more than {mebibytes} MiB.",
                where=self._where,
                action="Let the broker compact the topic (cleanup.policy=compact, segment.bytes). " + _FOREIGN,
            ) from None

    def note_end(self, response: FetchedPartition) -> None:
        """Note if the end of a partition has been reached, or is hidden."""
        number = response.partition
        at = self.next_offsets[number]
        self.hidden -= {number}
        if at >= response.high_watermark:
            self.unfinished.discard(number)
        elif 0 <= response.last_stable_offset <= at:
            self.hidden |= {number}

    def _oversized(self, number: int, offset: int) -> OversizedBatchError:
        return OversizedBatchError(
            f"a batch of {self._topic} has more than {INTERNAL_BATCH_BYTES // 1024 // 1024} MiB when decompressed.",
            where=replace(self._where, partition=number, offset=offset),
            action=f"{_FOREIGN} `kafka-delete-records.sh` removes records up to an offset; of the positions of a "
            "flow, only those that its last run has stored again are behind it.",
        )


def _hidden_error(where: Where, partitions: frozenset[int]) -> HiddenRecordsError:
    hidden = ", ".join(map(str, sorted(partitions)))
    error = HiddenRecordsError(
        f"a transaction is still open in partitions {hidden}, and hides later records.",
        where=where,
        action="Stop MirrorMaker 2 for this flow. An abandoned transaction ends after its timeout; for one that "
        "does not, see `kafka-transactions.sh find-hanging` (docs/troubleshooting.md, transient).",
    )
    error.partitions = partitions
    return error
