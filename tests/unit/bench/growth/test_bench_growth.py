"""What the growth measurement asks for, and what it concludes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.growth.measure import QUICK, Sizes, limited, make_options, parse_arguments, wanted
from bench.growth.results import ALL_SERIES, BYTES, IDLE_TOPICS, PARTITIONS, Cost, Point, exponent, fit, goals
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


def test_one_amount_makes_no_line() -> None:
    assert fit([(1.0, 2.0)]) is None
    assert fit([(1.0, 2.0), (1.0, 3.0)]) is None


@pytest.mark.parametrize(("power", "told"), [(0, 0.0), (1, 1.0), (2, 2.0)])
def test_the_exponent_tells_linear_from_quadratic(power: int, told: float) -> None:
    assert exponent([(amount, 3.0 * amount**power) for amount in (10.0, 100.0, 1000.0)]) == pytest.approx(told)


def test_no_exponent_from_nothing() -> None:
    assert exponent([(0.0, 1.0), (100.0, 1.0)]) is None


def test_a_copy_that_grows_with_the_square_of_the_bytes_is_told() -> None:
    linear, _, _ = goals([_point(size, 0.5 + size) for size in (0.5, 1, 2, 4)])
    square, _, _ = goals([_point(size, 0.5 + size**2) for size in (0.5, 1, 2, 4)])

    assert (linear.reached, square.reached) == (True, False)


def test_idle_runs_must_not_follow_the_data() -> None:
    assert goals([_point(0.001, 0.1, idle=0.10), _point(4, 4.0, idle=0.34)])[1].reached
    assert not goals([_point(0.001, 0.1, idle=0.10), _point(4, 4.0, idle=0.36)])[1].reached


def test_a_copy_that_lacks_a_record_is_told() -> None:
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


def test_each_series_has_its_points() -> None:
    points = wanted(ALL_SERIES, Sizes())

    assert [point.partitions for point in points if point.series == PARTITIONS] == [10, 100, 1_000, 10_000]
    assert {point.total_bytes for point in points if point.series == PARTITIONS} == {200_000_000}
    assert [point.idle_topics for point in points if point.series == IDLE_TOPICS] == [0, 100, 1_000, 5_000]


def test_a_small_machine_leaves_the_large_points_out() -> None:
    small = limited(Sizes(), 1_000, 100)

    assert (small.partitions, small.idle_topics) == ((10, 100, 1_000), (0, 100, 1_000))
    assert (small.megabytes, small.each_megabytes) == ((1, 100), 100)


def test_arguments_choose_the_series() -> None:
    assert make_options(parse_arguments(["--quick", "--series", "bytes"])).series == (BYTES,)
    assert make_options(parse_arguments(["--quick"])).sizes == QUICK
    with pytest.raises(ValueError, match="no such series"):
        make_options(parse_arguments(["--series", "weight"]))
