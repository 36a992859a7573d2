"""The results of a campaign, fault by fault. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tools.faults.records.sequences import Findings

#: Seconds from a broker's restart until the partitions that it led are copied again.
RECOVERY_GOAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault, and the findings on the target after it."""

    kind: str
    #: True if a run was copying at that moment, by the target's end offsets.
    mid_copy: bool
    #: New errors on the target.
    findings: Findings
    #: Seconds from the beginning of the hit run until everything was caught up.
    seconds: float
    #: Runs until everything was caught up, including the one that was hit.
    runs: int
    #: Records of interrupted runs that later ones found on the target.
    recovered: int = 0
    #: See `RECOVERY_GOAL_SECONDS`; None if no broker was down.
    recovery_seconds: float | None = None
    #: Reasons of the errors that the runs ended with, in order.
    reasons: tuple[str, ...] = ()
    #: The same errors as text.
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KindLine:
    """All faults of one kind."""

    kind: str
    tried: int
    mid_copy: int
    findings: Findings
    recovered: int
    seconds: float
    #: The longest, None if no broker was down.
    recovery_seconds: float | None


@dataclass(frozen=True, slots=True)
class Complete:
    """The comparison of everything at the end: the whole target against the whole source."""

    source_records: int
    target_records: int
    findings: Findings
    #: Errors of the source itself; then nothing can be said about the copy.
    input_faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Results:
    """Everything so far; `complete` is None if the campaign did not come to its end."""

    seed: int
    strikes: list[Strike] = field(default_factory=list)
    complete: Complete | None = None
    #: Why the campaign ended early.
    stopped: str | None = None

    @property
    def lines(self) -> tuple[KindLine, ...]:
        """By kind, in the order in which they came first."""
        return tuple(_line(kind, self._of(kind)) for kind in dict.fromkeys(strike.kind for strike in self.strikes))

    @property
    def findings(self) -> Findings:
        """The sum over all faults, as found during the campaign."""
        return sum((strike.findings for strike in self.strikes), Findings())

    @property
    def recovery_seconds(self) -> float | None:
        """The longest."""
        return _longest(self.strikes)

    @property
    def clean(self) -> bool:
        """True if the campaign came to its end and found nothing."""
        return (
            self.stopped is None
            and self.complete is not None
            and not self.complete.input_faults
            and self.complete.findings.total == 0
            and self.findings.total == 0
        )

    def _of(self, kind: str) -> list[Strike]:
        return [strike for strike in self.strikes if strike.kind == kind]


def _line(kind: str, strikes: Sequence[Strike]) -> KindLine:
    return KindLine(
        kind=kind,
        tried=len(strikes),
        mid_copy=sum(strike.mid_copy for strike in strikes),
        findings=sum((strike.findings for strike in strikes), Findings()),
        recovered=sum(strike.recovered for strike in strikes),
        seconds=sum(strike.seconds for strike in strikes) / len(strikes),
        recovery_seconds=_longest(strikes),
    )


def _longest(strikes: Sequence[Strike]) -> float | None:
    return max((each.recovery_seconds for each in strikes if each.recovery_seconds is not None), default=None)
