"""Findings of the comparison of one range so far: counts, differences, and a digest of the target's batches."""

from __future__ import annotations

import hashlib
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mirror_lib.errors import MirrorError
from mirror_lib.features.verify.findings import Difference, PartitionVerdict, RangeOutcome, Stopped, Verdict
from mirror_lib.features.verify.model import CheckRange, PartitionCheck, VerifyJob
from mirror_lib.records.spans import Span

_BATCH = struct.Struct(">qqiI")


class Tally:
    """The counters of a range."""

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
        #: Records that are equal on both sides; of these, those in batches that were not decoded, and those not in the
        #: map.
        self.records = self.undecoded = self.outside_map = 0
        #: Records of the map that were judged, with any result.
        self.accounted = 0
        self.compacted_source = self.compacted_target = 0
        self.expired = self.skipped = self.foreign = 0
        self.timestamps_compared = True

    def equal(self, count: int, *, decoded: bool) -> None:
        """Count records that the map names, and that are equal."""
        self.records += count
        self.accounted += count
        if not decoded:
            self.undecoded += count

    def note_target(self, span: Span) -> None:
        """Add the part of a target batch that is in the range to the digest: offsets, records, checksum."""
        first, end = max(span.first, self._range.target_first), min(span.next_offset, self._range.target_next)
        if first >= end:
            return
        if span.header is None:
            for record in span.old:
                self._digest.update(_BATCH.pack(record.offset, record.timestamp, len(record.tail), 0) + record.tail)
        else:
            self._digest.update(_BATCH.pack(first, end, span.header.count, span.header.crc))

    def count_difference(self) -> bool:
        """Count a difference; returns whether it is one of the first, which are described with `keep`."""
        self._difference_count += 1
        return len(self._differences) < self._keep

    @property
    def has_differences(self) -> bool:
        """Return True if any difference was counted."""
        return self._difference_count > 0

    def keep(self, found: Difference) -> None:
        """Keep the description of a difference that was counted."""
        self._differences.append(found)

    def outcome(self, source_next: int, target_next: int, *, complete: bool, rows: bool) -> RangeOutcome:
        """Return what was found, with everything before two offsets compared.

        Args:
            complete: True if that is the whole range.
            rows: True if one record may become several, of which the map has only the first.
        """
        # Records of the map that were on neither side are gone on both sides.
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
            skipped=self.skipped,
            foreign=self.foreign,
            timestamps_compared=self.timestamps_compared,
            digest=self._digest.hexdigest() if complete else None,
            difference_count=self._difference_count,
            differences=tuple(self._differences),
        )


@dataclass(slots=True)
class Spent:
    """The part of its budget that the task has used, over all its partitions."""

    job: VerifyJob
    bytes: int = 0

    @property
    def over(self) -> Stopped | None:
        """Return the bound that is reached."""
        if self.job.bin_max_bytes is not None and self.bytes >= self.job.bin_max_bytes:
            return Stopped.BYTES
        if self.job.ends_at is not None and time.time() >= self.job.ends_at:
            return Stopped.SECONDS
        return None


def verdict_of(
    check: PartitionCheck,
    outcomes: Sequence[RangeOutcome],
    *,
    keep: int,
    error: MirrorError | None = None,
    stopped: Stopped | None = None,
    source_bytes: int = 0,
    target_bytes: int = 0,
    seconds: float = 0.0,
) -> PartitionVerdict:
    """Return the verdict on a partition whose ranges were compared.

    Args:
        outcomes: of the ranges that were begun.
        keep: differences to keep.
        error: that ended the comparison.
        stopped: the budget that ended it.
    """
    kept: list[Difference] = [each for outcome in outcomes for each in outcome.differences]
    verdict = PartitionVerdict(
        source=check.source,
        target=check.target,
        verdict=Verdict.EQUAL,
        outcomes=tuple(replace(each, differences=()) for each in outcomes),
        source_bytes=source_bytes,
        target_bytes=target_bytes,
        seconds=seconds,
        stopped=stopped,
        expired_before=check.expired,
        offsets_before_map=check.offsets_before_map,
        differences=tuple(kept[:keep]),
    )
    if check.nothing_copied and (verdict.difference_count or verdict.records):
        # If copying had begun, the map would have a record.
        kept_by = ", and its transforms do not drop all" if check.chain else ""
        detail = (
            f"the ledger has no offset map for this partition{kept_by}: at least "
            f"{verdict.difference_count + verdict.records:,} records were not compared (`mirror map rebuild`)."
        )
        return PartitionVerdict.impossible(check.source, check.target, "no-map", detail)
    if verdict.difference_count:
        return replace(verdict, verdict=Verdict.DIFFERENT)
    if error is not None:
        return replace(verdict, verdict=Verdict.UNVERIFIABLE, reason=error.reason, detail=str(error))
    if stopped is not None and not verdict.records:
        detail = f"the budget of {stopped.value} was used up before this partition was compared."
        return replace(verdict, verdict=Verdict.UNVERIFIABLE, reason="budget", detail=detail)
    return verdict
