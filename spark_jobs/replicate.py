"""The Spark job of a flow: `spark-submit replicate.py --config mirror.properties --flow 'A->B'`.

The driver plans and commits; each Spark task copies one bin of partitions. Records never become Spark rows: a task
returns one row with the results of its partitions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.copy.job.command import main
from mirror_lib.copy.transfer.result_rows import RESULT_DDL, from_arrow
from mirror_lib.planning.by_transform_chain import row_copy, split_job
from mirror_lib.planning.model import CopyJob, PartitionResult
from spark_jobs.bins import map_bins
from spark_jobs.copy_results import COPY_RESULTS
from spark_jobs.copy_task import copy_bins
from spark_jobs.entry import OpenSession, start
from spark_jobs.executor_wait import executors_within
from spark_jobs.failures import spark_errors, spark_failure
from spark_jobs.sealing import seal
from spark_jobs.spark_versions import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONSEQUENCE = "Nothing was copied; the next run copies everything."


def copy_with(spark: SparkSession) -> Callable[[CopyJob], list[PartitionResult]]:
    """A runner that copies each bin in its own Spark task; it raises `SparkJobError` if Spark gives up.

    It raises `ConfigurationError` if Spark's workers cannot run the project's tasks at all.
    """

    def copy(job: CopyJob) -> list[PartitionResult]:
        task = partial(copy_bins, *seal(job, COPY_RESULTS))
        try:
            return from_arrow([to_arrow(map_bins(spark, len(job.bins), task, RESULT_DDL))])
        except spark_errors() as error:
            raise spark_failure(error, "the copy", str(job.flow)) from error

    def run(job: CopyJob) -> list[PartitionResult]:
        wait = job.settings.spark_executor_wait_seconds
        with executors_within(spark, wait, str(job.flow), consequence=_CONSEQUENCE):
            return run_here(job)

    def run_here(job: CopyJob) -> list[PartitionResult]:
        raw, transformed = split_job(job)
        results = copy(raw) if raw.bins else []
        if not transformed:
            return results
        copy_rows = row_copy(str(job.flow))
        return [*results, *(result for each in transformed for result in copy_rows(spark, each))]

    return run


def _run(argv: Sequence[str], open_session: OpenSession) -> int:
    return main(argv, lambda flow: copy_with(open_session(f"mirror {flow}")))


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:], _run, copies=True))
