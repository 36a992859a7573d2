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
    # Records never pass through the driver's JVM: what makes long-running code fast only makes its start slow, by half
    # the processor time of a whole cold run. Where they do, `relay.submission.submit_settings` says otherwise.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

#: Options of a JVM that works on every record: with the optimizing compiler, without which it takes 2.4 times the
#: processor time. Rows of transforms live briefly and are large: with a third of the heap for what is young, Spark's
#: usual share, many are moved before they die.
TRANSFORMING_JVM = "-XX:+UseSerialGC -XX:NewRatio=1"

#: Where executors unpack the packed environment, below their own folder.
_ENVIRONMENT = "environment"


def environment_settings(archive: str) -> dict[str, str]:
    """Settings by which executors run in a packed environment (`relay.executor_environment`).

    Args:
        archive: its path here, or a URL that executors can read.
    """
    from mirror_lib.spark.executor_archive import LAUNCHER

    return {"spark.archives": f"{archive}#{_ENVIRONMENT}", "spark.pyspark.python": f"./{_ENVIRONMENT}/{LAUNCHER}"}
