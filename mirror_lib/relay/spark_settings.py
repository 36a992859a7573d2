"""How the Spark job wants to be run, in one place for all who start it: the DAG, the command line and the bench."""

from __future__ import annotations

from collections.abc import Mapping

SPARK_SETTINGS: Mapping[str, str] = {
    # Attempts have effects outside Spark: a second copy of a task would only be fenced, and repeating a failed one is
    # the next run's business.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    # Workers that have the copy task loaded when they start.
    "spark.python.daemon.module": "spark_jobs.daemon",
    "spark.python.worker.reuse": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}
