"""Medians, ratios and goals from measurements."""

import json

import pytest
from rich.console import Console

from bench.clusters.window import Window
from bench.comparison.report import print_report, to_json
from bench.comparison.results import Comparison, Goal, Measurement, OwnFigures, Results, Spread, goals
from bench.copiers.settings import Copier
from bench.limit.model import Half, LimitRun
from bench.machine.description import Machine
from bench.workloads.workload import WORKLOADS, Workload

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


def _results(*measurements: Measurement, idle: tuple[float, ...] = (), limit: tuple[LimitRun, ...] = ()) -> Results:
    return Results(WORKLOADS, measurements, idle, limit)


def _limit(
    workload: Workload, fetch_seconds: float, produce_seconds: float, *, number: int = 1
) -> tuple[LimitRun, ...]:
    return (
        LimitRun(workload, Half.FETCHING, "plain", number, workload.records, fetch_seconds, 0.1),
        LimitRun(workload, Half.PRODUCING, "plain", number, workload.records, produce_seconds, 0.1),
    )


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


def test_the_worst_of_its_workloads_decides_over_a_goal() -> None:
    ours = [_measured(workload, Copier.MIRROR, 600e3) for workload in WORKLOADS[:3]]
    theirs = [_measured(WORKLOADS[0], Copier.MM2_DEFAULT, 60e3), _measured(WORKLOADS[2], Copier.MM2_DEFAULT, 100e3)]

    goal = _goal(_results(*ours, *theirs), "Full batches, lz4: times MM2 default")

    assert goal.value == pytest.approx(6.0)
    assert (goal.limit, goal.reached) == (8.0, False)
    assert WORKLOADS[2].name in goal.detail


@pytest.mark.parametrize(("rate", "reached"), [(499e3, False), (501e3, True)])
def test_uncompressed_full_batches_must_reach_five_times_default(rate: float, reached: bool) -> None:
    workload = WORKLOADS[1]
    results = _results(_measured(workload, Copier.MIRROR, rate), _measured(workload, Copier.MM2_DEFAULT, 100e3))

    assert _goal(results, "Full batches, uncompressed").reached is reached
    assert _goal(results, "Full batches, lz4").reached is None


@pytest.mark.parametrize(("rate", "reached"), [(299e3, False), (301e3, True)])
def test_compressed_full_batches_must_reach_three_times_tuned(rate: float, reached: bool) -> None:
    workload = WORKLOADS[0]
    results = _results(_measured(workload, Copier.MIRROR, rate), _measured(workload, Copier.MM2_TUNED, 100e3))

    assert _goal(results, "Full batches, lz4: times MM2 tuned").reached is reached


@pytest.mark.parametrize(("rate", "reached"), [(349e3, False), (351e3, True)])
def test_small_batches_must_reach_three_and_a_half_times_default(rate: float, reached: bool) -> None:
    workload = WORKLOADS[3]
    results = _results(_measured(workload, Copier.MIRROR, rate), _measured(workload, Copier.MM2_DEFAULT, 100e3))

    assert _goal(results, "Small batches: times MM2 default").reached is reached
    assert _goal(results, "Full batches, lz4").reached is None


@pytest.mark.parametrize(("rate", "reached"), [(119e3, False), (121e3, True)])
def test_small_batches_must_beat_a_loop_around_two_clients(rate: float, reached: bool) -> None:
    workload = WORKLOADS[4]
    results = _results(_measured(workload, Copier.MIRROR, rate), _measured(workload, Copier.CLIENT_LOOP, 100e3))

    assert _goal(results, "Small batches: times the client loop").reached is reached


@pytest.mark.parametrize(("rate", "reached"), [(0.84, False), (0.86, True)])
def test_full_batches_must_come_near_the_bound(rate: float, reached: bool) -> None:
    workload, small = WORKLOADS[0], WORKLOADS[3]
    limit = (*_limit(workload, 0.25, 0.75), *_limit(small, 0.1, 0.1))
    ours = (_measured(workload, Copier.MIRROR, rate * workload.records), _measured(small, Copier.MIRROR, 1e3))

    results = _results(*ours, limit=limit)

    share = results.share_of_bound(workload)
    assert share is not None
    assert share.median == pytest.approx(rate)
    assert _goal(results, "Full batches: share of the bound").value == pytest.approx(rate)
    assert _goal(results, "Full batches: share of the bound").reached is reached


def test_each_copy_is_held_against_the_halves_of_its_own_round() -> None:
    # Given a machine that is three times as slow in the second round, and in the third while we copied alone
    workload = WORKLOADS[0]
    seconds = {1: (1.0, 0.9), 2: (3.0, 2.4), 3: (3.0, 0.9)}
    ours = [_measured(workload, Copier.MIRROR, workload.records / own, number=n) for n, (own, _) in seconds.items()]
    limit = [run for n, (_, both) in seconds.items() for run in _limit(workload, both / 3, both * 2 / 3, number=n)]

    share = _results(*ours, limit=tuple(limit)).share_of_bound(workload)

    # Then the rounds' shares count, where the medians of both would give 0.3
    assert share is not None
    assert (share.low, share.median, share.high) == pytest.approx((0.3, 0.8, 0.9))


def test_without_either_of_both_there_is_no_share_of_the_bound() -> None:
    workload = WORKLOADS[0]

    assert _results(limit=_limit(workload, 0.25, 0.75)).share_of_bound(workload) is None
    assert _results(_measured(workload, Copier.MIRROR, 1e5)).share_of_bound(workload) is None


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

    goal = _goal(results, "Share of copies that equal")
    assert (goal.reached, goal.detail) == (False, "1 of 2")


def test_goals_do_not_speak_of_tls() -> None:
    secured = WORKLOADS[0].over_tls()
    measured = (_measured(secured, Copier.MM2_DEFAULT, 10e3, cpu=1.0), _measured(secured, Copier.MIRROR, 10e3, cpu=9.0))
    results = Results((secured,), measured, ())

    assert results.speedup(secured, Copier.MM2_DEFAULT) == pytest.approx(1.0)
    assert _goal(results, "Full batches, lz4: times MM2 default").reached is None
    assert _goal(results, "CPU of the copier: share of MM2 default").reached is None


def test_nothing_measured_reaches_nothing() -> None:
    assert {goal.reached for goal in goals(_results())} == {None}


def _machine(*, busy_cores: float) -> Machine:
    return Machine(2, "a CPU", 2**34, "6.1", "3.11.2", "17", "4.3.1", busy_cores, packages={})


def _printed(results: Results, machine: Machine, setup: dict[str, int]) -> str:
    console = Console(record=True, width=160, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        print_report(console, results, machine, setup)
    return captured.get()


def test_the_report_warns_of_a_machine_that_others_kept_busy() -> None:
    setup = {"rounds": 1, "partitions": 8, "processes": 2}

    assert "busy before the start (1.3 cores)" in _printed(_results(), _machine(busy_cores=1.3), setup)
    assert "busy before the start" not in _printed(_results(), _machine(busy_cores=0.1), setup)


def test_the_report_names_every_workload_and_the_json_can_be_written() -> None:
    results = _results(
        _measured(WORKLOADS[0], Copier.MIRROR, 277e3, differing=2),
        _measured(WORKLOADS[0], Copier.MM2_DEFAULT, 35e3, cpu=30.0),
        idle=(0.5,),
        limit=_limit(WORKLOADS[0], 0.5, 2.0),
    )
    machine, setup = _machine(busy_cores=0.1), {"rounds": 1, "partitions": 8, "processes": 2}

    text = _printed(results, machine, setup)

    for workload in WORKLOADS:
        assert workload.name in text
    assert "277 k" in text
    assert "7.9" in text
    assert "2 of 1600 sampled ones differ" in text
    # A million records: 0.5 s, 2 s, and both together; ours is 277,000 of 400,000 in a second.
    assert "2.00 M (0.50 s)" in text
    assert "500 k (2.00 s)" in text
    assert "400 k (2.50 s)" in text
    assert "69 %" in text
    data = json.loads(json.dumps(to_json(results, machine, setup)))
    assert data["ratios"][0]["speedup"] == {
        "mm2-default": pytest.approx(277 / 35),
        "mm2-tuned": None,
        "client-loop": None,
    }
    assert data["ratios"][0]["share_of_bound"] == {name: pytest.approx(0.6925) for name in ("median", "low", "high")}
    assert [(each["workload"], each["seconds"]) for each in data["bounds"]] == [("1kb-lz4", 2.5)]
    assert [(each["half"], each["seconds"]) for each in data["limit_runs"]] == [("fetching", 0.5), ("producing", 2.0)]
    assert len(data["measurements"]) == 2
