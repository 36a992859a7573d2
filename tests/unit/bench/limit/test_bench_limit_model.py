"""The arithmetic of the bound."""

import pytest

from bench.limit.model import (
    FETCH_WAYS,
    PRODUCE_WAYS,
    Fastest,
    Half,
    LimitRun,
    Ways,
    bound,
    bounds_by_round,
    fastest_ways,
)
from bench.workloads.workload import WORKLOADS, Workload
from mirror_lib.config.model import CopySettings

_WORKLOAD = WORKLOADS[0]


def _run(half: Half, way: str, seconds: float, *, number: int = 1, workload: Workload = _WORKLOAD) -> LimitRun:
    return LimitRun(workload, half, way, number, workload.records, seconds, 0.1)


def test_the_bound_takes_the_time_of_both_halves_each_by_its_fastest_way() -> None:
    runs = [
        *(_run(Half.FETCHING, "small", 0.9), _run(Half.FETCHING, "large", 0.5)),
        *(_run(Half.PRODUCING, "one", 1.5), _run(Half.PRODUCING, "two", 1.7)),
    ]

    limit = bound(runs, _WORKLOAD)

    assert limit is not None
    assert (limit.fetching, limit.producing) == (Fastest("large", 0.5), Fastest("one", 1.5))
    assert (limit.seconds, limit.rate) == (2.0, _WORKLOAD.records / 2)
    assert limit.rate_of(Half.FETCHING) == _WORKLOAD.records * 2
    assert limit.rate_of(Half.PRODUCING) == pytest.approx(_WORKLOAD.records / 1.5)


def test_the_median_over_the_rounds_decides_which_is_the_fastest() -> None:
    lucky = [_run(Half.FETCHING, "lucky", seconds, number=n) for n, seconds in enumerate([0.1, 0.9, 0.8])]
    steady = [_run(Half.FETCHING, "steady", seconds, number=n) for n, seconds in enumerate([0.6, 0.5, 0.4])]

    limit = bound([*lucky, *steady, _run(Half.PRODUCING, "a", 1.0)], _WORKLOAD)

    assert limit is not None
    assert limit.fetching == Fastest("steady", 0.5)


def test_other_workloads_and_a_missing_half_make_no_bound() -> None:
    other = _run(Half.PRODUCING, "a", 1.0, workload=WORKLOADS[1])

    assert bound([_run(Half.FETCHING, "a", 1.0), other], _WORKLOAD) is None
    assert bound([], _WORKLOAD) is None


def test_the_fastest_way_of_each_half_is_chosen_for_the_rounds() -> None:
    runs = [
        *(_run(Half.FETCHING, way.name, 1.0 - 0.1 * n) for n, way in enumerate(FETCH_WAYS)),
        *(_run(Half.PRODUCING, way.name, 1.0 + 0.1 * n) for n, way in enumerate(PRODUCE_WAYS)),
    ]

    assert fastest_ways(runs, _WORKLOAD) == Ways((FETCH_WAYS[-1],), (PRODUCE_WAYS[0],))
    assert fastest_ways([], _WORKLOAD) == Ways()


def test_a_round_has_a_bound_where_both_halves_were_measured() -> None:
    runs = [
        *(_run(Half.FETCHING, "a", 0.5, number=1), _run(Half.PRODUCING, "b", 1.5, number=1)),
        *(_run(Half.FETCHING, "a", 0.6, number=2), _run(Half.PRODUCING, "b", 1.6, number=2)),
        # Slower ways, and a round that was cut short.
        *(_run(Half.FETCHING, "slow", 5.0, number=1), _run(Half.PRODUCING, "b", 1.7, number=3)),
        _run(Half.FETCHING, "a", 9.0, number=1, workload=WORKLOADS[1]),
    ]

    assert bounds_by_round(runs, _WORKLOAD) == {1: 2.0, 2: pytest.approx(2.2)}
    assert bounds_by_round(runs, WORKLOADS[1]) == {}


def test_the_first_ways_are_those_of_the_copy_and_all_are_allowed_to_an_idempotent_producer() -> None:
    settings = CopySettings()

    copied = (settings.fetch_max_bytes, settings.fetch_partition_max_bytes)
    assert (FETCH_WAYS[0].max_bytes, FETCH_WAYS[0].partition_bytes) == copied
    assert PRODUCE_WAYS[0].in_flight == settings.produce_max_in_flight
    assert {way.connections * way.outstanding for way in FETCH_WAYS} == {2}
    assert all(way.in_flight <= 5 for way in PRODUCE_WAYS)
