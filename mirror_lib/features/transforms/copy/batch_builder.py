"""One source partition in the writing half: from rows to batches, skipping what an interrupted run has written.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.copy.transfer.assembler_protocol import Assembler
from mirror_lib.errors import MirrorError, RecordTooLargeError
from mirror_lib.features.transforms.arrow.write import ArrowBatchBuilder
from mirror_lib.features.transforms.rows.columns import RowColumns
from mirror_lib.planning.model import PartitionPlan
from mirror_lib.records.header import Codec
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.skipped import SkippedRecords, Unit


class OutgoingBatches(Assembler):
    """Makes batches of the rows of one source partition; the other half reads.

    Rows that are too large for the target are either an error, or removed before any other step uses them.
    """

    def __init__(self, plan: PartitionPlan, settings: CopySettings, *, start: int, skip: bool) -> None:
        self._largest = plan.target_max_message_bytes
        self._batch_bytes = settings.batch_max_bytes
        self._skip = skip
        self._builder: ArrowBatchBuilder | None = None
        self._codec = Codec.NONE
        self.next_offset = start
        self.leader_epoch = -1

    def take(self, rows: RowColumns, codec: Codec) -> Iterator[ReadyBatch]:
        """Take rows, and return the batches that they fill.

        Raises:
            RecordTooLargeError: a single row is too large.
            MirrorError: a row cannot become a record.
        """
        if self._builder is not None and codec != self._codec:
            yield from self.end(int(rows.offsets[0]))
        if self._builder is None:
            self._codec = codec
            self._builder = self._new_builder(codec)
        yield from _feed(self._builder, rows)

    def end(self, source_next: int) -> Iterator[ReadyBatch]:
        """Return the incomplete batch; later rows are at `source_next` or after it."""
        builder, self._builder = self._builder, None
        if builder is not None:
            yield from builder.flush(source_next)

    def without_too_large(self, rows: RowColumns, codec: Codec) -> tuple[list[RowColumns], list[SkippedRecords]]:
        """The rows that the target accepts, and the other ones as skipped ranges by the flow's policy.

        The result for the same rows is always the same.
        """
        if not self._skip:
            return [rows], []
        suspects = np.flatnonzero(rows.sizes() + _OVERHEAD > self._largest).tolist()
        found: list[SkippedRecords] = []
        parts: list[RowColumns] = []
        first = 0
        for row in suspects:
            error = self._refusal(rows.part(row, row + 1), codec)
            if error is not None:
                parts.append(rows.part(first, row))
                found.append(_skipped_row(rows, row, error))
                first = row + 1
        parts.append(rows.part(first, len(rows)))
        return [part for part in parts if len(part)], found

    def discard(self) -> None:
        """Drop the incomplete batch."""
        self._builder = None

    def gather_up_to(self, size: int) -> None:
        """Make batches of about this size from the next on: the target has high latency."""
        self._batch_bytes = max(size, self._batch_bytes)

    def _new_builder(self, codec: Codec) -> ArrowBatchBuilder:
        return ArrowBatchBuilder(codec, batch_max_bytes=self._batch_bytes, max_message_bytes=self._largest)

    def _refusal(self, row: RowColumns, codec: Codec) -> MirrorError | None:
        builder = self._new_builder(codec)
        try:
            for _ in (*_feed(builder, row), *builder.flush()):
                pass
        except RecordTooLargeError as error:
            return error
        return None


#: Maximum bytes of a batch and a record in addition to key, value and headers.
_OVERHEAD = 61 + 25


def _feed(builder: ArrowBatchBuilder, rows: RowColumns) -> Iterator[ReadyBatch]:
    offsets = np.ascontiguousarray(rows.offsets)
    return builder.feed(
        keys=rows.keys,
        values=rows.values,
        headers=rows.headers,
        timestamps=rows.timestamps,
        source_offsets=pa.Array.from_buffers(pa.int64(), len(offsets), [None, pa.py_buffer(offsets)]),
    )


def _skipped_row(rows: RowColumns, row: int, error: MirrorError) -> SkippedRecords:
    offset = int(rows.offsets[row])
    return SkippedRecords(offset, offset + 1, 1, error, rows.encoded_record(row), Unit.RECORD, Codec.NONE)
