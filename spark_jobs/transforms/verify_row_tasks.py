"""The tasks of a transformed copy's comparison on Spark's executors, before and after the transforms. Workers import
this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mirror_lib.features.transforms.rows.reader_result import ReaderResult
from mirror_lib.features.verify.result_rows import to_arrow
from mirror_lib.features.verify.routed.findings import Place
from mirror_lib.features.verify.routed.target_digests import DigestsJob, read_target_digests
from mirror_lib.features.verify.transformed.compare_rows import compare_bin, find_bin
from mirror_lib.features.verify.transformed.model import RowVerifyJob
from mirror_lib.features.verify.transformed.row_source import read_bin
from spark_jobs.bins import bin_numbers
from spark_jobs.sealing import unsealed
from spark_jobs.task_place import task_place

if TYPE_CHECKING:
    import pyarrow as pa

#: Schema of `drain_rows`.
DRAINED_DDL = "batches bigint"


@unsealed
def read_rows(job: RowVerifyJob, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of a bin (`rows.layout.READ_SCHEMA`)."""
    return read_bin(job, number, task_place().attempt)


@unsealed
def compare_rows(job: RowVerifyJob, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare the transformed rows of a bin.

    Yield one row (`verify.result_rows`) with the verdicts of its partitions, followed by the routed rows.
    """
    verdicts, routed = compare_bin(job, *task_place(), rows)
    yield to_arrow([*verdicts, routed])


@unsealed
def find_rows(
    job: RowVerifyJob, wanted: Mapping[Place, frozenset[bytes]], rows: Iterable[Any]
) -> Iterator[pa.RecordBatch]:
    """Find rows by their digests; yield one row with each `FoundRow`."""
    yield to_arrow(find_bin(job, *task_place(), rows, wanted))


@unsealed
def read_targets(job: DigestsJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Read the target partitions of routed records; yield one row for each bin, whose numbers are in Arrow batches."""
    for number in bin_numbers(numbers):
        yield to_arrow(read_target_digests(job, number))


@unsealed
def drain_rows(job: RowVerifyJob, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Check whether the transforms succeed for the records of a bin: compare nothing, and yield nothing."""
    for _ in rows:
        pass
    ReaderResult(job.secret, *task_place()).take()
    yield from ()
