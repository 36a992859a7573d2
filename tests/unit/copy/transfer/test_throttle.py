"""The limit on how fast a task reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.copy.transfer.throttle import Throttle
from tests.unit.copy.conftest import Clock


def test_a_second_may_be_read_at_once_and_what_is_overdrawn_has_to_be_waited_for() -> None:
    clock = Clock()
    throttle = Throttle(1_000_000, clock=clock)

    throttle.spend(3_000_000)

    assert throttle.pause() == pytest.approx(2.0, abs=0.001)
    clock.now += 2.1
    assert throttle.pause() == 0


def test_what_was_asked_for_and_did_not_come_is_given_back() -> None:
    throttle = Throttle(1_000_000, clock=Clock())

    throttle.spend(2_000_000)
    throttle.spend(-2_000_000)

    assert throttle.pause() == 0


def test_a_long_silence_saves_up_no_more_than_a_second() -> None:
    clock = Clock()
    throttle = Throttle(1_000_000, clock=clock)
    throttle.pause()
    clock.now += 3_600

    assert throttle.pause() == 0
    throttle.spend(2_000_000)

    assert throttle.pause() == pytest.approx(1.0, abs=0.001)


def test_a_request_asks_for_a_batch_at_least_however_low_the_limit() -> None:
    assert Throttle(10).burst == 64 * 1024
    assert Throttle(5_000_000).burst == 5_000_000


@given(st.floats(1_000, 1e9), st.lists(st.integers(1, 10_000_000), min_size=1, max_size=50))
def test_the_average_is_kept_whatever_is_asked_for(rate: float, requests: list[int]) -> None:
    clock = Clock()
    throttle = Throttle(rate, clock=clock)

    for size in requests:
        while (seconds := throttle.pause()) > 0:
            clock.now += seconds
        throttle.spend(size)

    # The first second and the last request are free.
    elapsed = clock.now
    assert sum(requests) - requests[-1] <= rate * (elapsed + 1) + 1
