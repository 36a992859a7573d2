"""Passing whole batches of the target that hold what they should, without taking either side apart. Pure.

Most of a log is copied batch by batch, so that most of a comparison is done here.
"""

from __future__ import annotations

from mirror_lib.cluster.batches.codecs import decompress
from mirror_lib.cluster.batches.header import CODEC_BITS, Codec
from mirror_lib.cluster.batches.record_blocks import RecordBlock
from mirror_lib.cluster.batches.stretches import Stretch
from mirror_lib.verify.layout import holds
from mirror_lib.verify.places import Placement
from mirror_lib.verify.side import Side
from mirror_lib.verify.tally import Tally


def same_batch(source: Stretch, target: Stretch) -> bool:
    """Whether both hold the same records for certain, without looking at them one by one.

    As `Stretch.same_batch`, and also where the target's broker compressed them anew, or put its own time in the
    header: then all but the timestamps is the same.

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
    """Whether two bodies are the same; a target with a `compression.type` of its own has compressed it anew."""
    if mine == theirs and source == target:
        return True
    if mine == theirs == Codec.NONE:
        return False
    return decompress(mine, source) == decompress(theirs, target)


class WholeBatches:
    """What comes next on both sides, as long as batches of the target can be passed whole."""

    def __init__(self, source: Side, target: Side, placement: Placement, tally: Tally) -> None:
        self._source, self._target = source, target
        self._placement = placement
        self._tally = tally
        #: Whether the source's next records are too few to judge the target's next batch, and more may be fed.
        self.needs_source = False

    def pass_next(self) -> bool:
        """Pass a whole batch of the target, and its records of the source; returns whether there was one to pass.

        Raises:
            RecordError, CodecError: a batch cannot be read.
        """
        self.needs_source = False
        mine, theirs = self._source.head(), self._target.head()
        if mine is None or not isinstance(theirs, Stretch):
            return False
        if theirs.first < self._target.first or theirs.next_offset > self._target.end:
            return False
        return self._pass_batch(mine, theirs) if isinstance(mine, Stretch) else self._pass_gathered(theirs)

    def _pass_batch(self, mine: Stretch, theirs: Stretch) -> bool:
        """Pass two whole batches that are the same and stand where they should."""
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

    def _pass_gathered(self, theirs: Stretch) -> bool:
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
        """The next `count` records of the source, if the map places them from `place` on in a row; else none."""
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
        self.needs_source = source.only_blocks and not source.exhausted
        return []
