"""What a task keeps in mind while it compares: how much of its budget is used, and what it says of a partition."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mirror_lib.errors import MirrorError
from mirror_lib.verify.findings import Difference, PartitionVerdict, RangeOutcome, Stopped, Verdict
from mirror_lib.verify.model import PartitionCheck, VerifyJob


@dataclass(slots=True)
class Spent:
    """What the task has used of its budget, over all its partitions."""

    job: VerifyJob
    bytes: int = 0

    @property
    def over(self) -> Stopped | None:
        """Which bound is reached."""
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
    """What is to be said of a partition whose ranges were compared.

    Args:
        outcomes: of the ranges that were begun.
        keep: differences to keep.
        error: what ended it.
        stopped: which budget ended it.
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
        # Where copying began the map would say.
        kept_by = ", and its transforms do not drop all" if check.chain else ""
        detail = (
            f"the ledger has no offset map of it{kept_by}: at least {verdict.difference_count + verdict.records:,} "
            "records are there to be compared (`mirror map rebuild`)."
        )
        return PartitionVerdict.impossible(check.source, check.target, "no-map", detail)
    if verdict.difference_count:
        return replace(verdict, verdict=Verdict.DIFFERENT)
    if error is not None:
        return replace(verdict, verdict=Verdict.UNVERIFIABLE, reason=error.reason, detail=str(error))
    if stopped is not None and not verdict.records:
        detail = f"the budget of {stopped.value} was used up before anything of it was compared."
        return replace(verdict, verdict=Verdict.UNVERIFIABLE, reason="budget", detail=detail)
    return verdict
