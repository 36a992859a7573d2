"""Counts the records that a comparison reads, and that a reader of committed records would not see.

Brokers name the aborted transactions only in responses to fetches of committed records, which end at the last stable
offset. So a comparison of all records fetches committed ones up to there, shows the aborted ones too, and counts them.
"""

from __future__ import annotations

from mirror_lib.records.header import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL_BIT,
    parse_header,
)
from mirror_lib.records.spans import Shown


class UncommittedRecords:
    """The counts of source offsets [first, end), which are read in their order.

    Attributes:
        aborted: records of aborted transactions that are shown.
        undecided: records of transactions after the last stable offset.
    """

    def __init__(self, first: int, end: int, shown: Shown | None = None) -> None:
        """Nothing is counted yet.

        Args:
            shown: which aborted batches are shown; by default all.
        """
        self._next = first
        self._end = end
        self._shown = shown
        self.aborted = 0
        self.undecided = 0

    def is_shown(self, first: int, next_offset: int) -> bool:
        """The rule for aborted batches; count them by it."""
        if self._shown is not None and not self._shown(first, next_offset):
            return False
        self.aborted += self._new_offsets(first, next_offset)
        return True

    def take_undecided(self, data: memoryview) -> None:
        """Count the transactional batches of a fetch from behind the last stable offset.

        A later marker among them would end some, so the number is an upper bound of what is open.
        """
        position, size = 0, len(data)
        while size - position >= HEADER_SIZE and data[position + MAGIC_AT] == MAGIC:
            header = parse_header(data, position)
            position += LOG_OVERHEAD + header.length
            if header.length < HEADER_SIZE - LOG_OVERHEAD or position > size:
                return
            if header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT:
                first = header.base_offset
                self.undecided += self._new_offsets(first, first + header.last_offset_delta + 1)

    def _new_offsets(self, first: int, next_offset: int) -> int:
        """Offsets of a batch that are in the range, and were not counted: fetches may begin within a batch."""
        start, stop = max(first, self._next), min(next_offset, self._end)
        self._next = max(self._next, stop)
        return max(stop - start, 0)
