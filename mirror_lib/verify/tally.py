"""What the comparison of one range has found so far: counts, differences, and a digest of the target's batches."""

from __future__ import annotations

import hashlib
import struct

from mirror_lib.cluster.batches.stretches import Stretch
from mirror_lib.verify.findings import Difference, RangeOutcome
from mirror_lib.verify.model import CheckRange

_BATCH = struct.Struct(">qqiI")


class Tally:
    """The account of a range."""

    def __init__(self, range_: CheckRange, *, keep: int) -> None:
        """Begin with nothing.

        Args:
            keep: differences to keep; all are counted.
        """
        self._range = range_
        self._keep = keep
        self._digest = hashlib.sha256()
        self._differences: list[Difference] = []
        self._difference_count = 0
        #: Records that are equal on both sides; of these, in batches that were not taken apart, and not in the map.
        self.records = self.undecoded = self.outside_map = 0
        #: Records that the map names and that were judged, whatever the judgement.
        self.accounted = 0
        self.compacted_source = self.compacted_target = 0
        self.expired = self.left_out = self.foreign = 0
        self.timestamps_compared = True

    def equal(self, count: int, *, decoded: bool) -> None:
        """Count records that the map names, and that are equal."""
        self.records += count
        self.accounted += count
        if not decoded:
            self.undecoded += count

    def note_target(self, stretch: Stretch) -> None:
        """Let a batch of the target count in the digest as far as it is in the range: offsets, records, checksum."""
        first, end = max(stretch.first, self._range.target_first), min(stretch.next_offset, self._range.target_next)
        if first >= end:
            return
        if stretch.header is None:
            for record in stretch.old:
                self._digest.update(_BATCH.pack(record.offset, record.timestamp, len(record.tail), 0) + record.tail)
        else:
            self._digest.update(_BATCH.pack(first, end, stretch.header.count, stretch.header.crc))

    def count_difference(self) -> bool:
        """Count a difference; returns whether it is one of the first, which are described with `keep`."""
        self._difference_count += 1
        return len(self._differences) < self._keep

    @property
    def has_differences(self) -> bool:
        """Whether any difference was counted."""
        return self._difference_count > 0

    def keep(self, found: Difference) -> None:
        """Keep the description of a difference that was counted."""
        self._differences.append(found)

    def outcome(self, source_next: int, target_next: int, *, complete: bool, rows: bool) -> RangeOutcome:
        """What was found, with all before two offsets compared.

        Args:
            complete: whether that is the whole range.
            rows: whether several records may be made of one, of which the map names the first only.
        """
        # What the map names and nobody came across is gone on both sides.
        gone = self._range.records - self.accounted if complete and not rows else 0
        return RangeOutcome(
            source_first=self._range.source_first,
            source_next=source_next,
            target_first=self._range.target_first,
            target_next=target_next,
            complete=complete,
            records=self.records,
            records_undecoded=self.undecoded,
            outside_map=self.outside_map,
            compacted_source=self.compacted_source,
            compacted_target=self.compacted_target,
            expired=self.expired,
            gone_on_both=max(gone, 0),
            left_out=self.left_out,
            foreign=self.foreign,
            timestamps_compared=self.timestamps_compared,
            digest=self._digest.hexdigest() if complete else None,
            difference_count=self._difference_count,
            differences=tuple(self._differences),
        )
