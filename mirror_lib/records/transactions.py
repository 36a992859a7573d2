"""Counts the records of transactions that a copy of all records takes along, by how the transactions ended.

A reader of all records gets them in the order of the log, before it is known whether they are aborted. The marker that
ends a transaction follows them, names the producer, and is read as well, so nothing more has to be requested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from mirror_lib.records.aborted import is_abort_marker
from mirror_lib.records.header import HEADER_SIZE, LOG_OVERHEAD
from mirror_lib.records.records import RecordError

#: The start of a control record after its length, and as brokers write it: attributes, no deltas, the key.
_START, _START_END = HEADER_SIZE + 1, HEADER_SIZE + 9
_USUAL_ABORT = b"\x00\x00\x00\x08\x00\x00\x00\x00"
_USUAL_COMMIT = b"\x00\x00\x00\x08\x00\x00\x00\x01"


class OpenTransaction(NamedTuple):
    """A transaction without a marker so far, and its records that were copied."""

    producer_id: int
    first_offset: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCount:
    """The records of transactions among all copied records of a partition before a source offset.

    Attributes:
        counted_to: source offset up to which they are counted.
        aborted: records of aborted transactions.
        open: the transactions that had not ended.
        uncounted: offsets whose records are in none of the numbers, since a run that was interrupted has copied them.
    """

    counted_to: int
    aborted: int = 0
    open: tuple[OpenTransaction, ...] = ()
    uncounted: int = 0

    @property
    def undecided(self) -> int:
        """Records of the open transactions."""
        return sum(each.records for each in self.open)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to report."""
        return not (self.aborted or self.open or self.uncounted)

    def continued_at(self, offset: int) -> TransactionCount:
        """The count from which a copy continues at an offset.

        What an interrupted run has copied in between is not counted, and the open transactions may have ended there.
        """
        if offset == self.counted_to:
            return self
        if offset < self.counted_to:
            # What follows is copied, and counted, again.
            return TransactionCount(counted_to=offset)
        missing = offset - self.counted_to + self.undecided
        return TransactionCount(counted_to=offset, aborted=self.aborted, uncounted=self.uncounted + missing)


class TransactionCounter:
    """The count of one partition while its batches are read, in their order."""

    def __init__(self, known: TransactionCount | None, start: int) -> None:
        """Continue a count.

        Args:
            known: of earlier runs; None without any.
            start: source offset at which the copy continues.
        """
        self._known = known = TransactionCount(counted_to=start) if known is None else known.continued_at(start)
        #: First offset and number of records, by producer id.
        self._open: dict[int, list[int]] = {each.producer_id: [each.first_offset, each.records] for each in known.open}
        self._aborted = 0

    def add(self, producer_id: int, offset: int, records: int) -> None:
        """Count records of a transaction, of which the first has this offset."""
        found = self._open.get(producer_id)
        if found is None:
            self._open[producer_id] = [offset, records]
        else:
            found[1] += records

    def end(self, producer_id: int, view: memoryview, position: int) -> None:
        """Count a transaction by its marker, the control batch at a position."""
        ended = self._open.pop(producer_id, None)
        if ended is not None and _is_abort(view, position):
            self._aborted += ended[1]

    def count(self, *, read_to: int, copied_to: int) -> TransactionCount:
        """The count of everything before the end of a copy.

        Args:
            read_to: source offset up to which batches were taken.
            copied_to: source offset up to which they are on the target.
        """
        if copied_to < read_to:
            return self._known.continued_at(copied_to)
        return TransactionCount(
            counted_to=copied_to,
            aborted=self._known.aborted + self._aborted,
            open=tuple(_sorted(OpenTransaction(number, *found) for number, found in self._open.items())),
            uncounted=self._known.uncounted,
        )


def _sorted(found: Iterable[OpenTransaction]) -> list[OpenTransaction]:
    return sorted(found, key=lambda each: each.first_offset)


def _is_abort(view: memoryview, position: int) -> bool:
    """Return whether a marker aborts; False for one that cannot be read, which no reader of all records has to read."""
    # There are as many markers as transactions, which may have one record each.
    start = view[position + _START : position + _START_END].tobytes()
    if start == _USUAL_COMMIT:
        return False
    if start == _USUAL_ABORT:
        return True
    length = int.from_bytes(view[position + 8 : position + LOG_OVERHEAD], "big")
    try:
        return is_abort_marker(bytes(view[position + HEADER_SIZE : position + LOG_OVERHEAD + length]))
    except RecordError:
        return False
