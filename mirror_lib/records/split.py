"""Splits a ready batch in two, to find the record that a target rejects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mirror_lib.errors import MirrorError
from mirror_lib.records.builder import BatchBuilder
from mirror_lib.records.compression.codecs import CodecError, decompress
from mirror_lib.records.damage import known_codec
from mirror_lib.records.header import CODEC_BITS, HEADER_SIZE, parse_header
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record, RecordError, read_records
from mirror_lib.records.skipped import SkippedRecords, Unit, skipped_record

_NO_LIMIT = 1 << 31


def halves(batch: ReadyBatch) -> tuple[ReadyBatch, ReadyBatch] | None:
    """Two batches with the records of one, in order; None if its body cannot be read.

    Args:
        batch: one of at least two records.
    """
    try:
        records = _records(batch)
    except (RecordError, CodecError):
        return None
    middle = len(records) // 2
    codec = parse_header(batch.payload).attributes & CODEC_BITS
    first, second = _build(records[:middle], codec), _build(records[middle:], codec)
    second.source_next = batch.source_next
    return first, second


def readable(batch: ReadyBatch) -> bool:
    """True if the body matches the header; whole batches are passed on without decoding."""
    try:
        return len(_records(batch)) == batch.count
    except (RecordError, CodecError):
        return False


def skipped_batch(batch: ReadyBatch, error: MirrorError) -> SkippedRecords:
    """A ready batch that the target rejects: with a single record, or one that cannot be read."""
    if batch.count == 1:
        try:
            return skipped_record(_records(batch)[0], error)
        except (RecordError, CodecError):
            pass
    last_first, last_count = batch.source_runs[-1]
    return SkippedRecords(
        first_offset=batch.source_runs[0][0],
        next_offset=last_first + last_count,
        records=batch.count,
        error=error,
        raw=bytes(batch.payload),
        unit=Unit.BATCH,
        codec=known_codec(parse_header(batch.payload)),
        first_timestamp=batch.first_timestamp,
        last_timestamp=batch.max_timestamp,
    )


def _records(batch: ReadyBatch) -> list[Record]:
    """The records with their source offsets."""
    header = parse_header(batch.payload)
    found = read_records(
        decompress(header.attributes & CODEC_BITS, memoryview(batch.payload)[HEADER_SIZE:]),
        base_offset=0,
        base_timestamp=header.first_timestamp,
        count=header.count,
    )
    return [record._replace(offset=offset) for record, offset in zip(found, _offsets(batch), strict=True)]


def _offsets(batch: ReadyBatch) -> Iterator[int]:
    for first, count in batch.source_runs:
        yield from range(first, first + count)


def _build(records: Sequence[Record], codec: int) -> ReadyBatch:
    builder = BatchBuilder(codec)
    for record in records:
        builder.add(record)
    return builder.build(_NO_LIMIT)
