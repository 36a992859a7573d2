"""Converts fetched bytes to batches for the target: one `BatchAssembler` per source partition.

A source batch is passed on unchanged if possible: its header is rewritten, and nothing is decompressed. Small batches
are gathered, because a produce request may contain only one batch per partition. Batches that cannot be passed on
(holes by compaction, a range cut out of them, log-append times, old formats, larger than the target accepts) are
rebuilt. Control batches are dropped, and with `read_committed` the batches of aborted transactions.

Poison is a record that the target rejects, or a batch that cannot be read. It stops the partition, or is skipped while
the records around it are copied.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from mirror_lib.errors import (
    CorruptBatchError,
    MirrorError,
    OversizedBatchError,
    RecordRefusedError,
    RecordTooLargeError,
    Where,
)
from mirror_lib.records.aborted import AbortedTransactions, is_abort_marker
from mirror_lib.records.builder import rebuild
from mirror_lib.records.compression.codecs import decompress_once
from mirror_lib.records.damage import damage_under_checksum, measure_damage
from mirror_lib.records.gathering import Gathering, passed_on
from mirror_lib.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    HEADER_WITHOUT_PRODUCER,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
    BatchHeader,
)
from mirror_lib.records.legacy import codec as legacy_codec
from mirror_lib.records.legacy import last_offset as legacy_last_offset
from mirror_lib.records.legacy import read_legacy
from mirror_lib.records.poison import Poison
from mirror_lib.records.ready import ReadyBatch
from mirror_lib.records.records import Record, read_records
from mirror_lib.records.rules import ANY_RECORD, AllowedTimes, RecordRules, lacks_key
from mirror_lib.records.skipped import SkippedRecords
from mirror_lib.records.transactions import TransactionCount, TransactionCounter

__all__ = ["BatchAssembler", "BatchSizes", "ReadyBatch"]

#: The smallest entry of an old message set: offset, size, CRC, magic, attributes, two lengths.
_SMALLEST_LEGACY = LOG_OVERHEAD + 14
#: Minimum share of a fetch's bytes in passed-on batches for which the whole fetch is kept in memory.
_WORTH_KEEPING = 0.5
#: After a batch below this size, look for further batches of one record.
_PERHAPS_SINGLE = 4096
#: Records of more bytes or of a larger number are read twice instead of held; each takes about 200 bytes.
_HELD_BYTES = 4 * 1024 * 1024
_HELD_RECORDS = 1 << 16
_NEEDS_REBUILDING = LOG_APPEND_TIME_BIT | DELETE_HORIZON_BIT


def _clock() -> int:
    return int(time.time() * 1000)


class BatchSizes(NamedTuple):
    """Sizes of batches in bytes."""

    #: Batches of this size or more are passed on unchanged; smaller ones are gathered.
    passthrough_min: int
    #: Uncompressed size at which a gathered batch is full.
    gathered_max: int
    #: The target topic's `max.message.bytes`.
    message_max: int


class BatchAssembler:
    """Converts [start, end) of one source partition to ready batches, fetch by fetch.

    The only exception raised is `MemoryError`, which says nothing about the source: the error for data that cannot be
    read or sent is stored in `failure`, and the data before it is still delivered.
    """

    def __init__(
        self,
        *,
        where: Where,
        offsets: range,
        sizes: BatchSizes,
        read_committed: bool,
        rules: RecordRules = ANY_RECORD,
        skip: bool = False,
        transactions: TransactionCount | None = None,
        dense: bool = False,
        now_ms: Callable[[], int] = _clock,
    ) -> None:
        """Start at the first of the source offsets.

        Args:
            where: topic and partition of the source.
            read_committed: drop records of aborted transactions.
            rules: further requirements of the target topic for records.
            skip: skip poison, available from `take_skipped`, instead of failing.
            transactions: the count of records of transactions before these offsets; None without any.
            dense: no batch has a hole between the source offsets of its records.
            now_ms: the clock for bounds of timestamps, in epoch milliseconds.
        """
        self._end = end = offsets.stop
        self._passthrough_min, self._batch_max, self._target_max = sizes
        self._read_committed = read_committed
        self._counter = TransactionCounter(transactions, offsets.start)
        self._rules = rules
        self._poison = Poison(where, end, skip=skip)
        self._now_ms = now_ms
        self._times = AllowedTimes()
        self._dense = dense
        self._waiting = Gathering(self._batch_max, self._target_max, on_damage=self._damaged_in_waiting, dense=dense)
        #: The source's leader epoch of the latest fed batch; -1 before the first and in old formats.
        self.leader_epoch = -1
        #: The source offset to fetch next: after everything that was fed.
        self.next_offset = offsets.start

    @property
    def failure(self) -> MirrorError | None:
        """Why the partition cannot continue at `next_offset`; None without an error."""
        return self._poison.failure

    @property
    def is_finished(self) -> bool:
        """True if everything before `end` was fed."""
        return self.next_offset >= self._end

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for more small batches."""
        return self._waiting.held_bytes

    def feed(self, data: bytes | bytearray | memoryview, aborted: Sequence[tuple[int, int]] = ()) -> list[ReadyBatch]:
        """Process one fetch of the partition, and return the batches that became ready.

        Args:
            data: consecutive batches; an incomplete one at the end is left to the next fetch, and so is all after
                many skipped records, also the rest of their batch. If it is writable, it is modified: batches that are
                passed on become parts of it.
            aborted: (producer id, first offset) of the aborted transactions in it.
        """
        out: list[ReadyBatch] = []
        if self.failure is not None:
            return out
        if self._rules.has_time_bound:
            self._times = self._rules.allowed_times(self._now_ms())
        transactions = AbortedTransactions(aborted)
        view = memoryview(data)
        position, size = self._pass_on_full(view, 0, out), len(data)
        while self.next_offset < self._end and size - position > MAGIC_AT and not self._poison.is_full:
            try:
                if data[position + MAGIC_AT] < MAGIC:
                    used = self._take_legacy(view[position:], out)
                else:
                    used = self._take(view, position, size, transactions, out)
            except MemoryError:
                raise
            except Exception as error:
                used = self._pass_over(error, view[position:], out, more_may_come=position > 0)
            if not used:
                break
            position += used
            if used >= self._passthrough_min:
                position = self._pass_on_full(view, position, out)
            elif used < _PERHAPS_SINGLE and self._waiting.records is not None:
                position = self._gather_singles(view, position)
        _let_go_of(data, out)
        return out

    def gather_up_to(self, size: int) -> None:
        """Gather batches up to this size from now on, regardless of their own size, within the target's limit.

        On a high-latency cluster, few large batches take less time than many small ones: only five may be in flight.
        """
        self._batch_max = self._passthrough_min = max(size, self._batch_max)
        self._waiting.fill_up_to(self._batch_max)

    @property
    def has_more(self) -> bool:
        """Always False: `feed` returns everything that is ready."""
        return False

    def more(self) -> list[ReadyBatch]:
        """Always empty: `feed` returns everything that is ready."""
        return []

    def transactions(self, copied_to: int) -> TransactionCount:
        """The count of records of transactions up to a source offset, at the end of the copy."""
        return self._counter.count(read_to=self.next_offset, copied_to=copied_to)

    def take_skipped(self) -> list[SkippedRecords]:
        """Skipped data since the last call, in order. Store it before sending the batches returned with it."""
        return self._poison.take_skipped()

    def flush(self) -> ReadyBatch | None:
        """Return the data that waits for more small batches."""
        out: list[ReadyBatch] = []
        try:
            self._waiting.close(out)
        except MemoryError:
            raise
        except Exception as error:
            self._fail(error, out)
        return out[0] if out else None

    def discard(self) -> None:
        """Discard the data that waits for more small batches."""
        self._waiting.discard()

    def skip_to_end(self) -> ReadyBatch | None:
        """Declare that the source has no more records before `end`; return the waiting data."""
        held = self.flush()
        if self.next_offset < self._end:
            # No batch shows the epoch of the skipped offsets.
            self.next_offset, self.leader_epoch = self._end, -1
        return held

    def _fail(self, cause: Exception, out: list[ReadyBatch]) -> None:
        self._poison.fail(cause, at=self.next_offset)
        self._waiting.close(out)

    def _pass_over(self, cause: Exception, rest: memoryview, out: list[ReadyBatch], *, more_may_come: bool) -> int:
        """Skip the unreadable batch at the start of `rest`; return its size in bytes, 0 if that is not possible.

        Args:
            more_may_come: true if the next fetch, starting with this batch, may contain more of the data after it.
        """
        damaged = not isinstance(cause, OversizedBatchError | RecordTooLargeError | RecordRefusedError)
        damage = measure_damage(rest, expected=self.next_offset) if self._poison.skip and damaged else None
        if damage is not None:
            # No batch shows the epoch of the skipped offsets.
            self.next_offset = self._poison.skip_damage(rest, damage, cause, first=self.next_offset)
            self.leader_epoch = -1
            return damage.size
        if not (self._poison.skip and damaged and more_may_come):
            self._fail(cause, out)
        return 0

    def _pass_on_full(self, view: memoryview, position: int, out: list[ReadyBatch]) -> int:
        """Pass on consecutive full batches that need only a new header; return the position after them.

        It does the same as `_take`, in one loop: large logs consist mostly of such batches. It stops before the first
        batch of another kind, or a damaged one.
        """
        if self._waiting.waits or self._rules.needs_key or view.readonly:
            return position
        size, end, expected, epoch = len(view), self._end, self.next_offset, self.leader_epoch
        least, most = max(self._passthrough_min, HEADER_SIZE), self._target_max
        earliest, latest = self._times
        unpack, ready = HEADER_WITHOUT_PRODUCER.unpack_from, out.append
        while size - position >= HEADER_SIZE:
            base, length, leader, magic, crc, attributes, last_delta, first, last_time, count = unpack(view, position)
            stop = position + LOG_OVERHEAD + length
            if (
                stop > size
                or not least <= stop - position <= most
                or magic != MAGIC
                # No flag is set: the batch is neither transactional nor control data, and its timestamps are its own.
                or not 0 <= attributes <= CODEC_BITS
                or base < expected
                or count != last_delta + 1
                or not 0 < count <= end - base
                or first < earliest
                or last_time > latest
                or crc32c(view[position + ATTRIBUTES_AT : stop]) != crc
            ):
                break
            expected, epoch = base + count, leader
            ready(ReadyBatch(view[position:stop], count, ((base, count),), expected, first, last_time))
            position = stop
        self.next_offset, self.leader_epoch = expected, epoch
        return position

    def _take(
        self, view: memoryview, position: int, size: int, transactions: AbortedTransactions, out: list[ReadyBatch]
    ) -> int:
        """Process the magic-2 batch at `position`; return its size in bytes, 0 if it must be fetched again."""
        if size - position < HEADER_SIZE:
            return 0
        header = BatchHeader(*HEADER.unpack_from(view, position))
        base, length, leader_epoch, magic, crc, attributes, last_delta = header[:7]
        used = LOG_OVERHEAD + length
        if used < HEADER_SIZE or magic != MAGIC:
            raise CorruptBatchError(f"the source's batch header at offset {base} is damaged (magic {magic}).")
        if used > size - position:
            return 0
        end = position + used
        if crc32c(view[position + ATTRIBUTES_AT : end]) != crc:
            raise CorruptBatchError(f"the CRC of the source's batch at offset {base} does not match.")
        self.leader_epoch = leader_epoch
        last = base + last_delta
        if last < self.next_offset:
            return used
        if base >= self._end:
            self.next_offset = self._end
            return 0
        if attributes & CONTROL_BIT:
            if header.count:
                self._take_marker(header, view, position, transactions)
            self.next_offset = last + 1
            return used
        whole = base >= self.next_offset and last < self._end and header.count == last_delta + 1
        is_transactional = attributes & TRANSACTIONAL_BIT
        if (
            is_transactional
            and self._read_committed
            and transactions.is_aborted(header.producer_id, last, transactional=True)
        ):
            self.next_offset = last + 1
            return used
        if not (
            whole
            and used <= self._target_max
            and not attributes & _NEEDS_REBUILDING
            # The first timestamp need not be the earliest: the target rejects an earlier record.
            and header.first_timestamp >= self._times.earliest
            and header.max_timestamp <= self._times.latest
            and not (self._rules.needs_key and _lacks_key(header, view[position:end]))
        ):
            self._rebuild(header, view[position:end], out)
            return used if self.next_offset == min(last + 1, self._end) else 0
        if used >= self._passthrough_min:
            self._waiting.close(out)
            out.append(passed_on(view[position:end], header))
        else:
            self._waiting.add(header, view[position:end], out)
        if is_transactional and not self._read_committed:
            self._counter.add(header.producer_id, base, header.count)
        self.next_offset = last + 1
        return used

    def _take_marker(
        self, header: BatchHeader, view: memoryview, position: int, transactions: AbortedTransactions
    ) -> None:
        if self._read_committed:
            last = header.base_offset + header.last_offset_delta
            body = bytes(view[position + HEADER_SIZE : position + LOG_OVERHEAD + header.length])
            transactions.control(header.producer_id, last, abort=is_abort_marker(body))
        # After a change of the isolation level, earlier runs may have copied its records.
        self._counter.end(header.producer_id, view, position)

    def _count_part(self, header: BatchHeader, first: int) -> None:
        """Count the records of a batch from the offset `first` to the next: at most, if compaction has removed some."""
        taken = min(self.next_offset - first, header.count)
        if header.attributes & TRANSACTIONAL_BIT and not self._read_committed and taken > 0:
            self._counter.add(header.producer_id, first, taken)

    def _gather_singles(self, view: memoryview, position: int) -> int:
        """Process consecutive batches of one record; return the position after them."""
        records = self._waiting.records
        # Only the general path checks keys: each comparison counts here.
        if records is None or self._rules.needs_key:
            return position
        below = min(self._passthrough_min, self._target_max)
        after = self._waiting.add_singles(
            view, position, expected=self.next_offset, end=self._end, below=below, allowed=self._times
        )
        if after != position:
            self.next_offset = records.source_next
            self.leader_epoch = max(self.leader_epoch, records.leader_epoch)
        return after

    def _damaged_in_waiting(self, header: BatchHeader, batch: bytes, error: CorruptBatchError) -> None:
        if not self._poison.skip:
            raise error
        self._poison.skip_damage(batch, damage_under_checksum(header), error, first=header.base_offset)

    def _rebuild(self, header: BatchHeader, batch: memoryview, out: list[ReadyBatch]) -> None:
        self._waiting.close(out)
        codec = header.attributes & CODEC_BITS
        body = decompress_once(codec, batch[HEADER_SIZE:])

        def read() -> Iterator[Record]:
            return read_records(
                body, base_offset=header.base_offset, base_timestamp=header.first_timestamp, count=header.count
            )

        def read_appended() -> Iterator[Record]:
            return (record._replace(timestamp=header.max_timestamp) for record in read())

        each = read_appended if header.attributes & LOG_APPEND_TIME_BIT else read
        # All of them before any is sent: damage anywhere makes the whole batch damaged.
        many = isinstance(body, memoryview) or header.count > _HELD_RECORDS
        records = _read_twice(each) if many else list(each())
        portion = self._portion(records, header.base_offset + header.last_offset_delta)
        first = max(self.next_offset, header.base_offset)
        try:
            self._emit_rebuilt(portion, portion, codec=codec, out=out)
        finally:
            self._count_part(header, first)

    def _portion(self, records: Iterable[Record], last_offset: int) -> _Portion:
        rules, times = self._rules, self._times
        return _Portion(
            records,
            first=self.next_offset,
            end=min(last_offset + 1, self._end),
            refusal_of=(lambda record: rules.refusal(record, times)) if rules.has_any else None,
            poison=self._poison,
        )

    def _emit_rebuilt(self, records: Iterable[Record], portion: _Portion, *, codec: int, out: list[ReadyBatch]) -> None:
        """Emit records of a portion in rebuilt batches; the last one covers the source up to its end.

        Raises:
            MirrorError: the error of the record after them.
        """
        before = len(out)
        ready = rebuild(
            records,
            codec=codec,
            batch_max_bytes=self._batch_max,
            max_message_bytes=self._target_max,
            too_large=self._poison.leave_out_record if self._poison.skip else None,
            dense=self._dense,
        )
        for batch in ready:
            out.append(batch)
            self.next_offset = batch.source_next
        if portion.refusal is not None:
            raise portion.refusal
        self.next_offset = portion.next_offset
        if len(out) > before:
            out[-1].source_next = portion.next_offset

    def _take_legacy(self, rest: memoryview, out: list[ReadyBatch]) -> int:
        """Process a message set entry of magic 0 or 1; return its size in bytes, 0 if it must be fetched again."""
        magic = rest[MAGIC_AT]
        used = LOG_OVERHEAD + int.from_bytes(rest[8:12], "big", signed=True)
        if used < _SMALLEST_LEGACY:
            raise CorruptBatchError(f"the source's message at offset {legacy_last_offset(rest)} is damaged.")
        if used > len(rest):
            return 0
        entry = rest[:used]
        last = legacy_last_offset(entry)
        if last >= self.next_offset:
            self._gather_legacy(lambda: read_legacy(entry, magic), legacy_codec(entry), last, out)
            if self.next_offset < min(last + 1, self._end):
                return 0
        return used

    def _gather_legacy(
        self, read: Callable[[], Iterator[Record]], codec: int, last_offset: int, out: list[ReadyBatch]
    ) -> None:
        """Gather uncompressed messages, which arrive one by one, like small batches."""
        records = _held(read())
        if records is None:
            self._waiting.close(out)
            portion = self._portion(_read_twice(read), last_offset)
            self._emit_rebuilt(portion, portion, codec=codec, out=out)
            return
        portion = self._portion(records, last_offset)
        wanted = list(portion)
        if not self._waiting.add_records(wanted, codec, out):
            self._emit_rebuilt(wanted, portion, codec=codec, out=out)
            return
        if portion.refusal is not None:
            raise portion.refusal
        assert self._waiting.records is not None
        self.next_offset = self._waiting.records.source_next = portion.next_offset


class _Portion:
    """The records of a source batch that are taken at once: those of the range that the target accepts.

    They end before the first that stops the partition, and where many were skipped: an error of each is held until
    they are stored, so the rest of the batch is left to the next fetch.
    """

    def __init__(
        self,
        records: Iterable[Record],
        *,
        first: int,
        end: int,
        refusal_of: Callable[[Record], MirrorError | None] | None,
        poison: Poison,
    ) -> None:
        """Args:
        records: of the whole batch, known to be readable.
        first: source offset of the first that is wanted.
        end: source offset after the last.
        refusal_of: why the target rejects a record; None if it rejects none.
        poison: takes the rejected ones.
        """
        self._records = records
        self._first = first
        self._refusal_of = refusal_of
        self._poison = poison
        #: Source offset after the portion, once it was iterated.
        self.next_offset = end
        #: The error of the record that stops the partition.
        self.refusal: MirrorError | None = None

    def __iter__(self) -> Iterator[Record]:
        first, end, refusal_of, poison = self._first, self.next_offset, self._refusal_of, self._poison
        may_skip = poison.skip
        for record in self._records:
            if not first <= record.offset < end:
                continue
            if may_skip and poison.is_full:
                self.next_offset = record.offset
                return
            refusal = refusal_of(record) if refusal_of is not None else None
            if refusal is None:
                yield record
            elif may_skip:
                poison.leave_out_record(record, refusal)
            else:
                self.refusal = refusal
                return


def _read_twice(read: Callable[[], Iterator[Record]]) -> Iterator[Record]:
    """The records, after all of them were read once: they are too many to hold."""
    deque(read(), maxlen=0)
    return read()


def _lacks_key(header: BatchHeader, batch: memoryview) -> bool:
    return lacks_key(decompress_once(header.attributes & CODEC_BITS, batch[HEADER_SIZE:]), header.count)


def _held(records: Iterator[Record]) -> list[Record] | None:
    """The records; None if they take much memory."""
    found: list[Record] = []
    size = 0
    for record in records:
        size += len(record.tail)
        if size > _HELD_BYTES or len(found) == _HELD_RECORDS:
            return None
        found.append(record)
    return found


def _let_go_of(data: bytes | bytearray | memoryview, batches: Sequence[ReadyBatch]) -> None:
    """Copy the few batches that would otherwise keep all of `data` in memory until the target has them."""
    views = [batch for batch in batches if isinstance(batch.payload, memoryview)]
    if sum(len(batch.payload) for batch in views) < len(data) * _WORTH_KEEPING:
        for batch in views:
            batch.payload = bytearray(batch.payload)
