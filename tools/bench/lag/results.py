"""Results of the lag under load, and their display."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table

from tools.bench.comparison.results import Goal
from tools.bench.copiers.phases import PHASES, PhaseTime, rounds_of
from tools.bench.copiers.settings import Copier
from tools.bench.lag.arrivals import Lag, Second
from tools.bench.lag.load import Written

#: Goal: the maximum lag of any record.
GOAL_SECONDS = 2.0
#: A producer this far behind its schedule did not write the requested load.
_BEHIND_SECONDS = 0.5
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """One phase over all rounds, in seconds."""

    phase: str
    middle: float
    most: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """The rounds of this project's runs under the load."""

    runs: int
    rounds: int
    phases: tuple[PhaseFigures, ...]

    @classmethod
    def of(cls, times: Sequence[PhaseTime], runs: int) -> Rounds:
        """Sum up the phases of all runs. A round that found nothing to copy ends a run, and has no later phases."""
        rounds = [each for each in rounds_of(times) if any(time.phase == PHASES[-1] for time in each)]
        figures = []
        for phase in PHASES:
            spent = [sum(time.seconds for time in each if time.phase == phase) for each in rounds]
            if spent:
                figures.append(PhaseFigures(phase, median(spent), max(spent)))
        whole = [each[-1].began + each[-1].seconds - each[0].began for each in rounds]
        if whole:
            figures.append(PhaseFigures("round", median(whole), max(whole)))
        return cls(runs, len(rounds), tuple(figures))


@dataclass(frozen=True, slots=True)
class Sustained:
    """One copier under the load."""

    copier: Copier
    written: Written
    #: Of the records created after the start-up phase.
    lag: Lag
    #: Of the records created in it.
    start_up: Lag | None
    seconds: tuple[Second, ...]
    #: User and system seconds of the copier's processes while the load was written.
    cpu_seconds: float
    #: Time from the end of the load to the arrival of its last record.
    drained_seconds: float
    rounds: Rounds | None = None


def goals(measured: Sequence[Sustained]) -> tuple[Goal, ...]:
    """Return the goals: this project's lag, and a load as requested."""
    ours = next((each for each in measured if each.copier is Copier.MIRROR), None)
    behind = max((each.written.behind_seconds for each in measured), default=None)
    return (
        Goal(
            text="Sustained lag of mirror, all records after the start-up: seconds",
            limit=GOAL_SECONDS,
            value=ours.lag.most if ours else None,
            detail=f"p99 {ours.lag.p99:.2f}" if ours else "not measured",
            reached=ours.lag.most < GOAL_SECONDS if ours else None,
        ),
        Goal(
            text="Maximum delay of the load generator (s)",
            limit=_BEHIND_SECONDS,
            value=behind,
            detail=", ".join(f"{each.written.bytes_per_second / 1e6:.1f} MB/s" for each in measured),
            reached=None if behind is None else behind < _BEHIND_SECONDS,
        ),
    )


def lag_table(measured: Sequence[Sustained]) -> Table:
    """Return the distribution for every copier."""
    table = Table(
        title="Seconds from a record's creation to its arrival at a reader of the target", title_justify="left"
    )
    table.add_column("copier")
    for head in ("records", "median", "p99", "most", "start-up, most", "drained after", "CPU seconds", "ack at source"):
        table.add_column(head, justify="right")
    for each in measured:
        table.add_row(
            each.copier.label,
            f"{each.lag.records:,}",
            *(f"{value:.3f}" for value in (each.lag.median, each.lag.p99, each.lag.most)),
            f"{each.start_up.most:.3f}" if each.start_up else _UNKNOWN,
            f"{each.drained_seconds:.2f}",
            f"{each.cpu_seconds:.1f}",
            f"{each.written.acknowledged_seconds:.3f}",
        )
    return table


def time_line_table(measured: Sequence[Sustained]) -> Table:
    """Return the largest lag of each second, side by side."""
    table = Table(title="Time line: records seen in each second, and the largest lag among them", title_justify="left")
    table.add_column("second", justify="right")
    for each in measured:
        table.add_column(each.copier.label, justify="right")
    lines = [{second.number: second for second in each.seconds} for each in measured]
    for number in sorted({number for line in lines for number in line}):
        table.add_row(str(number), *(_cell(line.get(number)) for line in lines))
    return table


def _cell(second: Second | None) -> str:
    if second is None or second.most is None:
        return _UNKNOWN
    return f"{second.records:,}  {second.most:6.3f} s"


def rounds_table(rounds: Rounds) -> Table:
    """Return the time of a round by phase."""
    table = Table(title=f"Phases of {rounds.rounds} rounds in {rounds.runs} runs, seconds", title_justify="left")
    table.add_column("phase")
    table.add_column("median", justify="right")
    table.add_column("most", justify="right")
    for figures in rounds.phases:
        table.add_row(figures.phase, f"{figures.middle:.3f}", f"{figures.most:.3f}")
    return table


def to_plain(measured: Sequence[Sustained]) -> list[dict[str, Any]]:
    """Return the results for JSON."""
    return [{**asdict(each), "copier": each.copier.value} for each in measured]
