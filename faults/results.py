"""What a campaign found, fault by fault. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from faults.sequences import Findings

#: Seconds from a broker's return until the partitions that it led are copied again.
RECOVERY_GOAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault, and what was seen on the target after it."""

    kind: str
    #: Whether a run was copying at that moment, as its target's ends showed.
    mid_copy: bool
    #: What was wrong on the target and had not been before.
    findings: Findings
    #: Seconds from the begin of the run that was struck until everything was caught up.
    seconds: float
    #: Runs until everything was caught up, the struck one included.
    runs: int
    #: Records of interrupted runs that later ones found on the target.
    recovered: int = 0
    #: See `RECOVERY_GOAL_SECONDS`; None where no broker went.
    recovery_seconds: float | None = None
    #: Reasons of the errors that the runs ended with, in order.
    reasons: tuple[str, ...] = ()
    #: The same errors in words.
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
    #: The longest, None where no broker went.
    recovery_seconds: float | None


@dataclass(frozen=True, slots=True)
class Complete:
    """The reading of everything at the end: the whole target against the whole source."""

    source_records: int
    target_records: int
    findings: Findings
    #: What is wrong with the source itself; then nothing can be said of the copy.
    input_faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Results:
    """Everything so far; `complete` is None when the campaign did not come to its end."""

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
        """Of all faults, as seen while the campaign ran."""
        return sum((strike.findings for strike in self.strikes), Findings())

    @property
    def recovery_seconds(self) -> float | None:
        """The longest."""
        return _longest(self.strikes)

    @property
    def clean(self) -> bool:
        """Whether the campaign came to its end and found nothing."""
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
