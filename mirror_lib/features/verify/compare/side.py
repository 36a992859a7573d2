"""One side of a comparison: the spans of a log as they arrive, and decoded records that are not consumed yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile

from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.record_columns import Columns, columns
from mirror_lib.records.spans import Span

#: Consumed decoded records that may be held before they are dropped.
_LET_GO = 4096
#: Bytes of decoded records from which no further batch is decoded. One batch may have more.
_MOST_BYTES = 16 * 1024 * 1024
#: Replaces a timestamp that the broker set instead of the producer's.
REPLACED = -(1 << 62)


class Side:
    """Offsets [first, end) of one log. Spans are fed in order, and consumed whole or record by record."""

    def __init__(
        self,
        first: int,
        end: int,
        *,
        hide_append_times: bool = False,
        hide_times: bool = False,
        rewrite: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Begin at an offset.

        Args:
            first: records before it are ignored.
            end: records at it and after it are ignored.
            hide_append_times: replace timestamps that the broker set by `REPLACED`.
            hide_times: replace all of them.
            rewrite: changes what is compared of each decoded record, besides its timestamp.
        """
        self._rewrite = rewrite
        self.first = first
        self._hide_append_times, self._hide_times = hide_append_times, hide_times
        #: May move while the comparison runs: see `compare.RangeComparer`.
        self.end = end
        #: Where reading of the log continues.
        self.fed_to = first
        #: Retention has removed everything below it.
        self.log_start = 0
        self._queue: deque[Span | RecordBlock] = deque()
        self.offsets: list[int] = []
        self.times: list[int] = []
        self.tails: list[bytes] = []
        #: Bytes of `tails`.
        self._held = 0
        #: The first decoded record that is not consumed.
        self.at = 0
        #: Everything before this offset is consumed.
        self.passed = first

    def feed(self, spans: Iterable[Span | RecordBlock], next_offset: int) -> None:
        """Add what was read.

        Args:
            spans: in order; the first may begin before the requested offset.
            next_offset: where to continue reading; offsets before it that are in no span hold no record.
        """
        for each in spans:
            if not each.is_hidden and each.next_offset > self.fed_to:
                wanted = _since(each, self.first) if isinstance(each, RecordBlock) else each
                if wanted is not None:
                    self._queue.append(wanted)
        self.fed_to = max(self.fed_to, next_offset)

    @property
    def is_starved(self) -> bool:
        """Return True if nothing can be done before more is fed."""
        return not self._queue and not self.pending_records and not self.is_exhausted

    @property
    def is_exhausted(self) -> bool:
        """Return True if all spans of the range were fed."""
        return self.fed_to >= self.end

    @property
    def pending_records(self) -> int:
        """Decoded records that are not consumed."""
        return len(self.offsets) - self.at

    @property
    def is_full(self) -> bool:
        """Return True if the decoded records that are not consumed take so much memory that none should be added."""
        return self._held > _MOST_BYTES and sum(map(len, self.tails[self.at :])) > _MOST_BYTES

    @property
    def position(self) -> int:
        """Everything before this offset is consumed, and there is nothing to be seen up to it."""
        return self.offsets[self.at] if self.pending_records else self.passed

    def head(self) -> Span | RecordBlock | None:
        """Return the next span, if no decoded records come before it."""
        return self._queue[0] if self._queue and self.at == len(self.offsets) else None

    def blocks(self) -> Iterator[RecordBlock]:
        """Yield the next blocks, up to the first span of another kind."""
        return takewhile(lambda each: isinstance(each, RecordBlock), self._queue)  # type: ignore[arg-type]

    @property
    def only_blocks(self) -> bool:
        """Return True if all that was fed and not decoded is blocks."""
        return all(isinstance(each, RecordBlock) for each in self._queue)

    def pass_whole(self) -> None:
        """Consume the next span as it is."""
        self.passed = self._queue.popleft().next_offset

    def pass_records(self, count: int) -> None:
        """Consume records of the next blocks as they are."""
        while count:
            block = self._queue[0]
            assert isinstance(block, RecordBlock)
            if count < len(block):
                self._queue[0] = block.part(count, len(block))
                self.passed = int(block.offsets[count - 1]) + 1
                return
            count -= len(block)
            self.pass_whole()

    def decode_next(self, wanted: int = 1) -> Span | RecordBlock | None:
        """Decode the next span and add its records; return None if there is none.

        Args:
            wanted: maximum number of records taken of a block, so that the rest may still be passed whole.

        Raises:
            RecordError, CodecError: it cannot be read.
        """
        if not self._queue or self._queue[0].first >= self.end:
            return None
        self._drop_consumed()
        span, rest = self._queue[0], None
        if isinstance(span, RecordBlock):
            if wanted < len(span):
                span, rest = span.part(0, wanted), span.part(wanted, len(span))
            found = columns(span)
        else:
            found = self._within(columns(span))
        if self._hide_times or (self._hide_append_times and span.log_append_time):
            found = found._replace(times=[REPLACED] * len(found.offsets))
        self._queue.popleft()
        if rest is not None:
            self._queue.appendleft(rest)
        self.offsets += found.offsets
        self.times += found.times
        self.tails += found.tails if self._rewrite is None else map(self._rewrite, found.tails)
        self._held += sum(map(len, found.tails))
        return span

    def _drop_consumed(self) -> None:
        if self.at > _LET_GO or self.at == len(self.offsets) or self._held > _MOST_BYTES:
            del self.offsets[: self.at], self.times[: self.at], self.tails[: self.at]
            self.at = 0
            self._held = sum(map(len, self.tails))

    def advance(self, count: int) -> None:
        """Consume decoded records."""
        self.at += count
        self.passed = self.offsets[self.at - 1] + 1

    def visible(self, count: int) -> int:
        """Return how many of the next `count` decoded records lie in the range."""
        count = min(count, self.pending_records)
        while count and self.offsets[self.at + count - 1] >= self.end:
            count -= 1
        return count

    def _within(self, found: Columns) -> Columns:
        """Drop what a consumer that begins here would not see. The end may move, so later records are kept."""
        if not found.offsets or found.offsets[0] >= self.first:
            return found
        skip = sum(offset < self.first for offset in found.offsets)
        return Columns(found.offsets[skip:], found.times[skip:], found.tails[skip:])


def _since(block: RecordBlock, first: int) -> RecordBlock | None:
    """Return the records of a block from an offset on."""
    start = block.before(first)
    if start == len(block):
        return None
    return block.part(start, len(block)) if start else block
