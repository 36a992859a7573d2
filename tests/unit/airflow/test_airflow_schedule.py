from datetime import timedelta

from mirror_lib.airflow.schedule import airflow_schedule


def test_intervals_become_timedeltas_and_all_else_is_airflows_own():
    assert airflow_schedule("30s") == timedelta(seconds=30)
    assert airflow_schedule("5m") == timedelta(minutes=5)
    assert airflow_schedule("2h") == timedelta(hours=2)
    assert airflow_schedule("1d") == timedelta(days=1)
    for own in (None, "@hourly", "*/5 * * * *"):
        assert airflow_schedule(own) == own
