"""One side of a comparison: the stretches of a log as they come in, and decoded records that wait for their turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from mirror_lib.cluster.batches.stretches import Stretch
from mirror_lib.verify.columns import Columns, columns

#: Decoded records that may lie behind the reading point before they are let go.
_LET_GO = 4096
#: Stands for a timestamp that the broker has put in place of the one that it was sent.
REPLACED = -(1 << 62)


class Side:
    """Offsets [first, end) of one log. Stretches are fed in order, and consumed whole or record by record."""

    def __init__(self, first: int, end: int, *, hide_append_times: bool = False) -> None:
        """Begin at an offset.

        Args:
            first: records before it are not looked at.
            end: nor those from here on.
            hide_append_times: whether `REPLACED` stands for timestamps that the broker gave.
        """
        self.first = first
        self._hide_append_times = hide_append_times
        #: May move while the comparison runs: see `compare.RangeComparer`.
        self.end = end
        #: Where the log is read on.
        self.fed_to = first
        #: Below this, retention has removed what was there.
        self.log_start = 0
        self._queue: deque[Stretch] = deque()
        self.offsets: list[int] = []
        self.times: list[int] = []
        self.tails: list[bytes] = []
        #: The first decoded record that is not consumed.
        self.at = 0
        self._passed = first

    def feed(self, stretches: Iterable[Stretch], next_offset: int) -> None:
        """Take what was read.

        Args:
            stretches: in order; the first may begin before what was asked for.
            next_offset: where to read on; offsets before it that are in no stretch hold no record.
        """
        self._queue.extend(each for each in stretches if not each.hidden and each.next_offset > self.fed_to)
        self.fed_to = max(self.fed_to, next_offset)

    @property
    def exhausted(self) -> bool:
        """Whether all stretches of the range were fed."""
        return self.fed_to >= self.end

    @property
    def pending(self) -> int:
        """Decoded records that are not consumed."""
        return len(self.offsets) - self.at

    @property
    def position(self) -> int:
        """Everything before this offset is consumed."""
        return self.offsets[self.at] if self.pending else self._passed

    def head(self) -> Stretch | None:
        """The next stretch, when no decoded records wait before it."""
        return self._queue[0] if self._queue and self.at == len(self.offsets) else None

    def pass_whole(self) -> None:
        """Consume the next stretch as it is."""
        self._passed = self._queue.popleft().next_offset

    def decode_next(self) -> Stretch | None:
        """Decode the next stretch behind the records that wait; None when there is none.

        Raises:
            RecordError, CodecError: it cannot be read.
        """
        if not self._queue or self._queue[0].first >= self.end:
            return None
        stretch = self._queue[0]
        found = self._within(columns(stretch))
        if self._hide_append_times and stretch.log_append_time:
            found = found._replace(times=[REPLACED] * len(found.offsets))
        self._queue.popleft()
        if self.at > _LET_GO or self.at == len(self.offsets):
            del self.offsets[: self.at], self.times[: self.at], self.tails[: self.at]
            self.at = 0
        self.offsets += found.offsets
        self.times += found.times
        self.tails += found.tails
        return stretch

    def advance(self, count: int) -> None:
        """Consume decoded records."""
        self.at += count
        self._passed = self.offsets[self.at - 1] + 1

    def visible(self, count: int) -> int:
        """How many of the next `count` decoded records lie in the range."""
        count = min(count, self.pending)
        while count and self.offsets[self.at + count - 1] >= self.end:
            count -= 1
        return count

    def _within(self, found: Columns) -> Columns:
        """Without what a consumer that begins here would not see. The end may move, so what lies behind it stays."""
        if not found.offsets or found.offsets[0] >= self.first:
            return found
        skip = sum(offset < self.first for offset in found.offsets)
        return Columns(found.offsets[skip:], found.times[skip:], found.tails[skip:])
