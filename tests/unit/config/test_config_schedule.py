from __future__ import annotations

from datetime import timedelta

import pytest

from mirror_lib.config.schedule import parse_schedule


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
