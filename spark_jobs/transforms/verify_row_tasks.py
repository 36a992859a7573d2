"""The tasks of a transformed copy's comparison on Spark's executors, before and after the transforms. Workers import
this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mirror_lib.cluster import Connection
from mirror_lib.cluster.rows import HandOver
from mirror_lib.verify import PartitionVerdict, to_arrow
from mirror_lib.verify.routed import DigestsJob, FoundRow, Place, RoutedFindings, TargetDigests, read_target_digests
from mirror_lib.verify.transformed import RowVerifyJob, compare_bin, find_bin, read_bin
from spark_jobs.sealing import unseal
from spark_jobs.task_place import task_place

if TYPE_CHECKING:
    import pyarrow as pa

#: Classes that are sent to the workers, and back.
ROW_VERIFY_CLASSES = (RowVerifyJob, PartitionVerdict, Connection, RoutedFindings, FoundRow)
DIGEST_CLASSES = (DigestsJob, TargetDigests, Connection)
#: Schema of `drain_rows`.
DRAINED_DDL = "batches bigint"


def read_rows(stamp: str, sealed: bytes, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of a bin (`cluster.rows.layout.READ_SCHEMA`).

    Args:
        stamp: result of `spark_jobs.sealing.seal` for `ROW_VERIFY_CLASSES`.
        sealed: the `RowVerifyJob`.
        number: number of the bin.

    Raises:
        ConfigurationError: the driver has another version of this package.
    """
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    return read_bin(job, number, task_place().attempt)


def compare_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare the transformed rows of a bin.

    Yield one row (`verify.result_rows`) with the verdicts of its partitions, followed by the routed rows.
    """
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    verdicts, routed = compare_bin(job, *task_place(), rows)
    yield to_arrow([*verdicts, routed])


def find_rows(
    stamp: str, sealed: bytes, wanted: Mapping[Place, frozenset[bytes]], rows: Iterable[Any]
) -> Iterator[pa.RecordBatch]:
    """Find rows by their digests; yield one row with each `FoundRow`."""
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    yield to_arrow(find_bin(job, *task_place(), rows, wanted))


def read_targets(stamp: str, sealed: bytes, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Read the target partitions of routed records; yield one row for each bin.

    Args:
        stamp: result of `spark_jobs.sealing.seal` for `DIGEST_CLASSES`.
        sealed: the `DigestsJob`.
        numbers: numbers of bins, as Arrow batches.
    """
    job: DigestsJob = unseal(stamp, sealed, DIGEST_CLASSES)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield to_arrow(read_target_digests(job, number))


def drain_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Check whether the transforms succeed for the records of a bin: compare nothing, and yield nothing."""
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    for _ in rows:
        pass
    HandOver(job.secret, *task_place()).take()
    yield from ()
