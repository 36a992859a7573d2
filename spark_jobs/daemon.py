"""Spark's Python daemon with the copy task loaded: the workers that it forks begin to copy at once.

`spark.python.daemon.module` names this module. Spark asks that no thread exists before the fork, so only what starts
none is loaded here: Arrow and numpy are left to the workers.
"""

from __future__ import annotations

from pyspark.daemon import manager

import spark_jobs.copy_task  # noqa: F401

if __name__ == "__main__":
    manager()
