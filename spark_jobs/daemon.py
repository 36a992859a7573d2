"""Spark's Python daemon with the copy task loaded: the workers that it forks start to copy at once.

`spark.python.daemon.module` names this module. Spark requires that no thread exists before the fork, so only modules
that start none are loaded here: the workers load Arrow and numpy.
"""

from __future__ import annotations

from pyspark.daemon import manager

import spark_jobs.copy_task  # noqa: F401

if __name__ == "__main__":
    manager()
