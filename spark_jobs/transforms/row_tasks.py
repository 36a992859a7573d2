"""The tasks of a transformed copy on Spark's executors, before and after the transforms. Workers import this module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from mirror_lib.cluster.rows import HandOver
from mirror_lib.relay import PartitionResult
from mirror_lib.relay.copy import to_arrow
from mirror_lib.relay.transformed import RowJob, finish_bin, read_bin, write_bin
from spark_jobs.input_end import to_the_end
from spark_jobs.sealing import unseal
from spark_jobs.task_place import task_place

#: Classes that are sent to the workers, and back.
ROW_CLASSES = (RowJob, PartitionResult)
#: Schema of `drain_rows`.
DRAINED_DDL = "rows bigint"


def read_rows(stamp: str, sealed: bytes, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of a bin (`cluster.rows.layout.READ_SCHEMA`).

    Args:
        stamp: result of `spark_jobs.sealing.seal` for `ROW_CLASSES`.
        sealed: the `RowJob`.
        number: number of the bin.

    Raises:
        ConfigurationError: the driver has another version of this package.
    """
    job: RowJob = unseal(stamp, sealed, ROW_CLASSES)
    return read_bin(job, number, task_place().attempt)


def write_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Write a bin's transformed rows; yield one row with the results of its partitions (`relay.copy.result_rows`)."""
    job: RowJob = unseal(stamp, sealed, ROW_CLASSES)
    number, attempt = task_place()
    in_transactions = any(opened.transactions is not None for opened in job.copy.bins[number])
    yield to_arrow(write_bin(job, number, attempt, to_the_end(rows, must_know=in_transactions)))


def finish_bins(stamp: str, sealed: bytes, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """End bins for which the transforms return no row; yield a row of results for each."""
    job: RowJob = unseal(stamp, sealed, ROW_CLASSES)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield to_arrow(finish_bin(job, number, task_place().attempt))


def drain_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Check whether the transforms succeed for the records of a bin: write nothing; yield the number of rows."""
    job: RowJob = unseal(stamp, sealed, ROW_CLASSES)
    count = np.array([sum(batch.num_rows for batch in rows)], dtype=np.int64)
    if not job.whole:
        HandOver(job.secret, *task_place()).take()
    yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(count)])], ["rows"])
