"""Medians, ratios and goals from measurements."""

from collections.abc import Sequence

import pytest

from tools.bench.clusters.window import Window
from tools.bench.comparison.results import Comparison, Goal, Measurement, OwnFigures, Results, goals
from tools.bench.copiers.settings import Copier
from tools.bench.limit.model import Half, LimitRun
from tools.bench.workloads.workload import WORKLOADS, Workload

_MB = 1024 * 1024
_LZ4, _PLAIN, _SHORT, _SINGLE, _FIVE = WORKLOADS


def _measured(
    workload: Workload,
    copier: Copier,
    rate: float,
    *,
    cpu: float = 1.0,
    number: int = 1,
    missing: int = 0,
    differing: int = 0,
    growth: int = 100 * _MB,
) -> Measurement:
    window = Window(workload.records, 10.0, 10.0 + workload.records / rate, cpu, rate * 1.1)
    own = OwnFigures(1.0, 2.0, 3.0, 50 * _MB, 50 * _MB + growth) if copier is Copier.MIRROR else None
    comparison = Comparison(workload.records - missing, 1600, differing)
    return Measurement(workload, copier, number, window, comparison, own)


def _goal(results: Results, text: str) -> Goal:
    return next(goal for goal in goals(results) if goal.text.startswith(text))


def _results(
    *measurements: Measurement, idle: tuple[float, ...] = (), limit: Sequence[LimitRun] = (), tls: bool = False
) -> Results:
    return Results((WORKLOADS[0].over_tls(),) if tls else WORKLOADS, measurements, idle, tuple(limit))


def _limit(
    workload: Workload, fetch_seconds: float, produce_seconds: float, *, number: int = 1
) -> tuple[LimitRun, ...]:
    return (
        LimitRun(workload, Half.FETCHING, "plain", number, workload.records, fetch_seconds, 0.1),
        LimitRun(workload, Half.PRODUCING, "plain", number, workload.records, produce_seconds, 0.1),
    )


def test_ratios_compare_medians_of_the_rounds() -> None:
    theirs = [_measured(_LZ4, Copier.MM2_DEFAULT, rate, cpu=40.0, number=n) for n, rate in enumerate([10e3, 20e3, 9e4])]
    ours = [_measured(_LZ4, Copier.MIRROR, rate, cpu=4.0, number=n) for n, rate in enumerate([100e3, 10e3, 200e3])]
    results = _results(*theirs, *ours)

    assert results.speedup(_LZ4, Copier.MM2_DEFAULT) == pytest.approx(5.0)
    assert results.cpu_share(_LZ4, Copier.MM2_DEFAULT) == pytest.approx(0.1)
    assert results.speedup(_LZ4, Copier.MM2_TUNED) is None


def test_a_goal_is_reached_at_its_own_multiple_of_the_peer_and_judges_its_own_workloads() -> None:
    for text, workload, peer, times in (
        ("Full batches, lz4: times MM2 default", _LZ4, Copier.MM2_DEFAULT, 8.0),
        ("Full batches, lz4: times MM2 tuned", _LZ4, Copier.MM2_TUNED, 3.0),
        ("Full batches, uncompressed: times MM2 default", _PLAIN, Copier.MM2_DEFAULT, 5.0),
        ("Small batches: times MM2 default", _SINGLE, Copier.MM2_DEFAULT, 3.5),
        ("Small batches: times the client loop", _FIVE, Copier.CLIENT_LOOP, 1.2),
    ):
        for rate, reached in ((times * 99e3, False), (times * 101e3, True)):
            results = _results(_measured(workload, Copier.MIRROR, rate), _measured(workload, peer, 100e3))

            speeds = [goal for goal in goals(results) if ": times " in goal.text and goal.reached is not None]
            assert [(goal.text, goal.reached) for goal in speeds] == [(text, reached)]


def test_each_copy_is_held_against_the_halves_of_its_own_round() -> None:
    # Given a machine that is three times as slow in the second round, and in the third while we copied alone
    seconds = {1: (1.0, 0.9), 2: (3.0, 2.4), 3: (3.0, 0.9)}
    ours = [_measured(_LZ4, Copier.MIRROR, _LZ4.records / own, number=n) for n, (own, _) in seconds.items()]
    limit = [run for n, (_, both) in seconds.items() for run in _limit(_LZ4, both / 3, both * 2 / 3, number=n)]

    share = _results(*ours, limit=limit).share_of_bound(_LZ4)

    # Then the rounds' shares count, where the medians of both would give 0.3
    assert (share.low, share.median, share.high) == pytest.approx((0.3, 0.8, 0.9))


def test_a_copy_that_differs_fails_the_comparison() -> None:
    for fault in ({"missing": 1}, {"missing": -1}, {"differing": 1}):
        ours = _measured(_LZ4, Copier.MIRROR, 1e5, **fault)

        goal = _goal(_results(_measured(_LZ4, Copier.MM2_DEFAULT, 1e5), ours), "Share of copies that equal")

        assert (goal.reached, goal.detail) == (False, "1 of 2"), fault
