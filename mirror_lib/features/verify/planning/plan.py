"""Planning a verification: which spans of which partition are compared, by which task. Pure: facts in, plan out."""

from __future__ import annotations

import heapq
import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from mirror_lib.features.verify.findings import PartitionVerdict, VerifiedMark
from mirror_lib.features.verify.model import (
    NO_COPIES,
    Budget,
    CheckRange,
    PartitionCheck,
    RoutedPlan,
    VerifyFacts,
    VerifyMode,
    VerifyPlan,
)
from mirror_lib.features.verify.planning.chains import may_give_several, why_unverifiable
from mirror_lib.features.verify.planning.routed_plan import (
    NO_ROUTED_FACTS,
    RoutedFacts,
    left_over,
    needed_shares,
    plan_routed,
)
from mirror_lib.ledger.directions import MapPart, with_ends
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.topology.names import FlowId, TopicPartition

NO_BUDGET = Budget()
#: Consecutive records that a sample takes at a time: a fetch reads whole batches anyway.
SAMPLE_RECORDS = 1_000
#: What a sample reads when no budget is given.
SAMPLE_BYTES = 256 * 1024 * 1024
#: A target with this many offsets or fewer may hold only fence markers, one for each run that took over.
_MARKERS = 16
#: Assumed bytes of a record where the cluster does not report sizes.
_UNKNOWN_RECORD_BYTES = 1_000


def plan_verification(
    flow: FlowId,
    facts: Iterable[VerifyFacts],
    *,
    mode: VerifyMode,
    budget: Budget = NO_BUDGET,
    seed: int = 0,
    bins_max: int = 1,
    unverifiable: Sequence[PartitionVerdict] = (),
    routed: RoutedFacts = NO_ROUTED_FACTS,
    copies: Mapping[TopicPartition, str | None] = NO_COPIES,
) -> VerifyPlan:
    """Decide what of every partition is compared and pack it into at most `bins_max` bins.

    Args:
        facts: one for each partition that both sides have.
        seed: the same one chooses the same sample of the same logs.
        unverifiable: what was found impossible while the facts were gathered; carried into the plan.
        routed: of what transforms send to other partitions than their source partition's own.
        copies: which copy of each partition is compared.
    """
    facts = tuple(_as_far_as_known(fact, routed) for fact in facts)
    impossible = list(unverifiable)
    checks: list[PartitionCheck] = []
    idle = 0
    confirmed: list[PartitionVerdict] = []
    for fact in facts:
        reason = _why_not(fact)
        if reason is not None:
            impossible.append(reason)
            continue
        check = _whole(fact, mode)
        if check is None:
            idle += 1
            kept = _held_runs(fact)
            mark = _mark(fact, kept, mode)
            if mark is not None and _ends_there(fact, mark):
                expired = _count_expired(fact, kept)
                confirmed.append(PartitionVerdict.for_unchanged(fact.source, fact.target, mark, expired=expired))
        else:
            checks.append(check)
    held = tuple(_as_compared(fact) for fact in facts)
    parts = {fact.source: fact.parts for fact in facts}
    plan = plan_routed(routed, held, mode=mode, impossible=impossible) if routed.rows else RoutedPlan()
    whole = {check.source: [(each.source_first, each.source_next) for each in check.ranges] for check in checks}
    if mode is VerifyMode.SAMPLE:
        checks = _sample(checks, budget.max_bytes or SAMPLE_BYTES, seed)
    elif budget.max_bytes is not None:
        checks = _limit_bytes(checks, budget.max_bytes)
    checks = _with_routed([_by_direction(check, parts[check.source]) for check in checks], plan, held, whole)
    return VerifyPlan(
        flow=flow,
        mode=mode,
        budget=budget,
        seed=seed,
        bins=pack(checks, bins_max),
        unverifiable=tuple(sorted(impossible, key=lambda verdict: verdict.source)),
        idle=idle,
        confirmed=tuple(confirmed),
        routed=plan,
        copies=copies,
    )


def _as_far_as_known(fact: VerifyFacts, routed: RoutedFacts) -> VerifyFacts:
    """Limit the fact to the offsets with known routes: after an interrupted run the map reaches further.

    What a run committed after the ledger was read is also left to the next verification.
    """
    known = routed.known_to(fact.source)
    settled = fact.settled is not None and known is not None and fact.settled.source_next <= known
    if known is None or settled or not fact.chain.may_route:
        return fact
    return replace(fact, settled=None, runs=clip(fact.runs, source_next=known))


def _as_compared(fact: VerifyFacts) -> VerifyFacts:
    """Keep the mark only if it still holds."""
    return fact if _still_holds(fact) else replace(fact, verified=None)


def _with_routed(
    checks: Sequence[PartitionCheck],
    plan: RoutedPlan,
    facts: Sequence[VerifyFacts],
    whole: Mapping[TopicPartition, Sequence[tuple[int, int]]],
) -> list[PartitionCheck]:
    """Return the checks, which also read what is routed from spans other than those that they compare.

    Args:
        whole: what they would read of each partition without a budget.
    """
    by_source = {check.source: check for check in checks}
    for fact in facts:
        wanted = needed_shares(plan).get(fact.source, ())
        ranges = [_routed_only(fact, *each) for each in left_over(wanted, whole.get(fact.source, ()))]
        if not ranges:
            continue
        check = by_source.get(fact.source) or _check_of(fact, ())
        sorted_ranges = sorted((*check.ranges, *ranges), key=lambda each: each.source_first)
        by_source[fact.source] = _with_ranges(check, sorted_ranges)
    return list(by_source.values())


def _routed_only(fact: VerifyFacts, first: int, end: int) -> CheckRange:
    bytes_held = (fact.source_bytes or 0) * (end - first) // max(fact.source_end - fact.source_start, 1)
    return CheckRange(
        first, end, 0, 0, records=0, encoded_runs=encode(()), estimated_bytes=bytes_held, routed_only=True
    )


def _ends_there(fact: VerifyFacts, mark: VerifiedMark) -> bool:
    """Return True if nothing was copied or written since: no run is writing and the target's log ends there."""
    return fact.settled == mark and fact.target_end == mark.target_next


def _why_not(fact: VerifyFacts) -> PartitionVerdict | None:
    if not fact.runs:
        if fact.source_start == fact.source_end and fact.target_start == fact.target_end:
            return None
        if fact.settled is not None and fact.settled.source_next <= fact.source_start:
            # Nothing that could be compared was copied yet.
            return None
    refused = why_unverifiable(fact.chain) if fact.chain else None
    if refused is not None:
        return PartitionVerdict.impossible(fact.source, fact.target, *refused)
    if fact.runs or nothing_copied(fact):
        return None
    return PartitionVerdict.impossible(
        fact.source,
        fact.target,
        "no-map",
        "the ledger has no offset map for this partition: this program copied nothing, or the ledger was lost "
        "(`mirror map rebuild`).",
    )


def nothing_copied(fact: VerifyFacts) -> bool:
    """Return True if possibly nothing was copied of all that was read: no records for readers, or all were dropped.

    Reading the source again shows if that is true.
    """
    if fact.runs or fact.settled is None:
        return False
    return fact.target_end - fact.target_start <= _MARKERS or (bool(fact.chain) and fact.shared_target)


def _passed_over(fact: VerifyFacts) -> int:
    """Return how many offsets a first start skipped, as configured, if no record was copied since; else 0.

    The target's log has never held a record, so none can have been lost there.
    """
    settled = fact.settled
    if not fact.starts_late or fact.runs or settled is None or settled.source_next > fact.source_end:
        return 0
    if settled.target_next or fact.target_end:
        return 0
    return max(settled.source_next - fact.source_start, 0)


def _first_target(fact: VerifyFacts) -> int:
    """Return the target offset at which copies can begin, if there is no map.

    What the target had when the flow claimed it is not the flow's: a flow back after a cutover finds records that the
    first start of the flow there had skipped.
    """
    settled = fact.settled
    if settled is None or settled.source_next > fact.source_start:
        return fact.target_start
    return max(fact.target_start, min(settled.target_next, fact.target_end))


def _whole(fact: VerifyFacts, mode: VerifyMode) -> PartitionCheck | None:
    """Return everything that the mode covers, as one range; None if that is nothing."""
    if not fact.runs and not nothing_copied(fact):
        return None
    # Not cut at the ends of the logs: records of the map beyond them existed once, and were lost.
    held = _held_runs(fact)
    mark = _mark(fact, held, mode)
    passed_over = _passed_over(fact)
    if not fact.runs and mark is None:
        mark = VerifiedMark(fact.source_start + passed_over, _first_target(fact))
    runs = clip(held, source_first=mark.source_next) if mark is not None else held
    several = may_give_several(fact.chain)
    range_ = _range(fact, runs, mark, tail=several or mode is not VerifyMode.SAMPLE, several=several)
    if range_ is None or not (range_.source_first < range_.source_next or range_.target_first < range_.target_next):
        if not passed_over:
            return None
        return replace(_check_of(fact, ()), offsets_before_map=passed_over)
    return replace(
        _check_of(fact, (range_,)),
        expired=_count_expired(fact, held),
        offsets_before_map=max(fact.runs[0].source_first - fact.source_start, 0) if fact.runs else passed_over,
        population=sum(run.count for run in held),
        nothing_copied=not fact.runs,
    )


def _mark(fact: VerifyFacts, held: Sequence[OffsetRun], mode: VerifyMode) -> VerifiedMark | None:
    """Return up to where nothing is left to compare: verified last time, or deleted by retention on either side."""
    if mode is VerifyMode.RECENT and _still_holds(fact):
        return fact.verified
    if fact.runs and not held:
        return VerifiedMark(*_deleted_until(fact))
    return None


def _held_runs(fact: VerifyFacts) -> tuple[OffsetRun, ...]:
    """Return the part of the map that both sides may still have."""
    return clip(fact.runs, source_first=fact.source_start, target_first=fact.target_start)


def _count_expired(fact: VerifyFacts, held: Sequence[OffsetRun]) -> int:
    """Return how many copied records one side has deleted."""
    return sum(run.count for run in fact.runs) - sum(run.count for run in held)


def _check_of(fact: VerifyFacts, ranges: tuple[CheckRange, ...]) -> PartitionCheck:
    return PartitionCheck(
        source=fact.source,
        target=fact.target,
        ranges=ranges,
        target_end=fact.target_end,
        source_compacted=fact.source_compacted,
        target_compacted=fact.target_compacted,
        shared_target=fact.shared_target,
        known_gaps=tuple(sorted(fact.known_gaps, key=lambda gap: gap.first_offset)),
        known_foreign=tuple(sorted(fact.known_foreign)),
        opposite=fact.opposite,
        chain=fact.chain,
        several=may_give_several(fact.chain),
    )


def _still_holds(fact: VerifyFacts) -> bool:
    """Return True if what was verified is a part of the present logs and map."""
    mark = fact.verified
    if mark is None or mark.source_next > fact.source_end or mark.target_next > fact.target_end:
        # The logs are shorter than what was verified: they are different logs now.
        return False
    before = clip(fact.runs, source_next=mark.source_next)
    behind = clip(fact.runs, source_first=mark.source_next)
    # If a partition was copied again, its records are at other offsets than those that were verified.
    return not (
        (before and before[-1].target_next > mark.target_next) or (behind and behind[0].target_first < mark.target_next)
    )


def _range(
    fact: VerifyFacts, runs: Sequence[OffsetRun], mark: VerifiedMark | None, *, tail: bool, several: bool
) -> CheckRange | None:
    """Return the range of some runs, with the holes around them that belong to it.

    Args:
        tail: True if what follows the last record belongs to it, where nothing can be missing there.
        several: True if a record may become several; the map has no end of the last one's rows, so the range begins
            with them.
    """
    settled = fact.settled if tail else None
    if not runs and (mark is None or settled is None):
        return None
    if runs:
        first = (runs[0].source_first, runs[0].target_first)
        last = (runs[-1].source_next, runs[-1].target_next)
    unknown_deleted = 0
    if mark is not None:
        # What was found equal ends exactly here, so everything after it is new. Retention may have passed that point.
        gone = _deleted_until(fact)
        first = (max(mark.source_next, fact.source_start, gone[0]), max(mark.target_next, fact.target_start, gone[1]))
        last = last if runs else first
        unknown_deleted = max(fact.target_start - max(mark.target_next, gone[1]), 0)
    to_end = False
    # A position ahead of the end was written after the end was read; what lies between is not known yet.
    if settled is not None and settled.source_next >= last[0] and last[1] <= settled.target_next <= fact.target_end:
        last = (settled.source_next, fact.target_end)
        to_end = True
    elif several and runs:
        last = (runs[-1].source_next - 1, runs[-1].target_next - 1)
        runs = clip(runs, source_next=last[0])
    last = (max(min(last[0], fact.source_end), first[0]), last[1])
    return replace(_check_range(fact, first, last, runs, to_end=to_end), unknown_deleted=unknown_deleted)


def _deleted_until(fact: VerifyFacts) -> tuple[int, int]:
    """Return the source and target offset after the last copied record that one side has deleted; (0, 0) if none is."""
    source_next = target_next = 0
    for run in fact.runs:
        count = min(max(fact.source_start - run.source_first, fact.target_start - run.target_first), run.count)
        if count <= 0:
            break
        source_next, target_next = run.source_first + count, run.target_first + count
    return source_next, target_next


def _check_range(
    fact: VerifyFacts, first: tuple[int, int], last: tuple[int, int], runs: Sequence[OffsetRun], *, to_end: bool
) -> CheckRange:
    held = max(fact.source_end - fact.source_start, 1)
    return CheckRange(
        source_first=first[0],
        source_next=last[0],
        target_first=first[1],
        target_next=last[1],
        records=sum(run.count for run in runs),
        encoded_runs=encode(runs),
        estimated_bytes=(fact.source_bytes or 0) * (last[0] - first[0]) // held,
        to_end=to_end,
    )


def clip(
    runs: Sequence[OffsetRun],
    *,
    source_first: int | None = None,
    source_next: int | None = None,
    target_first: int | None = None,
) -> tuple[OffsetRun, ...]:
    """Return the part of a map that lies within bounds."""
    clipped: list[OffsetRun] = []
    for run in runs:
        skip = max(
            0 if source_first is None else source_first - run.source_first,
            0 if target_first is None else target_first - run.target_first,
            0,
        )
        end = run.count if source_next is None else min(run.count, source_next - run.source_first)
        if skip < end:
            clipped.append(OffsetRun(run.source_first + skip, run.target_first + skip, end - skip))
    return tuple(clipped)


def take(runs: Sequence[OffsetRun], first: int, count: int) -> tuple[OffsetRun, ...]:
    """Records number `first` and following of a map, counted from 0."""
    ends = list(accumulate(run.count for run in runs))
    taken: list[OffsetRun] = []
    at = bisect_right(ends, first)
    while count > 0 and at < len(runs):
        run = runs[at]
        skip = max(first - (ends[at] - run.count), 0)
        length = min(run.count - skip, count)
        taken.append(OffsetRun(run.source_first + skip, run.target_first + skip, length))
        count -= length
        first += length
        at += 1
    return tuple(taken)


def _limit_bytes(checks: Sequence[PartitionCheck], max_bytes: int) -> list[PartitionCheck]:
    """Give every partition the same share of what it needs, so that a small budget skips none.

    Partitions of unknown size are not cut: the tasks count what they read.
    """
    wanted = sum(check.estimated_bytes for check in checks)
    if wanted <= max_bytes:
        return list(checks)
    return [_shorten(check, max_bytes / wanted) for check in checks]


def _shorten(check: PartitionCheck, share: float) -> PartitionCheck:
    (whole,) = check.ranges
    records = max(int(whole.records * share), 1)
    if not check.estimated_bytes or records >= whole.records:
        return check
    runs = take(whole.runs, 0, records)
    first = OffsetRun(whole.source_first, whole.target_first, 1)
    shorter = _span(check, runs, records, first, int(whole.estimated_bytes * share))
    return _with_ranges(check, [replace(shorter, unknown_deleted=whole.unknown_deleted)])


def _span(
    check: PartitionCheck, taken: Sequence[OffsetRun], after: int, first: OffsetRun, estimated_bytes: int
) -> CheckRange:
    """Return a part of the one range of a check.

    Args:
        taken: its map.
        after: the number of the record that follows it.
        first: where it begins.
    """
    (whole,) = check.ranges
    end, to_end = (taken[-1].source_next, taken[-1].target_next), False
    if check.several:
        # All rows of the last record belong to it.
        following = take(whole.runs, after, 1)
        end, to_end = (whole.source_next, whole.target_next), whole.to_end
        if following:
            end, to_end = (following[0].source_first, following[0].target_first), False
    return CheckRange(
        source_first=first.source_first,
        source_next=end[0],
        target_first=first.target_first,
        target_next=end[1],
        records=sum(run.count for run in taken),
        encoded_runs=encode(taken),
        estimated_bytes=estimated_bytes,
        to_end=to_end,
    )


def _sample(checks: Sequence[PartitionCheck], max_bytes: int, seed: int) -> list[PartitionCheck]:
    """Return spans of consecutive records, as many for a partition as its share of all records."""
    population = sum(check.records for check in checks)
    known = sum(check.estimated_bytes for check in checks)
    record_bytes = known / population if known and population else _UNKNOWN_RECORD_BYTES
    records = max_bytes / max(record_bytes, 1)
    sampled = []
    for check in checks:
        if not check.records:
            continue
        wanted = records * check.records / population
        sampled.append(_with_ranges(check, list(_spans(check, wanted, seed))))
    return sampled


def _spans(check: PartitionCheck, wanted: float, seed: int) -> Iterator[CheckRange]:
    """At least one span; all of the partition when that many are wanted."""
    (whole,) = check.ranges
    blocks = -(-whole.records // SAMPLE_RECORDS)
    count = min(max(int(wanted / SAMPLE_RECORDS), 1), blocks)
    runs = whole.runs
    chosen = random.Random(f"{seed} {check.source.topic} {check.source.partition}").sample(range(blocks), count)
    for block in sorted(chosen):
        taken = take(runs, block * SAMPLE_RECORDS, SAMPLE_RECORDS)
        share = whole.estimated_bytes * sum(run.count for run in taken) // whole.records
        yield _span(check, taken, (block + 1) * SAMPLE_RECORDS, taken[0], share)


def _by_direction(check: PartitionCheck, parts: Sequence[MapPart]) -> PartitionCheck:
    """Split the check into ranges that were copied by one flow each; transforms are compared in one direction."""
    if check.chain or not any(part.by_opposite for part in parts):
        return check
    return _with_ranges(check, [piece for range_ in check.ranges for piece in _pieces(range_, parts)])


def _pieces(whole: CheckRange, parts: Sequence[MapPart]) -> Iterator[CheckRange]:
    runs, first = whole.runs, (whole.source_first, whole.target_first)
    for part, behind in with_ends(parts):
        last = behind is None or behind.source_first >= whole.source_next or behind.target_first >= whole.target_next
        end = (whole.source_next, whole.target_next)
        if behind is not None and not last:
            end = (max(behind.source_first, first[0]), max(behind.target_first, first[1]))
        if end == first and not (last and whole.to_end):
            continue
        inside = clip(runs, source_first=first[0], source_next=None if last else end[0])
        yield replace(
            whole,
            source_first=first[0],
            source_next=end[0],
            target_first=first[1],
            target_next=end[1],
            records=sum(run.count for run in inside),
            encoded_runs=encode(inside),
            estimated_bytes=whole.estimated_bytes
            * (end[0] - first[0])
            // max(whole.source_next - whole.source_first, 1),
            to_end=whole.to_end and last,
            by_opposite=part.by_opposite,
            unknown_deleted=whole.unknown_deleted if first[0] == whole.source_first else 0,
        )
        first = end
        if last:
            return


def _with_ranges(check: PartitionCheck, ranges: Sequence[CheckRange]) -> PartitionCheck:
    return replace(check, ranges=tuple(ranges))


def pack(checks: Sequence[PartitionCheck], bins_max: int) -> tuple[tuple[PartitionCheck, ...], ...]:
    """Deal partitions into at most `bins_max` bins of about equal weight: largest first, each to the lightest bin."""
    bins: list[list[PartitionCheck]] = [[] for _ in range(min(max(bins_max, 1), len(checks)))]
    lightest = [(0, number) for number in range(len(bins))]
    for check in sorted(checks, key=lambda check: (-check.weight, check.source)):
        weight, number = heapq.heappop(lightest)
        bins[number].append(check)
        heapq.heappush(lightest, (weight + check.weight, number))
    return tuple(tuple(sorted(bin_, key=lambda check: check.source)) for bin_ in bins if bin_)
