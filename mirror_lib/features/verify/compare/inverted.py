"""Compare a range that the opposite flow copied, as that flow would: with both sides exchanged. Pure.

Before a hand-over the present target was the source, and the present source its copy. So aborted records count there if
they were copied, the copy's broker may have replaced timestamps, and that flow's gaps name the skipped records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace

from mirror_lib.features.verify.findings import Difference, DifferenceKind, RangeOutcome
from mirror_lib.features.verify.model import CheckRange, OppositeFacts, PartitionCheck
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.records.spans import Shown

_KINDS = {DifferenceKind.MISSING: DifferenceKind.EXTRA, DifferenceKind.EXTRA: DifferenceKind.MISSING}


def inverse_runs(runs: Iterable[OffsetRun]) -> tuple[OffsetRun, ...]:
    """Return the map of the opposite direction."""
    return tuple(OffsetRun(run.target_first, run.source_first, run.count) for run in runs)


def copied_from(runs: Iterable[OffsetRun]) -> Shown:
    """Return a rule for aborted batches: they count where the map has a copied record of theirs."""
    bounds = [(run.source_first, run.source_next) for run in runs]

    def is_shown(first: int, next_offset: int) -> bool:
        at = bisect_left(bounds, first, key=lambda each: each[1] - 1)
        return at < len(bounds) and bounds[at][0] < next_offset

    return is_shown


def inverse_check(check: PartitionCheck, range_: CheckRange) -> tuple[PartitionCheck, CheckRange]:
    """Return the check and the range as the opposite flow sees them."""
    inverse = replace(
        range_,
        source_first=range_.target_first,
        # What the map has beyond the end of the log cannot be read.
        source_next=max(min(range_.target_next, check.target_end), range_.target_first),
        target_first=range_.source_first,
        target_next=range_.source_next,
        encoded_runs=encode(inverse_runs(range_.runs)),
    )
    back = replace(
        check,
        source=check.target,
        target=check.source,
        ranges=(inverse,),
        target_end=range_.source_next,
        source_compacted=check.target_compacted,
        target_compacted=check.source_compacted,
        shared_target=check.opposite.shared_target,
        known_gaps=check.opposite.known_gaps,
        known_foreign=tuple((gap.first_offset, gap.next_offset) for gap in check.known_gaps),
        opposite=OppositeFacts(check.known_gaps, check.shared_target),
    )
    return back, inverse


def inverse_outcome(found: RangeOutcome, range_: CheckRange) -> RangeOutcome:
    """Return the outcome as this flow sees it.

    Args:
        range_: as this flow sees it.
    """
    return replace(
        found,
        source_first=range_.source_first,
        source_next=range_.source_next if found.complete else found.target_next,
        target_first=range_.target_first,
        target_next=range_.target_next if found.complete else found.source_next,
        compacted_source=found.compacted_target,
        compacted_target=found.compacted_source,
        differences=tuple(_inverse_difference(each) for each in found.differences),
    )


def _inverse_difference(found: Difference) -> Difference:
    kind = _KINDS.get(found.kind, found.kind)
    if kind is DifferenceKind.UNMAPPED and found.target_offset is None:
        kind = DifferenceKind.EXTRA
    return replace(
        found,
        kind=kind,
        source_offset=found.target_offset,
        target_offset=found.source_offset,
        source_digest=found.target_digest,
        target_digest=found.source_digest,
    )
