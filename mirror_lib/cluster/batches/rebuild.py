"""Makes new dense batches from records: of many small batches, of batches with holes, of old or too large ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mirror_lib.cluster.batches.codecs import compress
from mirror_lib.cluster.batches.header import HEADER_SIZE, BatchHeader, Codec, new_batch
from mirror_lib.cluster.batches.ready import ReadyBatch
from mirror_lib.cluster.batches.records import Record, encode_record, reframe
from mirror_lib.errors import RecordTooLargeError, Where

#: What length, attributes, timestamp delta and offset delta of a record may take at most beyond the source's own.
_GROWTH_PER_RECORD = 24


class BatchBuilder:
    """Gathers records, in the order of their offsets, into one batch of one codec."""

    def __init__(self, codec: int) -> None:
        self.codec = codec
        #: Upper bound of the body's uncompressed bytes.
        self.size = 0
        self.count = 0
        #: Source offset to go on from.
        self.source_next = 0
        self._parts: list[bytes] = []
        self._runs: list[tuple[int, int]] = []
        self._first_timestamp = 0
        self._max_timestamp = -1

    def add_whole(self, header: BatchHeader, body: bytes) -> None:
        """Add a dense source batch with all its records, given its uncompressed body.

        Raises:
            RecordError: its body is not what the header says; nothing was added.
        """
        if not self.count:
            self._first_timestamp = header.first_timestamp
        shift = header.first_timestamp - self._first_timestamp
        reframe(body, self._parts, count=header.count, offset_delta=self.count, timestamp_shift=shift)
        self._note(header.base_offset, header.count, header.max_timestamp)
        self.size += len(body) + _GROWTH_PER_RECORD * header.count

    def add(self, record: Record) -> None:
        """Add one record."""
        if not self.count:
            self._first_timestamp = record.timestamp
        delta = record.timestamp - self._first_timestamp
        encoded = encode_record(record, offset_delta=self.count, timestamp_delta=delta)
        self._parts.append(encoded)
        self._note(record.offset, 1, record.timestamp)
        self.size += len(encoded)

    def _note(self, offset: int, count: int, max_timestamp: int) -> None:
        if offset == self.source_next and self._runs:
            first, before = self._runs[-1]
            self._runs[-1] = (first, before + count)
        else:
            self._runs.append((offset, count))
        self.count += count
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
        self.source_next = offset + count

    def build(self, max_message_bytes: int) -> ReadyBatch:
        """The batch. It fits where its uncompressed body does, since what compression enlarges goes uncompressed.

        Raises:
            RecordTooLargeError: one record is too large alone; `Where` holds its offset only.
        """
        body = b"".join(self._parts)
        codec, compressed = self.codec, compress(self.codec, body)
        if HEADER_SIZE + len(compressed) > max_message_bytes and len(body) < len(compressed):
            codec, compressed = Codec.NONE, body
        if HEADER_SIZE + len(compressed) > max_message_bytes:
            raise RecordTooLargeError(
                f"the record takes {HEADER_SIZE + len(compressed)} bytes, the target accepts {max_message_bytes}.",
                where=Where(offset=self._runs[0][0]),
                action="Raise max.message.bytes of the target topic, or message.max.bytes of its brokers.",
            )
        return ReadyBatch(
            new_batch(
                compressed,
                codec=codec,
                count=self.count,
                first_timestamp=self._first_timestamp,
                max_timestamp=self._max_timestamp,
            ),
            self.count,
            tuple(self._runs),
            self.source_next,
            self._first_timestamp,
            self._max_timestamp,
        )


def rebuild(
    records: Iterable[Record], *, codec: int, source_next: int, batch_max_bytes: int, max_message_bytes: int
) -> Iterator[ReadyBatch]:
    """Pack records into as few batches as the limits allow; the last one covers the source up to `source_next`.

    Args:
        batch_max_bytes: where to begin a new batch, in uncompressed bytes.
        max_message_bytes: what the target accepts as one batch, as it is sent.

    Raises:
        RecordTooLargeError: while iterating, at a record that is too large alone.
        RecordError: while iterating, from `records`.
    """
    limit = min(batch_max_bytes, max_message_bytes) - HEADER_SIZE
    builder = BatchBuilder(codec)
    for record in records:
        if builder.count and builder.size + len(record.tail) + _GROWTH_PER_RECORD > limit:
            yield builder.build(max_message_bytes)
            builder = BatchBuilder(codec)
        builder.add(record)
    if builder.count:
        builder.source_next = source_next
        yield builder.build(max_message_bytes)
