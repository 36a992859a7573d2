"""What Spark's Python daemon loads before it forks its workers."""

from __future__ import annotations

from tests.support.fresh_imports import loaded_after


def test_the_daemon_loads_nothing_that_is_heavy_or_starts_threads() -> None:
    """numpy's BLAS and Arrow start threads, which a fork does not survive; Kafka's C client does too."""
    heavy = ("numpy", "pyarrow", "pandas", "confluent_kafka", "sqlalchemy")

    assert loaded_after("import spark_jobs.copy_task", heavy) == []
