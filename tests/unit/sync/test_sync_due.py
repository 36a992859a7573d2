"""Intervals of steps that are done less often than a flow runs."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.sync.intervals import Interval

LAST = datetime(2026, 1, 2, 10, 0, tzinfo=UTC)


def interval(seconds: int = 600, *, enabled: bool = True) -> Interval:
    return Interval("sync.enabled", enabled, "sync.interval.seconds", seconds)


def test_a_step_is_left_out_until_its_interval_has_passed() -> None:
    reason = interval().why_not(LAST, LAST + timedelta(seconds=300))

    assert reason == "it last ran at 10:00:00 UTC and is due again at 10:10:00 (sync.interval.seconds)"
    assert interval().why_not(LAST, LAST + timedelta(seconds=600)) is None
    # A schedule as long as the interval may jitter.
    assert interval().why_not(LAST, LAST + timedelta(seconds=595)) is None
    assert interval().why_not(None, LAST) is None
    # A time in the future is that of a clock that was wrong.
    assert interval().why_not(LAST, LAST - timedelta(hours=1)) is None


def test_a_step_that_is_switched_off_says_by_which_key() -> None:
    assert interval(enabled=False).why_not(None, LAST) == "sync.enabled is false"
    assert interval(-1).why_not(None, LAST) == "sync.interval.seconds is -1"


@given(st.integers(0, 10**6), st.integers(0, 10**7))
def test_a_step_is_never_left_out_after_its_interval(seconds: int, passed: int) -> None:
    skipped = interval(seconds).why_not(LAST, LAST + timedelta(seconds=passed)) is not None

    assert not (skipped and passed >= seconds)
