"""From the fetches of a source partition to parts of rows: replaces `BatchAssembler` if records are transformed.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from mirror_lib.errors import CorruptBatchError, MirrorError, OversizedBatchError
from mirror_lib.features.transforms.arrow.decode_limits import DecodeLimits
from mirror_lib.features.transforms.arrow.read import ArrowPart, read_arrow
from mirror_lib.features.transforms.arrow.rows import InexactRowError
from mirror_lib.features.transforms.copy.model import FailedRecord, first_stop
from mirror_lib.records.damage import measure_damage
from mirror_lib.records.header import ATTRIBUTES_AT, CODEC_BITS, LOG_OVERHEAD, MAGIC, MAGIC_AT, Codec
from mirror_lib.records.records import Record
from mirror_lib.records.skipped import SkippedRecords, skipped_damage, skipped_record
from mirror_lib.records.spans import read_spans

_LEADER_EPOCH_AT = LOG_OVERHEAD
_UNKNOWN_EPOCH = -1


@dataclass(slots=True, eq=False)
class RowPart:
    """Some rows of a partition in the order of their offsets; there may be none if there are no visible records."""

    records: pa.RecordBatch
    source_next: int
    #: Bytes in memory.
    size: int
    #: Codec of these records, or of most of them, on the source.
    codec: Codec


@dataclass(frozen=True, slots=True)
class _Fed:
    """A fetch, the codec of its first batch, and its remaining rows."""

    data: memoryview
    codec: Codec
    parts: Iterator[ArrowPart]


class RowAssembler:
    """Turns [start, end) of one source partition into rows, fetch by fetch; it implements the protocol `Assembler`.

    The content of the source raises no error here: unreadable records are in `failure`, or skipped.
    """

    def __init__(
        self,
        *,
        topic: str,
        partition: int,
        start: int,
        end: int,
        read_committed: bool,
        skip: bool,
        limits: DecodeLimits,
        failed: Sequence[FailedRecord] = (),
    ) -> None:
        """Start at source offset `start`.

        Args:
            skip: whether unreadable records are skipped, instead of being a failure.
            limits: memory limits while rows are made.
            failed: records for which a transform fails, ascending: skipped as well, or the failure before them.
        """
        self._topic = topic
        self._partition = partition
        self._end = end
        self._read_committed = read_committed
        self._skip = skip
        self._limits = limits
        #: The rest of the last fed fetch; None if there is none.
        self._fed: _Fed | None = None
        self._failed = {each.offset: each.error for each in failed if each.offset >= start}
        self._stop = first_stop(failed, skip=skip, start=start, end=end)
        self._skipped: list[SkippedRecords] = []
        self.leader_epoch = _UNKNOWN_EPOCH
        self.next_offset = start
        self.failure: MirrorError | None = None
        self.held_bytes = 0
        self._check_stop()

    @property
    def is_finished(self) -> bool:
        """True if everything before the end was fed."""
        return self.next_offset >= self._end

    def feed(self, data: bytes | bytearray | memoryview, aborted: Sequence[tuple[int, int]] = ()) -> list[RowPart]:
        """Take one fetch response, and return the first part of its rows; `more` returns the others."""
        self._fed = None
        if self.failure is not None:
            return []
        view = memoryview(data)
        parts = read_arrow(
            view,
            aborted,
            topic=self._topic,
            partition=self._partition,
            start=self.next_offset,
            end=min(self._end, self._stop),
            read_committed=self._read_committed,
            limits=self._limits,
        )
        self._fed = _Fed(view, _first_codec(view), parts)
        return self.more()

    @property
    def has_more(self) -> bool:
        """True if the fetch may have more rows: it is decompressed only as far as requested."""
        return self._fed is not None

    def more(self) -> list[RowPart]:
        """Return the next part of the fed rows."""
        fed = self._fed
        if fed is None:
            return []
        part: RowPart | None = None
        try:
            found = next(fed.parts, None)
            if found is not None:
                part = self._part(found.records, found.next_offset, fed.data, fed.codec)
                self.next_offset = found.next_offset
                self.leader_epoch = _last_epoch(fed.data, self.next_offset)
        except (CorruptBatchError, OversizedBatchError, InexactRowError) as error:
            self._pass_over(error, fed.data)
        if part is None or self.is_finished or self.next_offset >= self._stop:
            self._fed = None
        self._check_stop()
        return [] if part is None else [part]

    def transactions(self, copied_to: int) -> None:
        """Not counted: the rows that transforms drop are known to the writing half only."""

    def take_skipped(self) -> list[SkippedRecords]:
        """Return the ranges skipped since the last call, in order."""
        taken, self._skipped = sorted(self._skipped, key=lambda each: each.first_offset), []
        return taken

    def flush(self) -> None:
        """Not used: no row ever waits here."""

    def discard(self) -> None:
        """Drop the rest of a fetch."""
        self._fed = None

    def skip_to_end(self) -> None:
        """Declare that the source has no more records before the end."""
        if self.next_offset < self._end:
            self.next_offset, self.leader_epoch = self._end, _UNKNOWN_EPOCH

    def gather_up_to(self, size: int) -> None:
        """Not used: rows have the size that suits Spark."""

    def _part(self, records: pa.RecordBatch, next_offset: int, data: memoryview, codec: Codec) -> RowPart:
        # Before rows are removed: the skipped records may be all there are.
        failed = [offset for offset in self._failed if self.next_offset <= offset < next_offset]
        if failed:
            records = self._without(records, failed, data)
        return RowPart(records, next_offset, records.nbytes, codec)

    def _without(self, records: pa.RecordBatch, failed: Sequence[int], data: memoryview) -> pa.RecordBatch:
        offsets = records.column("offset").to_numpy(zero_copy_only=False)
        kept = np.flatnonzero(~np.isin(offsets, failed))
        for offset in failed:
            record = self._record(offset, data)
            if record is not None:
                self._skipped.append(skipped_record(record, self._failed[offset]))
        return records.take(pa.array(kept, pa.int64()))

    def _record(self, offset: int, data: memoryview) -> Record | None:
        """The record on the source; None if it no longer exists."""
        holding, position = None, 0
        while holding is None and position < len(data):
            spans, size = read_spans(data[position:], (), read_committed=False)
            holding = next((each for each in spans if each.first <= offset < each.next_offset), None)
            if not spans:
                break
            position += size
        found = () if holding is None or holding.is_hidden else holding.records()
        return next((each for each in found if each.offset == offset), None)

    def _check_stop(self) -> None:
        if self.failure is None and self._stop < self._end and self.next_offset >= self._stop:
            self.failure = self._failed[self._stop]

    def _pass_over(self, error: MirrorError, data: memoryview) -> None:
        """Skip an unreadable record or batch, if that is configured and possible."""
        if self._skip and isinstance(error, InexactRowError) and error.where.offset is not None:
            offset = error.where.offset
            record = self._record(offset, data)
            if record is not None:
                self._skipped.append(skipped_record(record, error))
                self.next_offset = offset + 1
                return
        elif self._skip and isinstance(error, CorruptBatchError):
            damage = measure_damage(data, expected=self.next_offset)
            if damage is not None:
                skipped = skipped_damage(data, damage, first=self.next_offset, end=self._end, error=error)
                self._skipped.append(skipped)
                self.next_offset, self.leader_epoch = skipped.next_offset, _UNKNOWN_EPOCH
                return
        error.where = replace(error.where, topic=self._topic, partition=self._partition)
        self.failure = error


def _first_codec(data: memoryview) -> Codec:
    if len(data) <= ATTRIBUTES_AT + 1 or data[MAGIC_AT] < MAGIC:
        return Codec.NONE
    bits = data[ATTRIBUTES_AT + 1] & CODEC_BITS
    return Codec(bits) if bits in set(Codec) else Codec.NONE


def _last_epoch(data: memoryview, end: int) -> int:
    """The source's leader epoch of the last whole batch that begins before `end`; -1 in old formats."""
    position, epoch = 0, _UNKNOWN_EPOCH
    while position + ATTRIBUTES_AT < len(data):
        following = position + LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big")
        if following > len(data) or int.from_bytes(data[position : position + 8], "big", signed=True) >= end:
            break
        if data[position + MAGIC_AT] >= MAGIC:
            at = position + _LEADER_EPOCH_AT
            epoch = int.from_bytes(data[at : at + 4], "big", signed=True)
        position = following
    return epoch
