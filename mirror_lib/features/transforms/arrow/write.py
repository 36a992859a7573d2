"""Arrow rows as batches for the target, for writing Spark's DataFrames.

numpy columns determine how many rows fit into a batch, and a batch is encoded as a whole (see `arrow.records`): there
is no Python object per record.

The copy task must not load numpy and Arrow: no module that it imports may import this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from mirror_lib.errors import RecordTooLargeError, Where
from mirror_lib.features.transforms.arrow.record_blocks import Int64s
from mirror_lib.features.transforms.arrow.records import OutgoingRows, outgoing_rows
from mirror_lib.outside_limits import BATCH_BODY_BYTES, BATCH_RECORDS
from mirror_lib.records.compression.codecs import compress
from mirror_lib.records.header import HEADER_SIZE, Codec, new_batch
from mirror_lib.records.ready import ReadyBatch

#: Safety factor for the size of the next batch, which is derived from the compression ratio of the last one.
_SURELY = 0.95
#: `BatchBuilder` never has an earlier one: -1 means no timestamp.
_EARLIEST_MAX_TIMESTAMP = -1


class ArrowBatchBuilder:
    """Packs the rows for one partition of the target, in their order, into dense batches of one codec.

    Call `feed`, then `flush`; both are generators of finished batches. After an error, it cannot be used any more.

    Several rows may have the same source offset. Then each of them is a source run of its own, (offset, 1), and the
    runs of one batch, or of two consecutive ones, may overlap in source offsets. If possible, a batch ends between two
    source offsets. If the rows of one offset do not fit into one batch, it ends among them, and its `source_next` is
    that offset again: a reader that continues there finds rows that were already written.
    """

    def __init__(self, codec: Codec, *, batch_max_bytes: int, max_message_bytes: int) -> None:
        """Start without rows.

        Args:
            batch_max_bytes: maximum uncompressed size of a batch, except for a larger single record.
            max_message_bytes: the target's `max.message.bytes`: maximum size of a batch as sent.
        """
        self._codec = codec
        #: Body size that is always accepted: a body that compression enlarges is sent uncompressed.
        self._accepted = max_message_bytes - HEADER_SIZE
        # The project's own readers would not decode more.
        self._most = min(batch_max_bytes - HEADER_SIZE, BATCH_BODY_BYTES)
        if codec == Codec.NONE:
            self._most = min(self._most, self._accepted)
        self._limit = self._most
        self._rows: list[OutgoingRows] = []
        self._count = self._size = 0
        self._last_source_offset: int | None = None

    def feed(
        self,
        *,
        keys: pa.Array,
        values: pa.Array,
        headers: pa.Array,
        timestamps: pa.Array,
        source_offsets: pa.Array,
    ) -> Iterator[ReadyBatch]:
        """Take rows by columns, and yield the batches that they fill.

        Args:
            keys: binary or string; null is a null key.
            values: binary or string; null is a null value.
            headers: lists of (name, value) structs, with nullable values; a missing list is an empty one.
            timestamps: int64 in epoch milliseconds, or timestamps of any unit; units below milliseconds are truncated,
                as in Spark.
            source_offsets: int64, never descending: of the records that the rows come from.

        Raises:
            RecordTooLargeError: a row is too large for the target even alone; `Where` has only its source offset.
            InexactRowError: a row has no timestamp, or a header without a name; `Where` has only its source offset.
            ValueError: source offsets descend or are missing.
        """
        if not len(source_offsets):
            return
        rows = outgoing_rows(keys, values, headers, timestamps, source_offsets)
        self._check_order(rows.source_offsets)
        waiting = [rows]
        while waiting:
            rows = waiting.pop()
            taken = self._take(rows)
            if taken < len(rows):
                waiting.append(rows.part(taken, len(rows)))
                full, carried = self._cut_batches(int(rows.source_offsets[taken]))
                waiting += reversed(carried)
                yield from full

    def flush(self, source_next: int | None = None) -> Iterator[ReadyBatch]:
        """Yield the remaining rows as batches.

        Args:
            source_next: the source offset to continue from after all fed rows; by default the one after the last
                row's.

        Raises:
            RecordTooLargeError: as in `feed`.
        """
        if self._rows:
            waiting = self._take_rows()
            last = int(waiting[-1].source_offsets[-1])
            yield from self._ready(waiting, last + 1 if source_next is None else source_next)

    def _check_order(self, source_offsets: Int64s) -> None:
        before = self._last_source_offset
        descends = before is not None and source_offsets[0] < before
        if descends or (source_offsets[1:] < source_offsets[:-1]).any():
            raise ValueError("source offsets are in descending order")
        self._last_source_offset = int(source_offsets[-1])

    def _take(self, rows: OutgoingRows) -> int:
        """Buffer as many of the first rows as fit, at least one if the buffer is empty; return their number."""
        room = self._limit - self._size
        candidates = rows.part(0, max(rows.at_most(room), 0 if self._count else 1))
        first_timestamp = int(self._rows[0].times[0] if self._count else rows.times[0])
        ends = np.cumsum(candidates.sizes(self._count, first_timestamp))
        taken = min(int(np.searchsorted(ends, room, side="right")), BATCH_RECORDS - self._count)
        if not self._count:
            taken = max(taken, 1)
        if taken:
            self._rows.append(candidates.part(0, taken))
            self._count += taken
            self._size += int(ends[taken - 1])
        return taken

    def _cut_batches(self, following: int) -> tuple[Iterator[ReadyBatch], list[OutgoingRows]]:
        """The buffered rows as batches, and the last rows that share the following row's source offset, if not all do.

        Args:
            following: the source offset of the next row.
        """
        waiting = self._take_rows()
        before = int(np.searchsorted(_source_offsets(waiting), following))
        if not before:
            return self._ready(waiting, following), []
        ending, carried = _split(waiting, before)
        return self._ready(ending, int(ending[-1].source_offsets[-1]) + 1), carried

    def _take_rows(self) -> list[OutgoingRows]:
        waiting, self._rows = self._rows, []
        self._count = self._size = 0
        return waiting

    def _ready(self, parts: list[OutgoingRows], source_next: int) -> Iterator[ReadyBatch]:
        """The rows as one batch, or as several if compression does not make it small enough."""
        first_timestamp, count = int(parts[0].times[0]), 0
        bodies = []
        for part in parts:
            bodies.append(part.encode(count, first_timestamp))
            count += len(part)
        body = b"".join(bodies)
        codec, compressed = self._codec, compress(self._codec, body)
        # The compression of these rows shows how many of the next ones will fit.
        self._limit = min(self._most, max(self._accepted, int(_SURELY * self._accepted * len(body) / len(compressed))))
        if len(compressed) > self._accepted and len(body) < len(compressed):
            codec, compressed = Codec.NONE, body
        if len(compressed) > self._accepted:
            if count == 1:
                raise _too_large(len(compressed), self._accepted, int(parts[0].source_offsets[0]))
            yield from self._ready_as_two(parts, source_next)
            return
        latest = max(_EARLIEST_MAX_TIMESTAMP, *(int(part.times.max()) for part in parts))
        yield ReadyBatch(
            new_batch(compressed, codec=codec, count=count, first_timestamp=first_timestamp, max_timestamp=latest),
            count,
            _source_runs(_source_offsets(parts)),
            source_next,
            first_timestamp,
            latest,
        )

    def _ready_as_two(self, parts: list[OutgoingRows], source_next: int) -> Iterator[ReadyBatch]:
        offsets = _source_offsets(parts)
        middle = len(offsets) // 2
        first, stop = (int(np.searchsorted(offsets, offsets[middle], side=side)) for side in ("left", "right"))
        # Between two source offsets, unless there is only one.
        at = first or (stop if stop < len(offsets) else middle)
        ending, rest = _split(parts, at)
        yield from self._ready(ending, min(int(offsets[at - 1]) + 1, int(offsets[at])))
        yield from self._ready(rest, source_next)


def _too_large(size: int, accepted: int, source_offset: int) -> RecordTooLargeError:
    return RecordTooLargeError(
        f"the record takes {HEADER_SIZE + size} bytes, but the target accepts at most {HEADER_SIZE + accepted}.",
        where=Where(offset=source_offset),
        action="Raise max.message.bytes of the target topic (`mirror configs apply` copies the source's), or "
        "message.max.bytes of its brokers; and max.request.size of the data producer if it is lower.",
    )


def _source_offsets(parts: Sequence[OutgoingRows]) -> Int64s:
    return np.concatenate([part.source_offsets for part in parts])


def _split(parts: Sequence[OutgoingRows], at: int) -> tuple[list[OutgoingRows], list[OutgoingRows]]:
    """The first `at` rows, and the others."""
    first: list[OutgoingRows] = []
    others: list[OutgoingRows] = []
    for part in parts:
        here = min(at, len(part))
        at -= here
        if here:
            first.append(part.part(0, here))
        if here < len(part):
            others.append(part.part(here, len(part)))
    return first, others


def _source_runs(offsets: Int64s) -> tuple[tuple[int, int], ...]:
    """(first source offset, records) of ascending offsets without holes; repeated offsets are separate."""
    steps = np.diff(offsets)
    if (steps == 1).all():
        return ((int(offsets[0]), len(offsets)),)
    again = np.zeros(len(offsets), dtype=np.bool_)
    again[1:] |= steps == 0
    again[:-1] |= steps == 0
    begins = np.ones(len(offsets), dtype=np.bool_)
    begins[1:] = (steps != 1) | again[1:] | again[:-1]
    firsts = np.flatnonzero(begins)
    counts = np.diff(np.append(firsts, len(offsets)))
    return tuple(zip(offsets[firsts].tolist(), counts.tolist(), strict=True))
