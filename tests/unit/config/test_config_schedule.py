from __future__ import annotations

from datetime import timedelta

import pytest

from mirror_lib.config.schedule import longest_interval_seconds, parse_schedule


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
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
    ],
)
def test_schedules(text: str | None, schedule: object) -> None:
    assert parse_schedule(text) == schedule


@pytest.mark.parametrize(
    "text",
    [
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
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_schedule(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
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
        ("0 0 1 * *", 366 * 86_400),
    ],
)
def test_the_longest_time_between_two_runs(text: str, seconds: float) -> None:
    assert longest_interval_seconds(text) == seconds


@pytest.mark.parametrize("text", [None, "", "@once", "@continuous"])
def test_some_schedules_promise_no_run_at_a_certain_time(text: str | None) -> None:
    assert longest_interval_seconds(text) is None
