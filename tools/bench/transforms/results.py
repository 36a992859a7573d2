"""Results of the transforms bench, and its goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from rich.table import Table

from tools.bench.clusters.window import Window
from tools.bench.comparison.results import Goal
from tools.bench.machine.cpu_parts import DRIVER, JVM, WORKERS
from tools.bench.transforms.cases import Case, Contender, Outcome
from tools.bench.transforms.check import Check

_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class Result:
    """One copy.

    Attributes:
        case: its name.
        records: of the source, all of which went through the transform.
        first_record: seconds from the request to the first record on the target.
        whole: seconds from the request to the end: for this project, of the run with its commit; for MM2, the last
            record.
        cpu_seconds: of the copier's processes, from the request to the end.
        cpu_parts: the same by part, if there are several.
        stage: seconds of the Spark job, as reported by this project's run.
    """

    case: str
    contender: Contender
    round: int
    records: int
    window: Window
    first_record: float
    whole: float
    cpu_seconds: float
    check: Check
    cpu_parts: Mapping[str, float] = field(default_factory=dict)
    stage: float | None = None

    @property
    def rate(self) -> float:
        """Records of the source per second, from the first record on the target to the last."""
        return self.records / self.window.seconds

    @property
    def second_half_rate(self) -> float:
        """The same for the second half of the arrivals: a JVM is warm by then."""
        return self.window.second_half_rate * self.records / self.window.records

    @property
    def whole_rate(self) -> float:
        """Records of the source per second, from the request to the end."""
        return self.records / self.whole


@dataclass(frozen=True, slots=True)
class Results:
    """All copies of all cases."""

    cases: tuple[Case, ...]
    measured: tuple[Result, ...]

    def of(self, case: Case, contender: Contender) -> list[Result]:
        """Return the rounds."""
        return [each for each in self.measured if each.case == case.name and each.contender is contender]

    def middle(self, case: Case, contender: Contender, figure: Callable[[Result], float]) -> float | None:
        """Return the median of a figure over the rounds, None if nothing was measured."""
        rounds = self.of(case, contender)
        return median(map(figure, rounds)) if rounds else None

    def times(self, case: Case, peer: Contender, figure: Callable[[Result], float]) -> float | None:
        """Return the figure of this project's transformed copy as a multiple of the peer's."""
        ours, theirs = (self.middle(case, each, figure) for each in (Contender.TRANSFORMED, peer))
        return ours / theirs if ours is not None and theirs else None


def goals(results: Results) -> tuple[Goal, ...]:
    """Return the goals, by medians over the rounds."""
    rates = [
        _rate_goal(results, case, peer, limit)
        for case in results.cases
        for peer, limit in case.against.items()
        if limit is not None
    ]
    return (*rates, _equal_goal(results))


def _rate_goal(results: Results, case: Case, peer: Contender, limit: float) -> Goal:
    ratio = results.times(case, peer, lambda each: each.rate)
    text = f"{case.title}: times {peer.label}"
    if ratio is None:
        return Goal(text, limit, None, "not measured", None)
    instead = case.mm2_outcome is Outcome.MARKED
    detail = "no equivalent chain" if instead else "records per second"
    # A comparison with another peer does not decide this goal.
    return Goal(text, limit, ratio, detail, None if instead else ratio >= limit)


def _equal_goal(results: Results) -> Goal:
    equal, count = sum(each.check.equal for each in results.measured), len(results.measured)
    return Goal(
        text="Share of correct copies",
        limit=1.0,
        value=equal / count if count else None,
        detail=f"{equal} of {count}",
        reached=equal == count if count else None,
    )


def speed_table(results: Results) -> Table:
    """Return the speed of each contender, and how many times as fast this project is."""
    table = Table(
        title="Records of the source per second (medians; in brackets the second half alone)", title_justify="left"
    )
    table.add_column("case", overflow="fold")
    table.add_column("copier")
    heads = ("first to last record", "x", "whole run", "x", "first record", "end", "equal")
    for head in heads:
        table.add_column(head, justify="right")
    for case in results.cases:
        for contender in case.contenders:
            rounds = results.of(case, contender)
            if rounds:
                table.add_row(
                    f"{case.title}\n[dim]{case.workload.title}[/]", contender.label, *_cells(results, case, rounds)
                )
    return table


def _cells(results: Results, case: Case, rounds: Sequence[Result]) -> tuple[str, ...]:
    contender = rounds[0].contender
    rate, half = _middle(each.rate for each in rounds), _middle(each.second_half_rate for each in rounds)
    spread = ""
    if len(rounds) > 1:
        lowest, highest = min(each.rate for each in rounds), max(each.rate for each in rounds)
        spread = f"\n[dim]{_thousands(lowest)} to {_thousands(highest)}[/]"
    peer = contender is not Contender.TRANSFORMED
    return (
        f"{_thousands(rate)} [dim]({_thousands(half)})[/]{spread}",
        _times(results.times(case, contender, lambda each: each.rate)) if peer else "",
        _thousands(_middle(each.whole_rate for each in rounds)),
        _times(results.times(case, contender, lambda each: each.whole_rate)) if peer else "",
        f"{_middle(each.first_record for each in rounds):.2f} s",
        f"{_middle(each.whole for each in rounds):.2f} s",
        "yes" if all(each.check.equal for each in rounds) else "[red]no[/]",
    )


def cpu_table(results: Results) -> Table:
    """Return the CPU seconds of each contender's processes."""
    table = Table(title="CPU seconds of the copier's processes (medians)", title_justify="left")
    for head in ("case", "copier"):
        table.add_column(head)
    for head in ("first to last record", "from the start", DRIVER, JVM, WORKERS):
        table.add_column(head, justify="right")
    for case in results.cases:
        for contender in case.contenders:
            rounds = results.of(case, contender)
            if rounds:
                table.add_row(
                    case.name,
                    contender.label,
                    f"{_middle(each.window.cpu_seconds for each in rounds):.2f}",
                    f"{_middle(each.cpu_seconds for each in rounds):.2f}",
                    *(_part(rounds, name) for name in (DRIVER, JVM, WORKERS)),
                )
    return table


def _part(rounds: Sequence[Result], name: str) -> str:
    known = [each.cpu_parts[name] for each in rounds if name in each.cpu_parts]
    return f"{_middle(known):.2f}" if known else _UNKNOWN


def wrong_copies(results: Results) -> list[str]:
    """Return a sentence for each copy without the expected content."""
    return [
        f"{each.contender.label}, {each.case}, round {each.round}: {each.check.wrong_partitions} partitions have "
        f"another number of records, {each.check.differing} of {each.check.sampled} sampled ones are wrong"
        for each in results.measured
        if not each.check.equal
    ]


def to_plain(results: Results) -> dict[str, Any]:
    """Return the results for JSON."""
    return {
        "cases": [
            {
                "name": case.name,
                "title": case.title,
                "workload": asdict(case.workload),
                "transform": dict(case.ours),
                "smt": dict(case.smt),
                "mm2_writes": case.mm2_outcome.value,
                "times": {peer.value: results.times(case, peer, lambda each: each.rate) for peer in case.against},
            }
            for case in results.cases
        ],
        "results": [
            asdict(each)
            | {"rate": each.rate, "second_half_rate": each.second_half_rate, "whole_rate": each.whole_rate}
            | {"equal": each.check.equal, "seconds": each.window.seconds}
            for each in results.measured
        ],
        "goals": [asdict(goal) for goal in goals(results)],
    }


def _middle(values: Iterable[float]) -> float:
    return median(values)


def _thousands(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


def _times(ratio: float | None) -> str:
    return _UNKNOWN if ratio is None else f"{ratio:.2f}"
