"""How far apart a run's rounds begin."""

from __future__ import annotations

from mirror_lib.relay.pacing import RoundPace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def paced(*starts: float, seconds: float) -> float:
    clock = Clock()
    pace = RoundPace(seconds, clock=clock)
    for start in starts:
        clock.now = start
        pace.begin()
    return pace.next_start()


def test_the_round_that_looks_for_what_came_meanwhile_does_not_wait() -> None:
    assert paced(100.0, seconds=5) == 100.0


def test_rounds_of_a_run_that_follows_its_writers_begin_so_far_apart() -> None:
    assert paced(100.0, 100.5, seconds=5) == 105.5
    assert paced(100.0, 100.5, 105.5, seconds=5) == 110.5


def test_a_round_that_took_longer_is_followed_at_once() -> None:
    clock = Clock()
    pace = RoundPace(5, clock=clock)
    pace.begin()
    pace.begin()
    clock.now = 108.0

    assert pace.next_start() < clock.now


def test_zero_keeps_no_rounds_apart() -> None:
    assert paced(100.0, 100.5, 100.6, seconds=0) == 100.6
