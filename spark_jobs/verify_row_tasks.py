"""What the comparison of a transformed copy runs on Spark's executors, before and behind the transforms. Workers import
this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.verify.model import PartitionVerdict
from mirror_lib.verify.transformed.model import RowVerifyJob
from spark_jobs.sealing import unseal

if TYPE_CHECKING:
    import pyarrow as pa

#: What travels to the workers, and back.
ROW_VERIFY_CLASSES = (RowVerifyJob, PartitionVerdict, Connection)
#: What `drain_rows` gives.
DRAINED_DDL = "batches bigint"


def read_rows(stamp: str, sealed: bytes, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of a bin (`cluster.rows.layout.READ_SCHEMA`).

    Args:
        stamp: as `spark_jobs.sealing.seal` gives it for `ROW_VERIFY_CLASSES`.
        sealed: the `RowVerifyJob`.
        number: of the bin.

    Raises:
        ConfigurationError: the driver has another version of this package.
    """
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    from mirror_lib.verify.transformed.reading import read_bin

    return read_bin(job, number, _task()[1])


def compare_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare what the transforms made of a bin; gives one row with the verdicts of its partitions (`verify.rows`)."""
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    from mirror_lib.verify.rows import to_arrow
    from mirror_lib.verify.transformed.comparing import compare_bin

    yield to_arrow(compare_bin(job, *_task(), rows))


def drain_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """See whether the transforms take the records of a bin: nothing is compared, and nothing given."""
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    from mirror_lib.cluster.rows.hand_over import HandOver

    for _ in rows:
        pass
    HandOver(job.nonce, *_task()).take()
    yield from ()


def _task() -> tuple[int, int]:
    """The number of the bin, and of the attempt: partitions of Spark are bins all the way through."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)
