"""The settings of the Spark job, for all its starters: the DAG, the command line and the bench."""

from __future__ import annotations

from collections.abc import Mapping

SPARK_SETTINGS: Mapping[str, str] = {
    # Attempts have effects outside Spark: a second copy of a task would only be fenced, and the next run retries a
    # failed one.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    # Workers in which the copy task is loaded at their start.
    "spark.python.daemon.module": "spark_jobs.daemon",
    "spark.python.worker.reuse": "true",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    # Records never pass through the driver's JVM: the optimizing compiler would only slow its start, by half of the
    # processor time of a whole cold run. For transforms, `spark.submit.submit_settings` changes it.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

#: Options of a JVM that processes every record: with the optimizing compiler, without which it takes 2.4 times the
#: processor time. Rows of transforms are short-lived and large: with a third of the heap for the young generation,
#: Spark's default, many are promoted before they die.
TRANSFORMING_JVM = "-XX:+UseSerialGC -XX:NewRatio=1"
