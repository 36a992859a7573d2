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
from spark_jobs.task_place import task_place

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

    return read_bin(job, number, task_place().attempt)


def compare_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare what the transforms made of a bin; gives one row with the verdicts of its partitions (`verify.rows`)."""
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    from mirror_lib.verify.rows import to_arrow
    from mirror_lib.verify.transformed.comparing import compare_bin

    yield to_arrow(compare_bin(job, *task_place(), rows))


def drain_rows(stamp: str, sealed: bytes, rows: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """See whether the transforms take the records of a bin: nothing is compared, and nothing given."""
    job: RowVerifyJob = unseal(stamp, sealed, ROW_VERIFY_CLASSES)
    from mirror_lib.cluster.rows.hand_over import HandOver

    for _ in rows:
        pass
    HandOver(job.nonce, *task_place()).take()
    yield from ()
