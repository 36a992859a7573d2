"""The Spark job of a flow: `spark-submit replicate.py --config mirror.properties --flow A->B`.

The driver plans and commits; each Spark task copies one bin of partitions. Records never become Spark rows: a task
returns one row per partition that says what was copied where.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.errors import SparkJobError, Where
from mirror_lib.relay.job import main
from mirror_lib.relay.model import CopyJob, PartitionResult
from mirror_lib.relay.rows import RESULT_DDL, from_arrow
from mirror_lib.relay.spark_settings import SPARK_SETTINGS
from spark_jobs.copy_task import copy_bins
from spark_jobs.job_log import configure_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(flow: str) -> SparkSession:
    """The session of `spark-submit`, or a local one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"mirror {flow}")
    return builder.config(map=dict(SPARK_SETTINGS)).getOrCreate()


def copy_with(spark: SparkSession) -> Callable[[CopyJob], list[PartitionResult]]:
    """A runner that copies each bin in a Spark task of its own; raises `SparkJobError` where Spark gives up."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    def run(job: CopyJob) -> list[PartitionResult]:
        count = len(job.bins)
        numbers = spark.range(0, count, 1, count)
        try:
            return from_arrow([numbers.mapInArrow(partial(copy_bins, job), RESULT_DDL).toArrow()])
        except (PySparkException, Py4JError) as error:
            raise SparkJobError(
                f"Spark ended the copy: {_in_short(error)}.",
                where=Where(flow=str(job.flow)),
                action="What was copied is kept; the next run finds it and goes on. The executors' logs say more: look "
                "for memory that ran out.",
            ) from error

    return run


def _in_short(error: Exception) -> str:
    """The line of a Java stack trace that says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Job aborted" in line or "Exception: " in line]
    return (told or lines or [type(error).__name__])[0].rstrip(".")


if __name__ == "__main__":
    configure_log()
    sys.exit(main(sys.argv[1:], lambda flow: copy_with(spark_session(flow))))
