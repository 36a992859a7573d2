"""Builds a source's record batches with kafka-python's writer, and reads batches with two independent readers."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaReader
from crc32c import crc32c
from kafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonReader
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from mirror_lib.errors import Where
from mirror_lib.records.assemble import BatchAssembler, BatchSizes, ReadyBatch
from mirror_lib.records.stamping import stamp

Headers = tuple[tuple[str, bytes | None], ...]

_ENCODE = {1: gzip_encode, 2: snappy_encode, 3: lz4_encode, 4: zstd_encode}
TRANSACTIONAL = 0x10
CONTROL = 0x20
LOG_APPEND_TIME = 0x08
DELETE_HORIZON = 0x40


@dataclass(frozen=True)
class SourceRecord:
    """A record as an application sees it."""

    offset: int
    timestamp: int = 1_700_000_000_000
    key: bytes | None = None
    value: bytes | None = b"value"
    headers: Headers = ()

    @property
    def content(self) -> tuple[int, bytes | None, bytes | None, Headers]:
        """All that must be the same on the target."""
        return self.timestamp, self.key, self.value, self.headers


def batch(
    records: Sequence[SourceRecord],
    *,
    codec: int = 0,
    base_offset: int | None = None,
    last_offset: int | None = None,
    attributes: int = 0,
    max_timestamp: int | None = None,
    producer_id: int = -1,
) -> bytes:
    """A magic-2 batch as a broker stores it; offsets between `base_offset` and `last_offset` may be missing."""
    base = records[0].offset if base_offset is None else base_offset
    builder = DefaultRecordBatchBuilder(2, 0, False, producer_id, 3, 17, 1 << 30)
    for record in records:
        headers = list(record.headers)
        builder.append(record.offset - base, record.timestamp, record.key, record.value, headers)
    raw = bytearray(builder.build())
    if codec:
        # The builder leaves small batches uncompressed.
        raw[61:] = _ENCODE[codec](bytes(raw[61:]))
        struct.pack_into(">i", raw, 8, len(raw) - 12)
    last = records[-1].offset if last_offset is None else last_offset
    struct.pack_into(">q", raw, 0, base)
    struct.pack_into(">i", raw, 12, 5)  # A leader epoch.
    struct.pack_into(">hi", raw, 21, codec | attributes, last - base)
    if max_timestamp is not None:
        struct.pack_into(">q", raw, 35, max_timestamp)
    return sealed(raw)


def sealed(raw: bytearray) -> bytes:
    """The batch with the checksum that its content asks for."""
    struct.pack_into(">I", raw, 17, crc32c(bytes(raw[21:])))
    return bytes(raw)


def with_body(raw: bytes, body: bytes, *, count: int | None = None) -> bytes:
    """The batch with another body, and the length and checksum that it asks for."""
    changed = bytearray(raw[:61]) + body
    struct.pack_into(">i", changed, 8, len(changed) - 12)
    if count is not None:
        struct.pack_into(">i", changed, 57, count)
    return sealed(changed)


def assembler(**changed: Any) -> BatchAssembler:
    """An assembler of a whole partition, for a topic with the limits that Kafka sets by default."""
    sizes = [
        changed.pop(name, usual)
        for name, usual in (
            ("passthrough_min_bytes", 16_384),
            ("batch_max_bytes", 1 << 19),
            ("target_max_message_bytes", 1_048_588),
        )
    ]
    return BatchAssembler(
        where=Where(topic="orders", partition=3),
        offsets=range(changed.pop("start", 0), changed.pop("end", 1 << 40)),
        sizes=BatchSizes(*sizes),
        **({"read_committed": False} | changed),
    )


def fed(
    subject: BatchAssembler, *fetches: bytes | bytearray, aborted: Sequence[tuple[int, int]] = ()
) -> list[ReadyBatch]:
    """Feed all fetches, then flush."""
    out = [ready for data in fetches for ready in subject.feed(memoryview(data), aborted)]
    held = subject.flush()
    return [*out, held] if held is not None else out


def content(made: ReadyBatch) -> tuple[object, ...]:
    """All of a batch that is ready, to compare it with another."""
    return (
        bytes(made.payload),
        made.count,
        made.source_runs,
        made.source_next,
        made.first_timestamp,
        made.max_timestamp,
    )


def marker(offset: int, producer_id: int, *, abort: bool) -> bytes:
    """A transaction marker as a broker writes it: key (version 0, type 0 abort or 1 commit)."""
    key = struct.pack(">hh", 0, 0 if abort else 1)
    value = struct.pack(">hi", 0, 0)
    return batch(
        [SourceRecord(offset, key=key, value=value)], attributes=TRANSACTIONAL | CONTROL, producer_id=producer_id
    )


def message_set(records: Sequence[SourceRecord], *, magic: int, codec: int = 0) -> bytes:
    """Old messages: one after the other, or inside one compressed message with the last one's offset."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    first = records[0].offset
    for record in records:
        # Inner offsets are relative in compressed messages of magic 1 only.
        offset = record.offset - first if codec and magic == 1 else record.offset
        builder.append(offset, record.timestamp, record.key, record.value)
    raw = bytearray(builder.build())
    if codec:
        struct.pack_into(">q", raw, 0, records[-1].offset)
    return bytes(raw)


def read_with_aiokafka(payload: bytes | bytearray) -> Iterator[tuple[int, int, bytes | None, bytes | None, Headers]]:
    """(offset, timestamp, key, value, headers) of a batch."""
    reader = AiokafkaReader(bytes(payload))
    assert reader.validate_crc()
    for record in reader:
        yield record.offset, record.timestamp, record.key, record.value, tuple(record.headers)


def read_with_kafka_python(
    payload: bytes | bytearray,
) -> Iterator[tuple[int, int, bytes | None, bytes | None, Headers]]:
    """(offset, timestamp, key, value, headers) of a batch."""
    reader = KafkaPythonReader(bytes(payload))
    assert reader.validate_crc()
    for record in reader:
        yield record.offset, record.timestamp, record.key, record.value, tuple(record.headers)


def ready(*source: SourceRecord, producer_id: int = -1, epoch: int = -1, sequence: int = -1) -> bytearray:
    """A batch that can be produced."""
    (made,) = assembler(start=source[0].offset, passthrough_min_bytes=0).feed(batch(source))
    stamp(made, producer_id, epoch, sequence)
    return made.payload
