"""Gathers small batches: a produce request may contain only one batch per partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mirror_lib.errors import CorruptBatchError, Where
from mirror_lib.records.builder import BatchBuilder, largest_encoding
from mirror_lib.records.compression.codecs import CodecError, decompress_up_to
from mirror_lib.records.header import CODEC_BITS, HEADER_SIZE, BatchHeader, Codec
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record, RecordError
from mirror_lib.records.rules import AllowedTimes

#: Called for a small batch that turns out damaged when others join it; raises if that stops the partition.
OnDamage = Callable[[BatchHeader, bytes, CorruptBatchError], None]


class Gathering:
    """Waiting data of one partition: one small batch unchanged, or gathered records."""

    def __init__(
        self, batch_max_bytes: int, target_max_message_bytes: int, *, on_damage: OnDamage, dense: bool = False
    ) -> None:
        """Start empty.

        Args:
            batch_max_bytes: uncompressed size at which a gathered batch is full.
            target_max_message_bytes: the target topic's `max.message.bytes`.
            dense: gather no records with a hole between their source offsets.
        """
        self._dense = dense
        self._target_max = target_max_message_bytes
        self._on_damage = on_damage
        self._builder: BatchBuilder | None = None
        #: A single small batch: it needs no rebuilding unless another one joins it.
        self._alone: tuple[BatchHeader, bytes] | None = None
        self.fill_up_to(batch_max_bytes)

    def fill_up_to(self, batch_max_bytes: int) -> None:
        """Set the maximum size of batches from now on, within the target's limit."""
        #: Uncompressed bytes that a gathered batch may hold.
        self._limit = min(batch_max_bytes, self._target_max) - HEADER_SIZE

    @property
    def waits(self) -> bool:
        """True if data is waiting."""
        return self._alone is not None or self._builder is not None

    @property
    def held_bytes(self) -> int:
        """Bytes that are waiting."""
        if self._alone is not None:
            return len(self._alone[1])
        return self._builder.size if self._builder is not None else 0

    @property
    def records(self) -> BatchBuilder | None:
        """The builder of gathered records; None without any."""
        return self._builder

    def add(self, header: BatchHeader, batch: memoryview, out: list[ReadyBatch]) -> None:
        """Add a small whole batch to others of the same codec; batches that it cannot join go to `out`.

        Raises:
            RecordError, CodecError: the batch is damaged.
        """
        codec = header.attributes & CODEC_BITS
        if self._dense and not self._joins(header.base_offset):
            self.close(out)
        if self._alone is not None and self._alone[0].attributes & CODEC_BITS == codec:
            self._open_alone(codec)
        builder = self._builder
        if builder is not None and builder.codec == codec:
            room = self._limit - builder.size
            body = decompress_up_to(codec, batch[HEADER_SIZE:], max(room, 0))
            if body is not None and largest_encoding(len(body), header.count) <= room:
                builder.add_whole(header, body)
                return
        self.close(out)
        self._alone = (header, bytes(batch))

    def _joins(self, offset: int) -> bool:
        if self._alone is not None:
            return self._alone[0].base_offset + self._alone[0].count == offset
        return self._builder is None or self._builder.joins(offset)

    def add_singles(
        self, view: memoryview, position: int, *, expected: int, end: int, below: int, allowed: AllowedTimes
    ) -> int:
        """Add the following uncompressed batches of one record; return the position after them.

        Args:
            expected: the source offset of the first.
            end: the source offset to stop at.
            below: the size in bytes that a batch must be below.
        """
        builder = self._builder
        if builder is None or builder.codec != Codec.NONE or builder.source_next != expected:
            return position
        if self._dense and not self._joins(expected):
            return position
        return builder.add_singles(view, position, end=end, limit=self._limit, below=below, allowed=allowed)

    def add_records(self, records: Sequence[Record], codec: int, out: list[ReadyBatch]) -> bool:
        """Add records to the waiting ones; return False if there are too many of them, or none.

        Records that they cannot join go to `out`.
        """
        size = largest_encoding(sum(len(record.tail) for record in records), len(records))
        builder = self._builder
        full = builder is not None and (builder.codec != codec or builder.size + size > self._limit)
        too_large = size > self._limit or not records
        if self._dense and not too_large:
            too_large = records[-1].offset - records[0].offset >= len(records)
            full = full or not self._joins(records[0].offset)
        if self._alone is not None or full or too_large:
            self.close(out)
        if too_large:
            return False
        if self._builder is None:
            self._builder = BatchBuilder(codec)
        for record in records:
            self._builder.add(record)
        return True

    def close(self, out: list[ReadyBatch]) -> None:
        """Deliver the waiting data."""
        alone, builder = self._alone, self._builder
        self._alone = self._builder = None
        if alone is not None:
            out.append(passed_on(alone[1], alone[0]))
        elif builder is not None:
            out.append(builder.build(self._target_max))

    def discard(self) -> None:
        """Discard the waiting data."""
        self._alone = self._builder = None

    def _open_alone(self, codec: int) -> None:
        """Start gathering with the waiting small batch, unless it is too large when uncompressed."""
        assert self._alone is not None
        header, batch = self._alone
        builder = BatchBuilder(codec)
        try:
            body = decompress_up_to(codec, batch[HEADER_SIZE:], max(self._limit, 0))
            if body is None or largest_encoding(len(body), header.count) > self._limit:
                return
            self._alone = None
            builder.add_whole(header, body)
        except (RecordError, CodecError) as cause:
            self._alone = None
            damaged = CorruptBatchError(
                f"the source's batch is damaged: {cause}.", where=Where(offset=header.base_offset)
            )
            damaged.__cause__ = cause
            self._on_damage(header, batch, damaged)
            return
        self._builder = builder


def passed_on(batch: bytes | memoryview, header: BatchHeader) -> ReadyBatch:
    """A whole batch, unchanged."""
    # In place if the buffer is writable: a page of fresh memory costs more than the copy into it.
    payload = batch if isinstance(batch, memoryview) and not batch.readonly else bytearray(batch)
    return ReadyBatch(
        payload,
        header.count,
        ((header.base_offset, header.count),),
        header.base_offset + header.count,
        header.first_timestamp,
        header.max_timestamp,
    )
