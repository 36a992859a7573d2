"""Results of the end-to-end measurement, and its goals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from statistics import median
from typing import Any

from rich.table import Table

from tools.bench.comparison.results import Goal
from tools.bench.copiers.settings import Copier
from tools.bench.end_to_end.contest import Timing

#: How many times as fast as tuned MM2 a run on a warm session must be, from the request to its end.
WARM_TIMES = 4.0


class Race(StrEnum):
    """Conditions of a race; the value is for tables."""

    #: A session is warm, MM2 is not started yet; one after the other.
    WARM = "warm"
    #: Nothing is warm; all at the same moment on this machine.
    COLD_TOGETHER = "cold, at the same moment"
    #: Nothing is warm; one after the other.
    COLD_ALONE = "cold, alone"


@dataclass(frozen=True, slots=True)
class Result:
    """One contestant in one race and round."""

    race: Race
    workload: str
    round: int
    timing: Timing


def goals(results: Sequence[Result]) -> tuple[Goal, ...]:
    """Return the goals; by medians over the rounds, and the worst workload decides."""
    return (*_warm_goals(results), _cold_goal(results), _equal_goal(results))


def _warm_goals(results: Sequence[Result]) -> list[Goal]:
    warm = [each for each in results if each.race is Race.WARM]
    ours = dict.fromkeys(each.timing.label for each in warm if each.timing.copier is Copier.MIRROR)
    found = []
    for label in ours:
        ratios = []
        for workload in dict.fromkeys(each.workload for each in warm):
            here = [each.timing for each in warm if each.workload == workload]
            own = [each.done for each in here if each.label == label]
            peer = [each.last_record for each in here if each.copier is Copier.MM2_TUNED]
            if own and peer:
                ratios.append((median(peer) / median(own), workload))
        text = f"Warm ({label}), end to end: times MM2 tuned"
        worst = min(ratios, default=None)
        if worst is None:
            found.append(Goal(text, WARM_TIMES, None, "not measured", None))
        else:
            found.append(Goal(text, WARM_TIMES, worst[0], f"worst: {worst[1]}", worst[0] >= WARM_TIMES))
    return found


def _cold_goal(results: Sequence[Result]) -> Goal:
    """Return the goal of cold races: every round counts, since a first start on a machine has no median."""
    text = "Cold, started together: our end as a share of MM2's last record"
    together = [each for each in results if each.race is Race.COLD_TOGETHER]
    shares = []
    for workload, number in dict.fromkeys((each.workload, each.round) for each in together):
        here = [each.timing for each in together if (each.workload, each.round) == (workload, number)]
        own = [each.done for each in here if each.copier is Copier.MIRROR]
        peer = [each.last_record for each in here if each.copier is not Copier.MIRROR]
        if own and peer:
            shares.append((max(own) / min(peer), f"{workload}, round {number}"))
    if not shares:
        return Goal(text, 1.0, None, "not measured", None)
    worst = max(shares)
    return Goal(text, 1.0, worst[0], f"worst: {worst[1]}", worst[0] < 1.0)


def _equal_goal(results: Sequence[Result]) -> Goal:
    equal = sum(each.timing.equal for each in results)
    return Goal(
        text="Share of copies that equal their source",
        limit=1.0,
        value=equal / len(results) if results else None,
        detail=f"{equal} of {len(results)}",
        reached=equal == len(results) if results else None,
    )


def timing_table(results: Sequence[Result]) -> Table:
    """Return medians over the rounds, and the slowest and fastest end."""
    table = Table(title="Seconds since being asked (medians; in brackets fastest and slowest)", title_justify="left")
    for head in ("race", "workload", "copier"):
        table.add_column(head, overflow="fold")
    for head in ("started", "first record", "last record", "done", "CPU seconds"):
        table.add_column(head, justify="right")
    for race, workload, label in dict.fromkeys((each.race, each.workload, each.timing.label) for each in results):
        here = [
            each.timing for each in results if (each.race, each.workload, each.timing.label) == (race, workload, label)
        ]
        table.add_row(
            race.value,
            workload,
            label,
            _middle(each.started for each in here),
            _middle(each.first_record for each in here),
            _middle(each.last_record for each in here),
            _spread([each.done for each in here]),
            _middle(each.cpu_seconds for each in here),
        )
    return table


def _middle(values: Iterable[float]) -> str:
    return f"{median(values):.2f}"


def _spread(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def to_plain(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the results for JSON."""
    return [asdict(each) for each in results]
