"""The Spark job of a flow: `spark-submit replicate.py --config mirror.properties --flow A->B`.

The driver plans and commits; each Spark task copies one bin of partitions. Records never become Spark rows: a task
returns one row per partition that says what was copied where.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.relay.job import main
from mirror_lib.relay.model import CopyJob, PartitionResult
from mirror_lib.relay.rows import RESULT_DDL, from_arrow, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def spark_session(flow: str) -> SparkSession:
    """The session of `spark-submit`, or a local one; speculation would only make fenced twins."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.appName(f"mirror {flow}")
        .config("spark.speculation", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.python.worker.reuse", "true")
        .getOrCreate()
    )


def copy_with(spark: SparkSession) -> Callable[[CopyJob], list[PartitionResult]]:
    """A runner that copies each bin in a Spark task of its own."""

    def run(job: CopyJob) -> list[PartitionResult]:
        def copy_bins(batches: Iterable[Any]) -> Iterator[pa.RecordBatch]:
            from mirror_lib.relay.copy import copy_attempt

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield to_arrow(copy_attempt(job, number, _attempt()))

        count = len(job.bins)
        numbers = spark.range(0, count, 1, count)
        return from_arrow([numbers.mapInArrow(copy_bins, RESULT_DDL).toArrow()])

    return run


def _attempt() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    sys.exit(main(sys.argv[1:], lambda flow: copy_with(spark_session(flow))))
