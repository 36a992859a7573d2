from datetime import timedelta

import pytest

from mirror_lib.airflow.schedule import airflow_schedule


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        ("@hourly", "@hourly"),
        ("*/5 * * * *", "*/5 * * * *"),
    ],
)
def test_intervals_become_timedeltas_and_all_else_is_airflows_own(text, expected):
    assert airflow_schedule(text) == expected
