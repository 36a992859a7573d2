"""What Spark's Python daemon loads before it forks its workers."""

from __future__ import annotations

import subprocess
import sys


def test_the_daemon_loads_nothing_that_is_heavy_or_starts_threads() -> None:
    """numpy's BLAS and Arrow start threads, which a fork does not survive; Kafka's C client does too."""
    heavy = ("numpy", "pyarrow", "pandas", "confluent_kafka", "sqlalchemy")
    program = f"import spark_jobs.copy_task, sys; print([name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
