"""The summary of a verification: for the console, JSON and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from mirror_lib.counted import counted
from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict, Verdict
from mirror_lib.features.verify.model import VerifyMode, VerifyPlan

EQUAL, NOT_VERIFIED, DIFFERENT = 0, 1, 3
#: The share of wrong records for which a sample's confidence is stated.
_SHARE = 0.001


@dataclass(frozen=True, slots=True)
class Confidence:
    """What a sample without differences proves about the records that it was taken from."""

    sampled: int
    population: int
    #: Spans of consecutive records in the sample.
    spans: int

    def of(self, share: float) -> float:
        """Return the probability that the sample would have shown a difference if this share of all records differed.

        1 - (1 - share)^n for n records, with differences spread at random; a sample of everything misses nothing.
        """
        return 1.0 if self.sampled >= self.population else 1 - (1 - share) ** self.sampled

    def of_blocks(self, share: float) -> float:
        """Like `of`, if differences come in blocks: as if each span were one record."""
        return 1.0 if self.sampled >= self.population else 1 - (1 - share) ** self.spans

    @property
    def share_found(self) -> float:
        """The share of differing records, spread at random, that the sample would have shown with 95 % confidence."""
        if self.sampled >= self.population:
            return 0.0
        return 1 - math.pow(0.05, 1 / self.sampled) if self.sampled else 1.0

    @property
    def sentence(self) -> str:
        """For people."""
        return (
            f"{self.sampled:,} of {self.population:,} records in {self.spans:,} random spans. If at least "
            f"{self.share_found:.4%} of the records differed, at random, the sample would have found one with 95 % "
            f"confidence (1 - (1 - p)^n); for {_SHARE:.1%} the confidence is {self.of(_SHARE):.2%}. For differences "
            "in blocks the number of spans counts: for 1 % of all blocks the confidence is "
            f"{self.of_blocks(0.01):.2%}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "sampled": self.sampled,
            "population": self.population,
            "spans": self.spans,
            "share_found_with_95_percent": self.share_found,
            "statement": self.sentence,
        }


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of a verification."""

    verification_id: str
    flow: str
    mode: VerifyMode
    seed: int
    started: datetime
    finished: datetime
    verdicts: tuple[PartitionVerdict, ...]
    #: Partitions with nothing to compare.
    idle: int
    confidence: Confidence | None = None
    #: Those of them that are still equal up to the end of the copy, since nothing was added.
    confirmed: tuple[PartitionVerdict, ...] = ()
    #: Of target partitions that transforms send records to.
    routed: tuple[RoutedVerdict, ...] = ()

    @classmethod
    def of(
        cls,
        plan: VerifyPlan,
        verdicts: tuple[PartitionVerdict, ...],
        *,
        verification_id: str,
        started: datetime,
        finished: datetime,
        routed: tuple[RoutedVerdict, ...] = (),
    ) -> Self:
        """Sum up what was found."""
        return cls(
            verification_id=verification_id,
            flow=str(plan.flow),
            mode=plan.mode,
            seed=plan.seed,
            started=started,
            finished=finished,
            verdicts=verdicts,
            idle=plan.idle,
            confidence=_confidence(plan, verdicts) if plan.mode is VerifyMode.SAMPLE else None,
            confirmed=plan.confirmed,
            routed=routed,
        )

    def count(self, verdict: Verdict) -> int:
        """Count partitions with a verdict, including routed target partitions."""
        return sum(each.verdict is verdict for each in self._all)

    @property
    def _all(self) -> Sequence[PartitionVerdict | RoutedVerdict]:
        return (*self.verdicts, *self.routed)

    @property
    def records(self) -> int:
        """Records found equal."""
        return sum(each.records for each in self._all)

    @property
    def source_bytes(self) -> int:
        """Bytes of the source's logs that were read."""
        return sum(each.source_bytes for each in self.verdicts)

    @property
    def difference_count(self) -> int:
        """All differences."""
        return sum(each.difference_count for each in self._all)

    @property
    def seconds(self) -> float:
        """From beginning to end."""
        return (self.finished - self.started).total_seconds()

    @property
    def partial(self) -> int:
        """Partitions that a budget ended before their end."""
        return sum(each.stopped is not None for each in self.verdicts)

    @property
    def exit_code(self) -> int:
        """0 all equal, 3 something differs, else 1: something could not be verified."""
        if self.count(Verdict.DIFFERENT):
            return DIFFERENT
        return NOT_VERIFIED if self.count(Verdict.UNVERIFIABLE) else EQUAL

    @property
    def sentence(self) -> str:
        """The result for people."""
        if self.exit_code == DIFFERENT:
            partitions = self.count(Verdict.DIFFERENT)
            return f"DIFFERENT: {counted(self.difference_count, 'difference')} in {counted(partitions, 'partition')}."
        if self.exit_code == NOT_VERIFIED:
            return f"NOT VERIFIED: {counted(self.count(Verdict.UNVERIFIABLE), 'partition')} could not be compared."
        if not self.verdicts and not self.routed:
            why = ": no selected topic is compacted on the source" if self.mode is VerifyMode.STATE else ""
            return f"Nothing to compare{why}."
        if not self.routed and all(verdict.is_empty for verdict in self.verdicts):
            return (
                f"Nothing to compare: {counted(len(self.verdicts), 'partition has', 'partitions have')} no "
                "records to copy."
            )
        ended = (
            f" A budget stopped {counted(self.partial, 'partition before its', 'partitions before their')} end."
            if self.partial
            else ""
        )
        sent = f" (and {counted(len(self.routed), 'target partition')} of routes)" if self.routed else ""
        what = "keys" if self.mode is VerifyMode.STATE else "records"
        equal = f"EQUAL: {self.records:,} {what} in {counted(len(self.verdicts), 'partition')}{sent}."
        return f"{equal}{self.uncommitted}{ended}"

    @property
    def aborted(self) -> int:
        """Compared records of aborted transactions."""
        return sum(each.aborted for each in self.verdicts)

    @property
    def undecided(self) -> int:
        """Compared records of transactions that had not ended."""
        return sum(each.undecided for each in self.verdicts)

    @property
    def uncommitted(self) -> str:
        """Sentences about records that readers of committed records see on one side only."""
        aborted, undecided = self.aborted, self.undecided
        found = ""
        if aborted:
            found += f" {aborted:,} of them {_are(aborted)} of aborted transactions,"
        if undecided:
            found += f"{' and' if aborted else ''} {undecided:,} of them {_are(undecided)} of open transactions,"
        if not found:
            return ""
        return f"{found} which read_committed consumers see only on the side to which they were copied."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `--json` and the ledger's readers."""
        return {
            "verification_id": self.verification_id,
            "flow": self.flow,
            "mode": self.mode.value,
            "seed": self.seed,
            "started": self.started.isoformat(),
            "finished": self.finished.isoformat(),
            "seconds": round(self.seconds, 3),
            "exit_code": self.exit_code,
            "result": self.sentence,
            "records": self.records,
            "aborted": self.aborted,
            "undecided": self.undecided,
            "source_bytes": self.source_bytes,
            "difference_count": self.difference_count,
            "equal": self.count(Verdict.EQUAL),
            "different": self.count(Verdict.DIFFERENT),
            "unverifiable": self.count(Verdict.UNVERIFIABLE),
            "idle_partitions": self.idle,
            "confirmed_partitions": len(self.confirmed),
            "confidence": self.confidence.to_dict() if self.confidence else None,
            "partitions": [verdict.to_dict() for verdict in self.verdicts],
            "routed": [verdict.to_dict() for verdict in self.routed],
        }


def _are(count: int) -> str:
    return "is a record" if count == 1 else "are records"


def _confidence(plan: VerifyPlan, verdicts: Iterable[PartitionVerdict]) -> Confidence:
    verdicts = tuple(verdicts)
    return Confidence(
        sampled=sum(verdict.records for verdict in verdicts),
        population=sum(check.population for check in plan.partitions),
        spans=sum(outcome.complete for verdict in verdicts for outcome in verdict.outcomes),
    )
