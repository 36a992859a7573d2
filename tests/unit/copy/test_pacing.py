"""How far apart a run's rounds begin."""

from __future__ import annotations

from mirror_lib.copy.pacing import RoundPace
from tests.unit.copy.conftest import Clock


def test_rounds_begin_so_far_apart_but_for_the_one_that_looks_for_what_came_meanwhile() -> None:
    for starts, seconds, next_start in (
        ([100.0], 5, 100.0),
        ([100.0, 100.5], 5, 105.5),
        ([100.0, 100.5, 105.5], 5, 110.5),
        # Zero keeps no rounds apart.
        ([100.0, 100.5, 100.6], 0, 100.6),
    ):
        clock = Clock()
        pace = RoundPace(seconds, clock=clock)
        for start in starts:
            clock.now = start
            pace.begin()

        assert pace.next_start() == next_start, starts


def test_a_round_that_took_longer_is_followed_at_once() -> None:
    clock = Clock(100.0)
    pace = RoundPace(5, clock=clock)
    pace.begin()
    pace.begin()
    clock.now = 108.0

    assert pace.next_start() < clock.now
