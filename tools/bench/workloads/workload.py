"""The five workloads of the comparison, and their batches and partitions."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import crc32c
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from tools.bench.workloads.payload import Payloads
from tools.bench.workloads.payments import Payments
from tools.testbed.record_age import format_age

#: Kafka message format v2: positions in a batch's header (KIP-98).
_CRC_AT, _CRC_FROM, _TIMESTAMPS_AT = 17, 21, 27
_TIMESTAMPS, _CRC = struct.Struct(">qq"), struct.Struct(">I")
#: Number of different records of a workload; they repeat, with new timestamps.
_DISTINCT_RECORDS = 24_000
_SEED = 20_240_229


class Codec(StrEnum):
    """Compression of the source batches; the value is Kafka's name."""

    NONE = "none"
    LZ4 = "lz4"

    @property
    def attribute(self) -> int:
        """The codec's number in a batch header."""
        return {Codec.NONE: 0, Codec.LZ4: 3}[self]


class BatchKind(StrEnum):
    """Decides which of the goals apply."""

    FULL = "full"
    SMALL = "small"


class Content(StrEnum):
    """The content of values; the value is for files."""

    #: JSON-like text that a copier handles as bytes alone.
    TEXT = "text"
    #: JSON that transforms can read (`tools.bench.workloads.payments`).
    PAYMENTS = "payments"


@dataclass(frozen=True, slots=True)
class Workload:
    """Some records in exactly specified batches.

    Attributes:
        value_bytes: size of each record's value; keys have 14 bytes besides.
        records_per_batch: of every batch, except the last one of a partition.
        tls: copiers reach both clusters over TLS; there is no goal for these.
        age_seconds: age of the newest timestamps when the records are written.
    """

    name: str
    title: str
    records: int
    value_bytes: int
    codec: Codec
    records_per_batch: int
    kind: BatchKind
    tls: bool = False
    content: Content = Content.TEXT
    age_seconds: float = 0.0

    @property
    def payload_bytes(self) -> int:
        """Bytes of all values, uncompressed: the base of MB/s."""
        return self.records * self.value_bytes

    def scaled(self, records: int) -> Workload:
        """Return the same workload with another number of records."""
        return replace(self, records=records, title=self.title.replace(_amount(self.records), _amount(records), 1))

    def over_tls(self) -> Workload:
        """Return the same workload, copied over TLS."""
        return replace(self, name=f"{self.name}-tls", title=f"{self.title}, over TLS", tls=True)

    def aged(self, seconds: float) -> Workload:
        """Return the same workload with older timestamps."""
        if not seconds:
            return self
        return replace(self, title=f"{self.title}, {format_age(seconds)} old", age_seconds=seconds)

    def first_timestamp(self, partitions: int, now: float) -> int:
        """Return epoch milliseconds of the first record of each partition; the others follow a millisecond apart.

        Args:
            partitions: of the topic.
            now: epoch seconds, when the records are written. No broker accepts records of the future.
        """
        return int((now - self.age_seconds) * 1000) - self.records_of(0, partitions)

    def records_of(self, partition: int, partitions: int) -> int:
        """Return the number of records of a partition: the same for all, the remainder goes to the first ones."""
        return self.records // partitions + (1 if partition < self.records % partitions else 0)

    def batches_of(self, partition: int, partitions: int) -> int:
        """Return the number of batches of a partition."""
        return -(-self.records_of(partition, partitions) // self.records_per_batch)


def _amount(records: int) -> str:
    return f"{records // 1_000_000} M" if records % 1_000_000 == 0 else f"{records / 1000:g} k"


def _workload(name: str, records: int, size: int, codec: Codec, per_batch: int, kind: BatchKind, how: str) -> Workload:
    unit = f"{size // 1000} kB" if size % 1000 == 0 else f"{size} B"
    return Workload(name, f"{_amount(records)} x {unit}, {how}", records, size, codec, per_batch, kind)


#: The five workloads with goals. Full batches hold about 128 kB before compression.
WORKLOADS = (
    _workload("1kb-lz4", 1_000_000, 1000, Codec.LZ4, 128, BatchKind.FULL, "lz4, full batches"),
    _workload("1kb-none", 1_000_000, 1000, Codec.NONE, 128, BatchKind.FULL, "uncompressed, full batches"),
    _workload("100b-lz4", 3_000_000, 100, Codec.LZ4, 1100, BatchKind.FULL, "lz4, full batches"),
    _workload("200b-single", 200_000, 200, Codec.NONE, 1, BatchKind.SMALL, "one record per batch"),
    _workload("200b-five", 500_000, 200, Codec.LZ4, 5, BatchKind.SMALL, "lz4, 5 records per batch"),
)
#: Only run if named: what a Java producer with its default batch.size (16 kB) under load writes.
EXTRA_WORKLOADS = (_workload("1kb-lz4-16k", 1_000_000, 1000, Codec.LZ4, 15, BatchKind.FULL, "lz4, batches of 16 kB"),)
#: A full-batch and a small-batch workload, small enough for a minute of measuring.
QUICK = (WORKLOADS[0].scaled(100_000), WORKLOADS[4].scaled(50_000))


def select(names: str | None, *, quick: bool) -> tuple[Workload, ...]:
    """Return the workloads to run, in the order of the names given.

    Raises:
        ValueError: a name is unknown; the message lists the known ones.
    """
    offered = QUICK if quick else WORKLOADS
    if not names:
        return offered
    known = {workload.name: workload for workload in (*WORKLOADS, *EXTRA_WORKLOADS, *(QUICK if quick else ()))}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no such workload: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
    return tuple(known[name] for name in dict.fromkeys(wanted))


class BatchMill:
    """Builds a workload's record batches: complete, valid, byte for byte as specified.

    A few thousand different records are packed once; each batch is one of those with new timestamps (the CRC covers
    them), so that records differ everywhere and building a million costs no more than sending them.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        payloads = Payments if workload.content is Content.PAYMENTS else Payloads
        self._payloads = payloads(_SEED, workload.value_bytes)
        distinct = max(min(_DISTINCT_RECORDS, workload.records) // workload.records_per_batch, 1)
        self._full = [self._pack(workload.records_per_batch) for _ in range(distinct)]

    def _pack(self, count: int) -> bytes:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=self._workload.codec.attribute,
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=2**30,
        )
        for offset in range(count):
            key, value = self._payloads.next()
            builder.append(offset, offset, key, value, self._payloads.headers(value))
        return bytes(builder.build())

    def batches(self, partition: int, partitions: int, first_timestamp: int) -> Iterator[bytearray]:
        """Yield all batches of a partition in order; record timestamps rise by a millisecond from `first_timestamp`."""
        left = self._workload.records_of(partition, partitions)
        number, timestamp = partition, first_timestamp
        while left > 0:
            count = min(left, self._workload.records_per_batch)
            whole = count == self._workload.records_per_batch
            template = self._full[number % len(self._full)] if whole else self._pack(count)
            yield _with_timestamps(template, timestamp, count)
            number += 1
            timestamp += count
            left -= count


def _with_timestamps(template: bytes, first: int, count: int) -> bytearray:
    batch = bytearray(template)
    _TIMESTAMPS.pack_into(batch, _TIMESTAMPS_AT, first, first + count - 1)
    _CRC.pack_into(batch, _CRC_AT, crc32c.crc32c(memoryview(batch)[_CRC_FROM:]))
    return batch
