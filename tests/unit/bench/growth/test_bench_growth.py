"""What the growth measurement asks for, and what it concludes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.growth.measure import Sizes, limited
from bench.growth.results import BYTES, Cost, Point, exponent, fit, goals
from bench.growth.source import Place, places, records_of


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


def test_partitions_are_spread_over_topics_of_a_hundred() -> None:
    assert places("t", 10) == (Place("t-0000", 10),)
    assert [each.partitions for each in places("t", 250)] == [100, 100, 50]
    assert sum(each.partitions for each in places("t", 10_000)) == 10_000


@given(st.sampled_from([10, 100, 1_000, 100_000, 1_000_000]), st.integers(1, 10_000))
def test_records_fill_the_bytes_and_every_partition_has_one(size: int, partitions: int) -> None:
    workload = records_of(size, 10_000_000, partitions)

    assert workload.records >= partitions
    assert workload.payload_bytes >= 10_000_000 or size * partitions > 10_000_000
    # A batch must be accepted by a topic with the default limit, whatever it compresses to.
    assert workload.records_per_batch * size <= 1_000_000


def test_a_small_machine_leaves_the_large_points_out() -> None:
    small = limited(Sizes(), 1_000, 100)

    assert (small.partitions, small.idle_topics) == ((10, 100, 1_000), (0, 100, 1_000))
    assert (small.megabytes, small.each_megabytes) == ((1, 100), 100)
