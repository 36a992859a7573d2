"""The Spark job of a verification: `spark-submit verify.py --config mirror.properties --flow 'A->B' --mode recent`.

The driver plans and stores the result; each Spark task compares one bin of partitions. Records become Spark rows only
if they go through transforms. Tasks only read, so Spark may retry them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mirror_lib.features.verify.findings import PartitionVerdict, RoutedVerdict
from mirror_lib.features.verify.job import main
from mirror_lib.features.verify.model import VerifyJob
from mirror_lib.features.verify.planning.by_transform_chain import split_job
from mirror_lib.features.verify.result_rows import VERDICT_DDL, from_arrow
from mirror_lib.features.verify.run import VerifyRunner
from mirror_lib.topology.names import TopicPartition
from spark_jobs.bins import map_bins
from spark_jobs.entry import OpenSession, start
from spark_jobs.executor_wait import executors_within
from spark_jobs.failures import spark_errors, spark_failure
from spark_jobs.sealing import seal
from spark_jobs.spark_versions import to_arrow
from spark_jobs.verify_task import verify_bins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Classes of its results, one of each module.
VERIFY_RESULTS = (PartitionVerdict, TopicPartition)
_CONSEQUENCE = "Nothing was compared; repeat the verification."


def verify_with(spark: SparkSession) -> VerifyRunner:
    """A runner that compares each bin in its own Spark task; it raises the errors of `copy_with`."""

    def compare(job: VerifyJob) -> list[PartitionVerdict]:
        task = partial(verify_bins, *seal(job, VERIFY_RESULTS))
        try:
            return from_arrow([to_arrow(map_bins(spark, len(job.bins), task, VERDICT_DDL))])
        except spark_errors() as error:
            raise spark_failure(error, "the comparison", str(job.flow)) from error

    def run(job: VerifyJob) -> list[PartitionVerdict | RoutedVerdict]:
        with executors_within(spark, job.executor_wait_seconds, str(job.flow), consequence=_CONSEQUENCE):
            return run_here(job)

    def run_here(job: VerifyJob) -> list[PartitionVerdict | RoutedVerdict]:
        raw, transformed = split_job(job)
        verdicts: list[PartitionVerdict | RoutedVerdict] = [*compare(raw)] if raw.bins else []
        if transformed or job.routed.checks:
            # Most flows have no transforms, so these modules are only loaded on demand.
            from spark_jobs.transforms.verify_transformed import verify_transformed

            verdicts += verify_transformed(spark, job, transformed)
        return verdicts

    return run


def _run(argv: Sequence[str], open_session: OpenSession) -> int:
    return main(argv, lambda flow: verify_with(open_session(f"mirror verify {flow}")))


if __name__ == "__main__":
    sys.exit(start(sys.argv[1:], _run, copies=False))
