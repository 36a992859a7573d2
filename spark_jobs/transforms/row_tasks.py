"""The tasks of a transformed copy on Spark's executors, before and after the transforms. Workers import this module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from mirror_lib.copy.transfer.result_rows import to_arrow
from mirror_lib.features.transforms.copy.model import RowJob
from mirror_lib.features.transforms.copy.row_sink import finish_bin, write_bin
from mirror_lib.features.transforms.copy.row_source import read_bin
from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from spark_jobs.bins import bin_numbers
from spark_jobs.sealing import unsealed
from spark_jobs.task_place import task_place
from spark_jobs.transforms.input_end import to_the_end

#: Schema of `drain_rows`.
DRAINED_DDL = "rows bigint"


@unsealed
def read_rows(job: RowJob, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of a bin (`rows.layout.READ_SCHEMA`)."""
    return read_bin(job, number, task_place().attempt)


@unsealed
def write_rows(job: RowJob, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Write a bin's transformed rows; yield one row with their results (`copy.transfer.result_rows`)."""
    number, attempt = task_place()
    in_transactions = any(opened.transactions is not None for opened in job.copy.bins[number])
    yield to_arrow(write_bin(job, number, attempt, to_the_end(rows, must_know=in_transactions)))


@unsealed
def finish_bins(job: RowJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """End bins for which the transforms return no row; yield a row of results for each."""
    for number in bin_numbers(numbers):
        yield to_arrow(finish_bin(job, number, task_place().attempt))


@unsealed
def drain_rows(job: RowJob, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Check whether the transforms succeed for the records of a bin: write nothing; yield the number of rows."""
    count = np.array([sum(batch.num_rows for batch in rows)], dtype=np.int64)
    if not job.whole:
        ReaderResult(job.secret, *task_place()).take()
    yield pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(count)])], ["rows"])
