"""What the lag measurement makes of its figures."""

from __future__ import annotations

import pytest

from tools.bench.copiers.phases import PhaseTime, rounds_of, seconds_by_phase
from tools.bench.copiers.settings import Copier
from tools.bench.lag.arrivals import Lag
from tools.bench.lag.load import Written
from tools.bench.lag.results import Rounds, Sustained, goals

_ROUND = (("gather", 0.2), ("plan", 0.0), ("open", 0.1), ("copy", 1.0), ("commit", 0.3))


def _phases(*rounds: tuple[tuple[str, float], ...]) -> list[PhaseTime]:
    times, now = [], 100.0
    for phases in rounds:
        for phase, seconds in phases:
            times.append(PhaseTime(phase, now, seconds))
            now += seconds
    return times


def _sustained(most: float, behind: float = 0.0) -> Sustained:
    written = Written(0, 60_000, 1_200_000, 1_000, behind, 0.01)
    return Sustained(Copier.MIRROR, written, Lag(1_000, 0.5, 1.0, most), None, (), 5.0, 0.5)


def test_a_round_begins_where_the_clusters_are_looked_at_and_has_a_copy() -> None:
    found = rounds_of(_phases(_ROUND, _ROUND))
    rounds = Rounds.of(_phases(_ROUND, (("gather", 9.0), ("plan", 0.0))), runs=1)

    assert [[time.phase for time in each] for each in found] == [[phase for phase, _ in _ROUND]] * 2
    assert (rounds.rounds, rounds.runs) == (1, 1)
    assert {each.phase: round(each.most, 6) for each in rounds.phases}["round"] == 1.6


def test_what_no_phase_explains_is_other() -> None:
    spent = seconds_by_phase(_phases(_ROUND), whole=2.0)

    assert spent["copy"] == 1.0
    assert spent["other"] == pytest.approx(0.4)


def test_the_goal_is_the_largest_lag_and_a_load_that_kept_its_pace() -> None:
    assert [goal.reached for goal in goals([_sustained(most=1.9)])] == [True, True]
    assert [goal.reached for goal in goals([_sustained(most=2.0, behind=0.7)])] == [False, False]
    assert goals([])[0].reached is None
