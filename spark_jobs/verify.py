"""The Spark job of a verification: `spark-submit verify.py --config mirror.properties --flow A->B --mode recent`.

The driver plans and keeps the result; each Spark task compares one bin of partitions. Records never become Spark rows.
Tasks only read, so Spark may repeat them.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.relay.spark_settings import SPARK_SETTINGS
from mirror_lib.verify.job import main
from mirror_lib.verify.model import PartitionVerdict, VerifyJob
from mirror_lib.verify.rows import VERDICT_DDL, from_arrow
from mirror_lib.verify.verification import VerifyRunner
from spark_jobs.job_log import configure_log
from spark_jobs.verify_task import verify_bins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def spark_session(flow: str) -> SparkSession:
    """The session of `spark-submit`, or a local one."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(f"mirror verify {flow}")
    return builder.config(map=dict(SPARK_SETTINGS)).getOrCreate()


def verify_with(spark: SparkSession) -> VerifyRunner:
    """A runner that compares each bin in a Spark task of its own."""

    def run(job: VerifyJob) -> list[PartitionVerdict]:
        count = len(job.bins)
        numbers = spark.range(0, count, 1, count)
        return from_arrow([numbers.mapInArrow(partial(verify_bins, job), VERDICT_DDL).toArrow()])

    return run


if __name__ == "__main__":
    configure_log()
    sys.exit(main(sys.argv[1:], lambda flow: verify_with(spark_session(flow))))
