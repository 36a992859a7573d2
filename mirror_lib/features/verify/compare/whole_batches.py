"""Pass whole batches of the target that hold the expected records, without decoding either side. Pure.

Most of a log is copied batch by batch, so most of a comparison is done here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mirror_lib.features.transforms.arrow.record_blocks import RecordBlock
from mirror_lib.features.verify.compare.expected_offsets import Placement
from mirror_lib.features.verify.compare.side import Side
from mirror_lib.features.verify.compare.tally import Tally
from mirror_lib.records.compression.codecs import decompress
from mirror_lib.records.header import CODEC_BITS, Codec
from mirror_lib.records.spans import Span

_Int64s = NDArray[np.int64]
_BITS_OF_BYTE = 7
_BITS, _MORE = 0x7F, 0x80


def holds(body: bytes, first_timestamp: int, parts: Sequence[RecordBlock]) -> bool:
    """Return True if a dense, uncompressed body has exactly these records, in the encoding that every client uses.

    False proves nothing: numbers may be encoded in more bytes than they need.

    Args:
        first_timestamp: of the batch, the base of the timestamps in the body.
        parts: at least one, with at least one record each.
    """
    times = np.concatenate([part.times for part in parts]) - first_timestamp
    tail_sizes = np.concatenate([part.ends - part.starts for part in parts])
    stamps = (times << 1) ^ (times >> 63)
    numbers = np.arange(len(times), dtype=np.int64) << 1
    stamp_sizes, number_sizes = _sizes(stamps), _sizes(numbers)
    # One byte of attributes is in front.
    lengths = 1 + stamp_sizes + number_sizes + tail_sizes
    length_sizes = _sizes(lengths << 1)
    ends = np.cumsum(length_sizes + lengths)
    if ends[-1] != len(body) or (stamps < 0).any():
        return False
    octets = np.frombuffer(body, dtype=np.uint8)
    at = ends - lengths - length_sizes
    if not _are_equal_at(octets, at, lengths << 1, length_sizes):
        return False
    at = ends - lengths + 1
    if not _are_equal_at(octets, at, stamps, stamp_sizes):
        return False
    if not _are_equal_at(octets, at + stamp_sizes, numbers, number_sizes):
        return False
    places = (ends - tail_sizes).tolist()
    tails = parts[0].tails if len(parts) == 1 else [tail for part in parts for tail in part.tails]
    return all(map(body.startswith, tails, places))


def _sizes(values: _Int64s) -> _Int64s:
    """Bytes that each value takes as an unsigned varint."""
    sizes = np.ones(len(values), dtype=np.int64)
    largest, bound = int(values.max()), 1 << _BITS_OF_BYTE
    while bound <= largest:
        sizes += values >= bound
        bound <<= _BITS_OF_BYTE
    return sizes


def _are_equal_at(octets: NDArray[np.uint8], at: _Int64s, values: _Int64s, sizes: _Int64s) -> bool:
    """Return True if the unsigned varints are at these positions."""
    for number in range(int(sizes.max())):
        if number:
            longer = np.flatnonzero(sizes > number)
            if len(longer) < len(at):
                at, values, sizes = at[longer], values[longer], sizes[longer]
        wanted = (values >> (_BITS_OF_BYTE * number)) & _BITS
        wanted[sizes > number + 1] |= _MORE
        if (octets[at + number] != wanted).any():
            return False
    return True


def same_batch(source: Span, target: Span) -> bool:
    """Return True if both certainly hold the same records, without comparing them one by one.

    Like `Span.same_batch`, and also where the target's broker recompressed them, or set its own timestamp in the
    header: then everything but the timestamps is the same.

    Raises:
        CodecError: a body cannot be decompressed.
    """
    mine, theirs = source.header, target.header
    return (
        mine is not None
        and theirs is not None
        and mine.count == theirs.count
        and source.dense
        and target.dense
        and not source.log_append_time
        and (target.log_append_time or mine.first_timestamp == theirs.first_timestamp)
        and _same_bodies(mine.attributes & CODEC_BITS, source.body, theirs.attributes & CODEC_BITS, target.body)
    )


def _same_bodies(mine: int, source: bytes, theirs: int, target: bytes) -> bool:
    """Return True if two bodies are the same; a target topic with its own `compression.type` has recompressed them."""
    if mine == theirs and source == target:
        return True
    if mine == theirs == Codec.NONE:
        return False
    return decompress(mine, source) == decompress(theirs, target)


class WholeBatches:
    """The next spans of both sides, as long as batches of the target can be passed whole."""

    def __init__(self, source: Side, target: Side, placement: Placement, tally: Tally) -> None:
        self._source, self._target = source, target
        self._placement = placement
        self._tally = tally
        #: The source's next records are too few to judge the target's next batch, and more may be fed.
        self.needs_source = False

    def pass_next(self) -> bool:
        """Pass a whole batch of the target and its source records; return False if there is none to pass.

        Raises:
            RecordError, CodecError: a batch cannot be read.
        """
        self.needs_source = False
        mine, theirs = self._source.head(), self._target.head()
        if mine is None or not isinstance(theirs, Span):
            return False
        if theirs.first < self._target.first or theirs.next_offset > self._target.end:
            return False
        return self._pass_batch(mine, theirs) if isinstance(mine, Span) else self._pass_gathered(theirs)

    def _pass_batch(self, mine: Span, theirs: Span) -> bool:
        """Pass two whole batches that are the same and at their expected offsets."""
        source, placement = self._source, self._placement
        if mine.first < source.first or mine.next_offset > source.end:
            return False
        run = placement.run_of(mine.first)
        if run is None or mine.next_offset > run.source_next:
            return False
        if theirs.first != placement.place(run, mine.first) or not same_batch(mine, theirs):
            return False
        self._tally.note_target(theirs)
        self._tally.timestamps_compared &= not theirs.log_append_time
        self._tally.equal(mine.next_offset - mine.first, decoded=False)
        source.pass_whole()
        self._target.pass_whole()
        return True

    def _pass_gathered(self, theirs: Span) -> bool:
        """Pass a batch of the target whose records are small batches on the source."""
        header = theirs.header
        if header is None or not theirs.dense or theirs.log_append_time:
            return False
        parts = self._parts_at(theirs.first, header.count)
        if not parts or not holds(
            decompress(header.attributes & CODEC_BITS, theirs.body), header.first_timestamp, parts
        ):
            return False
        self._tally.note_target(theirs)
        self._tally.equal(header.count, decoded=True)
        self._source.pass_records(header.count)
        self._target.pass_whole()
        return True

    def _parts_at(self, place: int, count: int) -> list[RecordBlock]:
        """Return the next `count` source records, if the map places them consecutively from `place` on; else none."""
        source = self._source
        parts: list[RecordBlock] = []
        for block in source.blocks():
            within = block.before(source.end)
            stop = min(within, count)
            if not stop or not self._placement.are_in_a_row(block.offsets[:stop], place):
                return []
            parts.append(block.part(0, stop))
            count -= stop
            place += stop
            if not count:
                return parts
            if within < len(block):
                return []
        self.needs_source = source.only_blocks and not source.is_exhausted
        return []
