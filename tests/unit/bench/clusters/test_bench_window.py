"""The window of a copy, from looks at the target's end offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.bench.clusters.window import Look, copy_window


def test_an_even_copy_starts_where_its_line_meets_zero() -> None:
    # 1000 records/s from t=10.5 on, looked at every second.
    looks = [Look(10, 0, 1.0), Look(11, 500, 1.5), Look(12, 1500, 2.5), Look(13, 2500, 3.5), Look(19, 2500, 9.0)]

    window = copy_window(looks, 2500)

    assert (window.start, window.end, window.seconds) == (10.5, 13, 2.5)
    assert (window.rate, window.second_half_rate) == (1000, 1000)


def test_the_start_is_never_before_the_last_empty_look() -> None:
    burst = copy_window([Look(0, 0, 0), Look(1, 900, 1), Look(2, 1000, 2)], 1000)
    at_once = copy_window([Look(5.0, 0, 3.0), Look(5.25, 100, 3.5)], 100)

    assert burst.start == 0
    assert (at_once.seconds, at_once.rate, at_once.second_half_rate, at_once.cpu_seconds) == (0.25, 400, 400, 0.5)


def test_cpu_counts_from_the_start_of_the_window_only() -> None:
    # Start at 10.5, halfway between looks that saw 4 and 6 CPU seconds.
    looks = [Look(9, 0, 2), Look(10, 0, 4), Look(11, 500, 6), Look(12, 1500, 7), Look(13, 1500, 9)]

    assert copy_window(looks, 1500).cpu_seconds == pytest.approx(7 - 5)


def test_the_second_half_shows_the_speed_after_a_slow_start() -> None:
    looks = [Look(0, 0, 0), Look(10, 100, 0), Look(20, 500, 0), Look(21, 750, 0), Look(22, 1000, 0)]

    assert copy_window(looks, 1000).second_half_rate == 250


def test_a_copy_that_was_not_seen_whole_has_no_window() -> None:
    for looks in ([Look(0, 5, 0), Look(1, 10, 0)], [Look(0, 0, 0), Look(1, 9, 0)], [Look(0, 0, 0)]):
        with pytest.raises(ValueError):
            copy_window(looks, 10)


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=50), st.floats(0.001, 10))
def test_start_lies_between_the_last_empty_look_and_the_first_record(steps: list[int], gap: float) -> None:
    looks, total = [Look(0.0, 0, 0.0), Look(gap, 0, 0.0)], 0
    for number, step in enumerate(steps, start=2):
        total += step
        looks.append(Look(number * gap, total, float(number)))

    window = copy_window(looks, total)

    assert gap <= window.start < 2 * gap
    assert window.end == looks[-1].at
    assert 0 <= window.cpu_seconds <= looks[-1].cpu_seconds
