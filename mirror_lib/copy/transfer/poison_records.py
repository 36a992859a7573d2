"""Poison records: what the flow's policy skips, their copies in the quarantine topic, and their gaps.

A record of the quarantine topic is one skipped record or batch, or a part of it: its value has the raw bytes, its
headers the location and the error. It is acknowledged before anything that follows it is sent to the target, so no
position can pass it. A retried task may write it again: its key identifies it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence

from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.copy.takeover.partition_appender import PartitionAppender
from mirror_lib.copy.transfer.partition_progress import PartitionCopy
from mirror_lib.copy.transfer.torn_connections import LEAST_REQUEST_BYTES
from mirror_lib.errors import MirrorError, Where
from mirror_lib.planning.model import CopyJob, Poison
from mirror_lib.records.builder import rebuild
from mirror_lib.records.header import Codec
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record
from mirror_lib.records.skipped import SkippedRecords
from mirror_lib.records.stamping import stamp
from mirror_lib.records.varint import encode_varint, with_size
from mirror_lib.topology.names import FlowId, TopicPartition

#: Maximum bytes of one record's value; longer values are split.
PART_BYTES = 512 * 1024
#: The same if the target accepts only small requests.
SMALL_PART_BYTES = LEAST_REQUEST_BYTES // 2
#: Kafka's default of `max.message.bytes`, with which the topic is created.
MAX_MESSAGE_BYTES = 1_048_588
_NO_PRODUCER = (-1, -1, -1)


class Omissions:
    """Skips records of one copy task by its flow's policy."""

    def __init__(
        self, job: CopyJob, target: RawClient, *, kept: Callable[[Sequence[PartitionCopy]], Awaitable[None]]
    ) -> None:
        """Args:
        job: job with the policy.
        target: connection to the cluster of the quarantine topic.
        kept: stores a partition's position with its skipped ranges.
        """
        self._flow = job.flow
        self._kept = kept
        self._policy = job.settings.poison_policy
        self._topic = job.quarantine_topic
        self._part_bytes = min(PART_BYTES, max((job.settings.request_max_bytes or 2 * PART_BYTES) // 2, 1))
        self._writer = PartitionAppender(
            target,
            TopicPartition(self._topic, 0),
            job.settings.retry_max_seconds,
            where=Where(cluster=target.cluster, topic=self._topic),
            doing=f"write to {self._topic}",
        )

    @property
    def may_skip(self) -> bool:
        """True if records may be skipped."""
        return self._policy is not PoisonPolicy.FAIL

    async def skip(
        self, copy: PartitionCopy, skipped: Sequence[SkippedRecords], *, small_requests: bool = False
    ) -> None:
        """Record the ranges that are skipped; with `quarantine`, after their copies are acknowledged.

        When this returns, a take-over of this run will find it.

        Args:
            small_requests: whether the target accepts only small requests.

        Raises:
            MirrorError: the quarantine topic or the position topic refuses the write; the partition must stop.
        """
        quarantined = self._policy is PoisonPolicy.QUARANTINE
        if quarantined:
            now_ms = int(time.time() * 1000)
            part_bytes = min(self._part_bytes, SMALL_PART_BYTES) if small_requests else self._part_bytes
            for batch in quarantine_batches(self._flow, copy.source, skipped, now_ms=now_ms, part_bytes=part_bytes):
                await self._append(batch)
        copy.note_poison([poison_of(each, quarantined=quarantined) for each in skipped])
        await self._kept([copy])

    async def _append(self, batch: ReadyBatch) -> None:
        stamp(batch, *_NO_PRODUCER)
        try:
            await self._writer.append(batch)
        except MirrorError as error:
            raise self._not_kept(error) from error

    def _not_kept(self, error: MirrorError) -> MirrorError:
        return type(error)(
            f"a poison record could not be written to the quarantine topic {self._topic}: {error.what}",
            where=error.where,
            action=f"{error.action} The topic sync before a run creates the topic.".strip(),
        )


def poison_of(skipped: SkippedRecords, *, quarantined: bool) -> Poison:
    """A skipped range as an entry of a partition's account."""
    return Poison(
        first_offset=skipped.first_offset,
        next_offset=skipped.next_offset,
        records=skipped.records,
        cause=skipped.error.reason,
        detail=skipped.error.what,
        first_timestamp=skipped.first_timestamp,
        last_timestamp=skipped.last_timestamp,
        quarantined=quarantined,
    )


def quarantine_batches(
    flow: FlowId,
    source: TopicPartition,
    skipped: Sequence[SkippedRecords],
    *,
    now_ms: int,
    part_bytes: int = PART_BYTES,
) -> Iterator[ReadyBatch]:
    """Batches for the quarantine topic, in order.

    Args:
        part_bytes: maximum bytes of one record's value; longer values are split.
    """
    records = (record for each in skipped for record in _records(flow, source, each, now_ms, part_bytes))
    return rebuild(records, codec=Codec.NONE, batch_max_bytes=part_bytes, max_message_bytes=MAX_MESSAGE_BYTES)


def _records(
    flow: FlowId, source: TopicPartition, skipped: SkippedRecords, now_ms: int, part_bytes: int
) -> Iterator[Record]:
    parts = max(-(-len(skipped.raw) // part_bytes), 1)
    headers = {
        "flow": str(flow),
        "topic": source.topic,
        "partition": str(source.partition),
        "first_offset": str(skipped.first_offset),
        "last_offset": str(skipped.next_offset - 1),
        "reason": skipped.error.reason,
        "detail": skipped.error.what,
        "codec": _text(None if skipped.codec is None else skipped.codec.name.lower()),
        "unit": skipped.unit.value,
        "timestamp": _text(skipped.first_timestamp),
    }
    key = f"{source}-{skipped.first_offset}".encode()
    for number in range(parts):
        value = skipped.raw[number * part_bytes : (number + 1) * part_bytes]
        named = {**headers, "part": f"{number + 1}/{parts}"}
        yield Record(skipped.first_offset, now_ms, with_size(key) + with_size(value) + _headers(named))


def _text(value: object) -> str:
    return "unknown" if value is None else str(value)


def _headers(named: dict[str, str]) -> bytes:
    pairs = [with_size(name.encode()) + with_size(value.encode()) for name, value in named.items()]
    return encode_varint(len(pairs)) + b"".join(pairs)
