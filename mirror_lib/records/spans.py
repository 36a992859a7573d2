"""A fetched log as spans of offsets, for reading, not for copying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crc32c import crc32c

from mirror_lib.outside_limits import BATCH_BODY_BYTES
from mirror_lib.records.aborted import AbortedTransactions, is_abort_marker
from mirror_lib.records.compression.codecs import CodecError, decompress
from mirror_lib.records.header import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    parse_header,
)
from mirror_lib.records.legacy import last_offset as legacy_last_offset
from mirror_lib.records.legacy import read_legacy
from mirror_lib.records.records import Record, RecordError, read_records

#: The smallest entry of an old message set: offset, size, CRC, magic, attributes, two lengths.
_SMALLEST_LEGACY = LOG_OVERHEAD + 14
#: Memory of a record in bytes, in addition to its tail.
_OLD_RECORD = 200
#: Decompressed bytes of old formats after which a response is not read further.
_OLD_AT_ONCE = 8 * 1024 * 1024

#: Returns true if an aborted batch of offsets [first, next) is shown to a reader of committed records nevertheless.
Shown = Callable[[int, int], bool]


def none_shown(first: int, next_offset: int) -> bool:  # noqa: ARG001 - one of the rules
    """Return False: aborted batches are hidden."""
    return False


@dataclass(frozen=True, slots=True)
class Span:
    """Offsets [first, next_offset) of a log.

    Attributes:
        header: of the batch; None for old formats and if no record is visible.
        body: the batch's bytes after its header, possibly compressed; empty without a header.
        old: the records of an old format.
    """

    first: int
    next_offset: int
    header: BatchHeader | None = None
    body: bytes = b""
    old: tuple[Record, ...] = ()

    @property
    def is_hidden(self) -> bool:
        """True if no record is visible: control batches, aborted transactions."""
        return self.header is None and not self.old

    @property
    def count(self) -> int:
        """Number of visible records."""
        return len(self.old) if self.header is None else self.header.count

    @property
    def dense(self) -> bool:
        """True if every offset has a record."""
        return self.header is not None and self.header.count == self.next_offset - self.first

    @property
    def log_append_time(self) -> bool:
        """True if the broker set the timestamp of the records, one for all of them."""
        return self.header is not None and bool(self.header.attributes & LOG_APPEND_TIME_BIT)

    def same_batch(self, other: Span) -> bool:
        """True if both certainly contain the same records, without decoding them."""
        mine, theirs = self.header, other.header
        return (
            mine is not None
            and theirs is not None
            and self.dense
            and other.dense
            and not self.log_append_time
            and not other.log_append_time
            and mine.count == theirs.count
            and mine.attributes & CODEC_BITS == theirs.attributes & CODEC_BITS
            and mine.first_timestamp == theirs.first_timestamp
            and self.body == other.body
        )

    def records(self) -> list[Record]:
        """The records with the timestamps that a reader sees.

        Raises:
            RecordError: the body does not match the header.
            CodecError: the body cannot be decompressed.
        """
        if self.header is None:
            return list(self.old)
        found = read_records(
            decompress(self.header.attributes & CODEC_BITS, memoryview(self.body)),
            base_offset=self.header.base_offset,
            base_timestamp=self.header.first_timestamp,
            count=self.header.count,
        )
        if self.log_append_time:
            return [record._replace(timestamp=self.header.max_timestamp) for record in found]
        return list(found)


def read_spans(
    data: memoryview,
    aborted: Sequence[tuple[int, int]],
    *,
    read_committed: bool,
    shown: Shown = none_shown,
    old_bytes: int = _OLD_AT_ONCE,
    most_bytes: int = BATCH_BODY_BYTES,
) -> tuple[list[Span], int]:
    """The complete batches of a fetch up to the first damaged one, and their size in bytes.

    Args:
        data: consecutive batches; the last one may be incomplete.
        aborted: (producer id, first offset) of the aborted transactions in it.
        read_committed: hide aborted transactions.
        shown: exceptions from that, by batch.
        old_bytes: records of old formats are decompressed here; from this size on, the rest is ignored, as if it had
            not been fetched. At least one message is read.
        most_bytes: maximum size of a decompressed message of an old format.

    Raises:
        RecordError: the first batch is damaged.
    """
    transactions = AbortedTransactions(aborted)
    found: list[Span] = []
    position, size = 0, len(data)
    while size - position > MAGIC_AT:
        used = LOG_OVERHEAD + int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
        smallest = HEADER_SIZE if data[position + MAGIC_AT] >= MAGIC else _SMALLEST_LEGACY
        if used > size - position:
            break
        piece = data[position : position + used]
        try:
            if used < smallest:
                raise RecordError(f"a batch claims to have {used} bytes")
            if piece[MAGIC_AT] >= MAGIC:
                found.append(_span(piece, transactions, shown, read_committed=read_committed))
            else:
                found.append(_old(piece, most_bytes))
                old_bytes -= sum(len(record.tail) + _OLD_RECORD for record in found[-1].old)
        except (RecordError, CodecError):
            if not found:
                raise
            break
        position += used
        if old_bytes <= 0:
            break
    return found, position


def _span(piece: memoryview, transactions: AbortedTransactions, shown: Shown, *, read_committed: bool) -> Span:
    header = parse_header(piece)
    if header.magic != MAGIC or crc32c(piece[ATTRIBUTES_AT:]) != header.crc:
        raise RecordError(f"the batch at offset {header.base_offset} is damaged")
    first, last = header.base_offset, header.base_offset + header.last_offset_delta
    if header.attributes & CONTROL_BIT:
        if read_committed and header.count:
            abort = is_abort_marker(bytes(piece[HEADER_SIZE:]))
            transactions.control(header.producer_id, last, abort=abort)
        return Span(first, last + 1)
    transactional = bool(header.attributes & TRANSACTIONAL_BIT)
    aborted = read_committed and transactions.is_aborted(header.producer_id, last, transactional=transactional)
    if aborted and not shown(first, last + 1):
        return Span(first, last + 1)
    return Span(first, last + 1, header, bytes(piece[HEADER_SIZE:]))


def _old(piece: memoryview, most_bytes: int) -> Span:
    records = tuple(read_legacy(piece, piece[MAGIC_AT], most_bytes))
    last = legacy_last_offset(piece)
    return Span(records[0].offset if records else last, last + 1, old=records)
