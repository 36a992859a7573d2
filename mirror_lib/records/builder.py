"""Builds new dense batches from records: of many small batches, of batches with holes, of old or too large ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from crc32c import crc32c

from mirror_lib.errors import RecordTooLargeError, Where
from mirror_lib.records.compression.codecs import compress
from mirror_lib.records.header import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Codec,
    new_batch,
)
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import ATTRIBUTES_AND_SMALL, Record, encode_head, reframe
from mirror_lib.records.rules import AllowedTimes
from mirror_lib.records.varint import SMALL, encode_varint

#: Maximum growth of length, attributes, timestamp delta and offset delta of a record beyond the source's own.
_GROWTH_PER_RECORD = 24
#: Minimum bytes after the length field of a batch with one record: length, attributes, two deltas, and at least one
#: more. A single record grows by less than the header that it loses.
_SMALLEST_SINGLE = HEADER_SIZE - LOG_OVERHEAD + 5
#: The parts of a larger body are not joined before they are compressed: they may be views of another body.
_JOINED = 16 * 1024 * 1024
_ONE_BYTE = 0x80
_BITS = 0x7F
_TWO_BYTES_BITS = 0x3FFF
_TooLarge = Callable[[Record, RecordTooLargeError], None]


def largest_encoding(size: int, records: int) -> int:
    """Upper bound of the size of encoded records (or their tails) of this size in another batch."""
    return size + _GROWTH_PER_RECORD * records


def _tail_of_single(body: bytes) -> int:
    """Start of the tail of a batch's only record; 0 if it is not plain: deltas not 0, or another length."""
    at, length = 1, body[0]
    if length >= _ONE_BYTE:
        at, length = 2, (length & _BITS) | (body[1] << 7)
        if body[1] >= _ONE_BYTE:
            at, length = 3, (length & _TWO_BYTES_BITS) | (body[2] << 14)
    if length != (len(body) - at) << 1 or body[at + 1] or body[at + 2]:
        return 0
    return at + 3


class BatchBuilder:
    """Gathers records, in offset order, into one batch of one codec."""

    def __init__(self, codec: int) -> None:
        self.codec = codec
        #: Upper bound of the body's uncompressed bytes.
        self.size = 0
        self.count = 0
        #: Source offset to continue from: after the last record, or after skipped ones behind it.
        self.source_next = 0
        #: The source's leader epoch of the latest batch that `add_singles` added.
        self.leader_epoch = -1
        self._parts: list[bytes | memoryview] = []
        self._runs: list[tuple[int, int]] = []
        self._first_timestamp = 0
        self._max_timestamp = -1

    def joins(self, offset: int) -> bool:
        """True if a record of this source offset leaves no hole behind the latest one."""
        return not self._runs or sum(self._runs[-1]) == offset

    def add_whole(self, header: BatchHeader, body: bytes | memoryview) -> None:
        """Add a dense source batch with all its records, given its uncompressed body.

        Raises:
            RecordError: its body does not match the header; nothing was added.
        """
        if not self.count:
            self._first_timestamp = header.first_timestamp
        shift = header.first_timestamp - self._first_timestamp
        reframe(body, self._parts, count=header.count, offset_delta=self.count, timestamp_shift=shift)
        self._note(header.base_offset, header.count, header.max_timestamp)
        self.size += largest_encoding(len(body), header.count)

    def add_singles(
        self,
        view: memoryview,
        position: int,
        *,
        end: int,
        limit: int,
        below: int,
        allowed: AllowedTimes,
    ) -> int:
        """Add consecutive source batches of one plain record each, from `position` on.

        Producers without linger write such batches, by the hundred thousand. This does what `add_whole` does with them,
        in one loop; it stops before the first batch of another kind, or a damaged one.

        Args:
            view: consecutive batches, as fetched.
            end: source offset to stop before.
            limit: maximum value of `size`.
            below: a batch must be smaller than this number of bytes to be gathered.
            allowed: the timestamps that the target accepts now.

        Returns:
            The position after the last added batch.
        """
        size, expected, first_timestamp = len(view), self.source_next, self._first_timestamp
        delta, grown_size, latest = self.count, self.size, self._max_timestamp
        add, unpack, small, stamped = self._parts.append, HEADER.unpack_from, SMALL, ATTRIBUTES_AND_SMALL
        known, epoch = len(small), self.leader_epoch
        # No record is older than the first one, so one comparison checks both the encoding and the allowed timestamps.
        shifts = min(known, allowed.latest - first_timestamp + 1) if first_timestamp >= allowed.earliest else 0
        while size - position >= HEADER_SIZE and expected < end and delta < known:
            base, length, leader, magic, crc, attributes, last_delta, timestamp, _, _, _, _, count = unpack(
                view, position
            )
            stop = position + LOG_OVERHEAD + length
            if (
                base != expected
                or attributes
                or last_delta
                or count != 1
                or magic != MAGIC
                or length < _SMALLEST_SINGLE
                or stop > size
                or stop - position >= below
            ):
                break
            grown_size += length
            if grown_size > limit or crc32c(view[position + ATTRIBUTES_AT : stop]) != crc:
                grown_size -= length
                break
            body = bytes(view[position + HEADER_SIZE : stop])
            shift = timestamp - first_timestamp
            start = _tail_of_single(body)
            if not start or not 0 <= shift < shifts:
                grown_size -= length
                break
            times, offsets = stamped[shift], small[delta]
            length = len(times) + len(offsets) + len(body) - start
            add(small[length] if length < known else encode_varint(length))
            add(times)
            add(offsets)
            add(body[start:])
            if timestamp > latest:
                latest = timestamp
            delta += 1
            expected += 1
            position = stop
            epoch = leader
        if delta > self.count:
            (first, before), added = self._runs[-1], delta - self.count
            if first + before == self.source_next:
                self._runs[-1] = (first, before + added)
            else:
                self._runs.append((self.source_next, added))
            self.count, self.size, self._max_timestamp, self.source_next = delta, grown_size, latest, expected
            self.leader_epoch = epoch
        return position

    def add(self, record: Record) -> None:
        """Add one record."""
        if not self.count:
            self._first_timestamp = record.timestamp
        delta = record.timestamp - self._first_timestamp
        before, tail = encode_head(record, offset_delta=self.count, timestamp_delta=delta), record.tail
        self._parts.append(before)
        self._parts.append(tail)
        self._note(record.offset, 1, record.timestamp)
        self.size += len(before) + len(tail)

    def _note(self, offset: int, count: int, max_timestamp: int) -> None:
        runs = self._runs
        if runs and (last := runs[-1])[0] + last[1] == offset:
            runs[-1] = (last[0], last[1] + count)
        else:
            runs.append((offset, count))
        self.count += count
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
        self.source_next = offset + count

    def build(self, max_message_bytes: int) -> ReadyBatch:
        """Build the batch. It fits if its uncompressed body fits: a body that compression enlarges stays uncompressed.

        Raises:
            RecordTooLargeError: one record is too large alone; `Where` has only its offset.
        """
        parts = [b"".join(self._parts)] if self.size <= _JOINED else self._parts
        size = sum(map(len, parts))
        codec, compressed = self.codec, compress(self.codec, *parts) if self.codec else None
        if compressed is not None and size < len(compressed) > max_message_bytes - HEADER_SIZE:
            codec, compressed = Codec.NONE, None
        taken = HEADER_SIZE + (size if compressed is None else len(compressed))
        if taken > max_message_bytes:
            raise RecordTooLargeError(
                f"the record takes {taken} bytes, but the target accepts at most {max_message_bytes}.",
                where=Where(offset=self._runs[0][0]),
                action="Raise max.message.bytes of the target topic, or message.max.bytes of its brokers; and "
                "max.request.size of the data producer if it is lower.",
            )
        return ReadyBatch(
            new_batch(
                b"".join(parts) if compressed is None else compressed,
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
    records: Iterable[Record],
    *,
    codec: int,
    batch_max_bytes: int,
    max_message_bytes: int,
    too_large: _TooLarge | None = None,
    dense: bool = False,
) -> Iterator[ReadyBatch]:
    """Pack records into as few batches as possible.

    Args:
        dense: a new batch starts at a hole between source offsets.
        batch_max_bytes: uncompressed size at which a new batch starts.
        max_message_bytes: maximum size of a batch as sent that the target accepts.
        too_large: called for records that are too large alone, which are then skipped.

    Raises:
        RecordTooLargeError: while iterating, at a record that is too large alone, without `too_large`.
        RecordError: while iterating, from `records`.
    """
    limit = min(batch_max_bytes, max_message_bytes) - HEADER_SIZE
    builder, first = BatchBuilder(codec), None
    for record in records:
        is_full = builder.size + largest_encoding(len(record.tail), 1) > limit
        if first is not None and (is_full or (dense and not builder.joins(record.offset))):
            yield from _build(builder, first, max_message_bytes, too_large)
            builder, first = BatchBuilder(codec), None
        builder.add(record)
        first = first or record
    if first is not None:
        yield from _build(builder, first, max_message_bytes, too_large)


def _build(
    builder: BatchBuilder, first: Record, max_message_bytes: int, too_large: _TooLarge | None
) -> Iterator[ReadyBatch]:
    try:
        batch = builder.build(max_message_bytes)
    except RecordTooLargeError as error:
        if too_large is None:
            raise
        # It has a single record: several records are within the limit when uncompressed.
        too_large(first, error)
    else:
        yield batch
