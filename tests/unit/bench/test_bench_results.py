"""Medians, ratios and goals from measurements."""

import json

import pytest
from rich.console import Console

from bench.machine import describe
from bench.report import print_report, to_json
from bench.results import Comparison, Goal, Measurement, OwnFigures, Results, Spread, goals
from bench.settings import Copier
from bench.window import Window
from bench.workloads import WORKLOADS, Workload

_MB = 1024 * 1024


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


def _results(*measurements: Measurement, idle: tuple[float, ...] = ()) -> Results:
    return Results(WORKLOADS, measurements, idle)


def test_a_spread_is_median_and_extremes() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of([4.0]) == Spread(4.0, 4.0, 4.0)
    assert Spread.of([1.0, 2.0]).median == 1.5


def test_ratios_compare_medians_of_the_rounds() -> None:
    workload = WORKLOADS[0]
    results = _results(
        *(
            _measured(workload, Copier.MM2_DEFAULT, rate, cpu=40.0, number=n)
            for n, rate in enumerate([10e3, 20e3, 90e3])
        ),
        *(_measured(workload, Copier.MIRROR, rate, cpu=4.0, number=n) for n, rate in enumerate([100e3, 10e3, 200e3])),
    )

    assert results.speedup(workload, Copier.MM2_DEFAULT) == pytest.approx(5.0)
    assert results.cpu_share(workload, Copier.MM2_DEFAULT) == pytest.approx(0.1)
    assert results.speedup(workload, Copier.MM2_TUNED) is None


def test_megabytes_count_values_uncompressed() -> None:
    line = _results(_measured(WORKLOADS[0], Copier.MIRROR, 250e3)).line(WORKLOADS[0], Copier.MIRROR)

    assert line is not None
    assert line.megabytes_per_second == pytest.approx(250.0)


def test_the_worst_full_workload_decides_over_the_goal() -> None:
    ours = [_measured(workload, Copier.MIRROR, 600e3) for workload in WORKLOADS[:3]]
    theirs = [_measured(WORKLOADS[0], Copier.MM2_DEFAULT, 100e3), _measured(WORKLOADS[1], Copier.MM2_DEFAULT, 150e3)]

    goal = _goal(_results(*ours, *theirs), "Full batches: times MM2 default")

    assert goal.value == pytest.approx(4.0)
    assert (goal.limit, goal.reached) == (5.0, False)
    assert WORKLOADS[1].name in goal.detail


@pytest.mark.parametrize(("rate", "reached"), [(249e3, False), (251e3, True)])
def test_small_batches_must_reach_two_and_a_half_times_default(rate: float, reached: bool) -> None:
    workload = WORKLOADS[3]
    results = _results(_measured(workload, Copier.MIRROR, rate), _measured(workload, Copier.MM2_DEFAULT, 100e3))

    assert _goal(results, "Small batches").reached is reached
    assert _goal(results, "Full batches").reached is None


@pytest.mark.parametrize(("cpu", "reached"), [(2.4, True), (2.6, False)])
def test_cpu_may_be_a_quarter_of_each_mm2(cpu: float, reached: bool) -> None:
    workload = WORKLOADS[1]
    results = _results(
        _measured(workload, Copier.MIRROR, 1e5, cpu=cpu),
        _measured(workload, Copier.MM2_DEFAULT, 1e5, cpu=40.0),
        _measured(workload, Copier.MM2_TUNED, 1e5, cpu=10.0),
    )

    assert _goal(results, "CPU of the copier: share of MM2 default").reached is True
    assert _goal(results, "CPU of the copier: share of MM2 tuned").reached is reached


def test_idle_runs_and_memory_have_upper_limits() -> None:
    good = _results(_measured(WORKLOADS[0], Copier.MIRROR, 1e5), idle=(0.4, 1.4))
    bad = _results(_measured(WORKLOADS[0], Copier.MIRROR, 1e5, growth=513 * _MB), idle=(0.4, 1.5))

    assert _goal(good, "Nothing to copy").reached is True
    assert _goal(good, "Memory").value == pytest.approx(100.0)
    assert _goal(bad, "Nothing to copy").reached is False
    assert _goal(bad, "Memory").reached is False


@pytest.mark.parametrize("fault", [{"missing": 1}, {"missing": -1}, {"differing": 1}])
def test_a_copy_that_differs_fails_the_comparison(fault: dict[str, int]) -> None:
    results = _results(
        _measured(WORKLOADS[0], Copier.MM2_DEFAULT, 1e5),
        _measured(WORKLOADS[0], Copier.MIRROR, 1e5, **fault),
    )

    goal = _goal(results, "Copies that equal")
    assert (goal.reached, goal.detail) == (False, "1 of 2")


def test_goals_do_not_speak_of_tls() -> None:
    secured = WORKLOADS[0].over_tls()
    measured = (_measured(secured, Copier.MM2_DEFAULT, 10e3, cpu=1.0), _measured(secured, Copier.MIRROR, 10e3, cpu=9.0))
    results = Results((secured,), measured, ())

    assert results.speedup(secured, Copier.MM2_DEFAULT) == pytest.approx(1.0)
    assert _goal(results, "Full batches: times MM2 default").reached is None
    assert _goal(results, "CPU of the copier: share of MM2 default").reached is None


def test_nothing_measured_reaches_nothing() -> None:
    assert {goal.reached for goal in goals(_results())} == {None}


def test_the_report_names_every_workload_and_the_json_can_be_written() -> None:
    results = _results(
        _measured(WORKLOADS[0], Copier.MIRROR, 277e3, differing=2),
        _measured(WORKLOADS[0], Copier.MM2_DEFAULT, 35e3, cpu=30.0),
        idle=(0.5,),
    )
    machine, setup = describe(java="17", kafka="4.3.1"), {"rounds": 1, "partitions": 8, "processes": 2}
    console = Console(record=True, width=160, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        print_report(console, results, machine, setup)

    text = captured.get()
    for workload in WORKLOADS:
        assert workload.name in text
    assert "277 k" in text
    assert "7.9" in text
    assert "2 of 1600 sampled ones differ" in text
    data = json.loads(json.dumps(to_json(results, machine, setup)))
    assert data["ratios"][0]["speedup"] == {"mm2-default": pytest.approx(277 / 35), "mm2-tuned": None}
    assert len(data["measurements"]) == 2
