"""Planning a comparison by state: which partitions of compacted topics are compared, by which task. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mirror_lib.features.verify.compare.inverted import inverse_runs
from mirror_lib.features.verify.findings import PartitionVerdict
from mirror_lib.features.verify.model import (
    NO_COPIES,
    Budget,
    CheckRange,
    PartitionCheck,
    StateCheck,
    VerifyFacts,
    VerifyMode,
    VerifyPlan,
)
from mirror_lib.features.verify.planning.plan import NO_BUDGET, clip, nothing_copied, pack
from mirror_lib.ledger.directions import with_ends
from mirror_lib.offsets.runs import OffsetRun, encode
from mirror_lib.topology.names import FlowId, TopicPartition

#: Stable codes of why a partition cannot be compared by state.
TRANSFORMED, SHARED_TARGET = "transformed", "shared-target"


def plan_state(
    flow: FlowId,
    facts: Iterable[VerifyFacts],
    *,
    budget: Budget = NO_BUDGET,
    bins_max: int = 1,
    unverifiable: Sequence[PartitionVerdict] = (),
    copies: Mapping[TopicPartition, str | None] = NO_COPIES,
) -> VerifyPlan:
    """Return the plan for all partitions whose source topic is compacted; the others count as idle."""
    impossible = list(unverifiable)
    checks: list[PartitionCheck] = []
    idle = 0
    for fact in facts:
        if not fact.source_compacted or fact.copied_to is None:
            idle += 1
            continue
        refused = _why_not(fact)
        if refused is not None:
            impossible.append(refused)
        else:
            checks.append(_check(fact, fact.copied_to))
    return VerifyPlan(
        flow=flow,
        mode=VerifyMode.STATE,
        budget=budget,
        seed=0,
        bins=pack(checks, bins_max),
        unverifiable=tuple(sorted(impossible, key=lambda verdict: verdict.source)),
        idle=idle,
        copies=copies,
    )


def _why_not(fact: VerifyFacts) -> PartitionVerdict | None:
    if fact.chain:
        return PartitionVerdict.impossible(
            fact.source,
            fact.target,
            TRANSFORMED,
            f"its records are transformed ({', '.join(fact.chain.names)}), so keys and values on the target differ "
            "from the source: use --mode full or recent, which compare the transformed records.",
        )
    if fact.shared_target:
        return PartitionVerdict.impossible(
            fact.source,
            fact.target,
            SHARED_TARGET,
            "other source partitions, a backfill or transforms write to the same target partition, so its newest "
            "record of a key may come from elsewhere.",
        )
    return None


def _by_opposite(fact: VerifyFacts) -> tuple[OffsetRun, ...]:
    """Return the inverse map of what the opposite flow copied."""
    found: list[OffsetRun] = []
    for part, behind in with_ends(fact.parts):
        if part.by_opposite:
            end = None if behind is None else behind.source_first
            found += inverse_runs(clip(fact.runs, source_first=part.source_first, source_next=end))
    return tuple(found)


def _check(fact: VerifyFacts, copied_to: int) -> PartitionCheck:
    whole = CheckRange(
        source_first=fact.source_start,
        source_next=max(copied_to, fact.source_start),
        target_first=fact.target_start,
        target_next=fact.target_end,
        records=sum(run.count for run in fact.runs),
        encoded_runs=encode(fact.runs),
        estimated_bytes=fact.source_bytes or 0,
    )
    return PartitionCheck(
        source=fact.source,
        target=fact.target,
        ranges=(whole,),
        target_end=fact.target_end,
        source_compacted=fact.source_compacted,
        target_compacted=fact.target_compacted,
        known_gaps=tuple(sorted(fact.known_gaps, key=lambda gap: gap.first_offset)),
        known_foreign=tuple(sorted(fact.known_foreign)),
        state=StateCheck(
            copied_to,
            settled=fact.settled is not None,
            # A map that was lost begins nowhere.
            starts_late=fact.starts_late and (bool(fact.runs) or nothing_copied(fact)),
            by_opposite=encode(_by_opposite(fact)),
        ),
    )
