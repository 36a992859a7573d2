from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise, takewhile

import pytest
from croniter import CroniterBadDateError, croniter
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mirror_lib.config.schedule import longest_interval_seconds, parse_schedule


def test_schedules_are_read_or_refused(subtests: pytest.Subtests) -> None:
    for text, schedule in [
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        (" 2h ", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("@hourly", "@hourly"),
        ("*/5 * * * *", "*/5 * * * *"),
        ("0  4 1,15 * mon-fri", "0 4 1,15 * mon-fri"),
        ("0 0 * jan sun", "0 0 * jan sun"),
        ("", None),
        (None, None),
    ]:
        assert parse_schedule(text) == schedule, text

    for text in [
        "5",
        "0m",
        "99999999999d",
        "9" * 5000 + "s",
        "5x",
        "5 m",
        "@never",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "*/0 * * * *",
        "9-3 * * * *",
        # No such day.
        "0 0 31 2 *",
        "0 0 30-31 feb *",
    ]:
        with subtests.test(text), pytest.raises(ValueError):
            parse_schedule(text)


def test_the_longest_time_between_two_runs_is_known_unless_no_run_is_promised() -> None:
    for text, seconds in [
        ("30s", 30),
        ("1d", 86_400),
        ("@hourly", 3_600),
        ("@weekly", 7 * 86_400),
        ("*/5 * * * *", 300),
        ("* * * * *", 60),
        ("0 * * * *", 3_600),
        ("7,27 * * * *", 40 * 60),
        # From 18:00 until 06:00.
        ("0 6-18/4 * * *", 12 * 3_600),
        ("30 4 * * *", 86_400),
        # From Friday to Monday.
        ("0 12 * * mon-fri", 3 * 86_400),
        ("0 0 * * 0,7", 7 * 86_400),
        ("0 0 1 * *", 31 * 86_400),
        ("0 0 31 * *", 61 * 86_400),
        ("0 0 1 1 *", 366 * 86_400),
        ("0 0 29 2 *", 4 * 365 * 86_400 + 86_400),
        ("0 9 1 * *", 31 * 86_400),
        # On the 1st, and on each Monday.
        ("0 0 1 * mon", 7 * 86_400),
        ("0 6,18 * jan *", (335 * 24 + 12) * 3_600),
    ]:
        assert longest_interval_seconds(text) == seconds, text

    for text in [None, "", "@once", "@continuous"]:
        assert longest_interval_seconds(text) is None, text


def _items(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.lists(st.integers(low, high), min_size=1, max_size=3, unique=True)
    return st.one_of(st.just("*"), numbers.map(lambda found: ",".join(map(str, found))))


def _longest_of_croniter(text: str, until: datetime) -> float:
    times = croniter(text, datetime(2000, 12, 31, 23, 59))
    starts = list(takewhile(lambda at: at < until, iter(partial(times.get_next, datetime), None)))
    return max((later - earlier).total_seconds() for earlier, later in pairwise(starts))


@given(_items(1, 31), _items(1, 12), _items(0, 7))
@example("29", "2", "*")
@example("1", "*", "1")
@example("*/1", "*", "1")
@example("1-31", "*", "1")
@example("1", "*", "1-7")
@example("1", "*", "sun-sat")
@example("*,5", "*", "1")
@example("1", "*", "1,*")
@settings(max_examples=4, deadline=None)
def test_the_longest_time_between_days_is_that_of_airflows_own_library(day: str, month: str, weekday: str) -> None:
    text = f"0 0 {day} {month} {weekday}"
    try:
        longest = longest_interval_seconds(text)
    except ValueError:
        with pytest.raises(CroniterBadDateError):
            croniter(text, datetime(2001, 1, 1)).get_next()
        return
    assert longest == _longest_of_croniter(text, datetime(2030, 1, 1))


@given(_items(0, 59), _items(0, 23))
@settings(max_examples=15, deadline=None)
def test_the_longest_time_within_days_is_that_of_airflows_own_library(minute: str, hour: str) -> None:
    text = f"{minute} {hour} * * *"
    assert longest_interval_seconds(text) == _longest_of_croniter(text, datetime(2001, 1, 4))
