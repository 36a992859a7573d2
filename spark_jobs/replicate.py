"""The Spark job of a flow: `spark-submit replicate.py --config mirror.properties --flow A->B`.

The driver plans and commits; each Spark task copies one bin of partitions. Records never become Spark rows: a task
returns one row per partition that says what was copied where.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.relay.job import main
from mirror_lib.relay.model import CopyJob, PartitionResult
from mirror_lib.relay.rows import RESULT_DDL, from_arrow
from mirror_lib.relay.spark_settings import SPARK_SETTINGS
from spark_jobs.copy_task import copy_bins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(flow: str) -> SparkSession:
    """The session of `spark-submit`, or a local one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"mirror {flow}")
    return builder.config(map=dict(SPARK_SETTINGS)).getOrCreate()


def copy_with(spark: SparkSession) -> Callable[[CopyJob], list[PartitionResult]]:
    """A runner that copies each bin in a Spark task of its own."""

    def run(job: CopyJob) -> list[PartitionResult]:
        count = len(job.bins)
        numbers = spark.range(0, count, 1, count)
        return from_arrow([numbers.mapInArrow(partial(copy_bins, job), RESULT_DDL).toArrow()])

    return run


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    sys.exit(main(sys.argv[1:], lambda flow: copy_with(spark_session(flow))))
