"""The arithmetic of the bound."""

import pytest

from tools.bench.limit.model import (
    Fastest,
    Half,
    LimitRun,
    bound,
    bounds_by_round,
)
from tools.bench.workloads.workload import WORKLOADS, Workload

_WORKLOAD = WORKLOADS[0]


def _run(half: Half, way: str, seconds: float, *, number: int = 1, workload: Workload = _WORKLOAD) -> LimitRun:
    return LimitRun(workload, half, way, number, workload.records, seconds, 0.1)


def test_the_bound_takes_the_time_of_both_halves_each_by_its_fastest_way() -> None:
    runs = [
        *(_run(Half.FETCHING, "small", 0.9), _run(Half.FETCHING, "large", 0.5)),
        *(_run(Half.PRODUCING, "one", 1.5), _run(Half.PRODUCING, "two", 1.7)),
    ]

    limit = bound(runs, _WORKLOAD)

    assert (limit.fetching, limit.producing) == (Fastest("large", 0.5), Fastest("one", 1.5))
    assert (limit.seconds, limit.rate) == (2.0, _WORKLOAD.records / 2)
    assert limit.rate_of(Half.FETCHING) == _WORKLOAD.records * 2
    assert limit.rate_of(Half.PRODUCING) == pytest.approx(_WORKLOAD.records / 1.5)


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
