"""What the growth measurement concludes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.bench.growth.results import BYTES, Cost, Point, exponent, fit, goals


def _point(gigabytes: float, seconds: float, idle: float = 0.1, arrived: int = 10) -> Point:
    nothing = Cost(idle, 0.1)
    return Point(BYTES, gigabytes * 1000, 10, round(gigabytes * 1e9), 0.1, Cost(seconds, 1.0), nothing, arrived)


@given(st.floats(0.01, 10), st.floats(0.01, 10))
def test_a_straight_line_is_found(fixed: float, slope: float) -> None:
    line = fit([(amount, fixed + slope * amount) for amount in (0.1, 1.0, 2.0, 8.0)])

    assert line is not None
    assert line.fixed == pytest.approx(fixed, rel=1e-6, abs=1e-9)
    assert line.slope == pytest.approx(slope, rel=1e-6, abs=1e-9)
    assert line.worst_ratio == pytest.approx(1.0)
    assert fit([(1.0, fixed), (1.0, slope)]) is None


def test_the_exponent_tells_linear_from_quadratic() -> None:
    for power in (0, 1, 2):
        found = exponent([(amount, 3.0 * amount**power) for amount in (10.0, 100.0, 1000.0)])
        assert found == pytest.approx(power)
    assert exponent([(0.0, 1.0), (100.0, 1.0)]) is None


def test_growth_with_the_square_idle_runs_that_follow_the_data_and_lost_records_miss_the_goals() -> None:
    assert goals([_point(size, 0.5 + size) for size in (0.5, 1, 2, 4)])[0].reached
    assert not goals([_point(size, 0.5 + size**2) for size in (0.5, 1, 2, 4)])[0].reached
    assert goals([_point(0.001, 0.1, idle=0.10), _point(4, 4.0, idle=0.34)])[1].reached
    assert not goals([_point(0.001, 0.1, idle=0.10), _point(4, 4.0, idle=0.36)])[1].reached
    assert not goals([_point(1, 1.0, arrived=9)])[2].reached
