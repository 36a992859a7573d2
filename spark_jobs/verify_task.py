"""The verification task on a Spark executor. Workers import this module, so it imports nothing more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.cluster import Connection
from mirror_lib.verify import PartitionVerdict, VerifyJob
from mirror_lib.verify.raw import verify_bin
from spark_jobs.sealing import unseal

if TYPE_CHECKING:
    import pyarrow as pa

#: Classes that are sent to the workers, and back.
VERIFY_CLASSES = (VerifyJob, PartitionVerdict, Connection)


def verify_bins(stamp: str, sealed: bytes, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare the bins whose numbers arrive as Arrow batches; yield one row for each bin (`verify.result_rows`).

    Args:
        stamp: result of `spark_jobs.sealing.seal` for `VERIFY_CLASSES`.
        sealed: the `VerifyJob`.
        numbers: numbers of bins.

    Raises:
        ConfigurationError: the driver has another version of this package.
    """
    job: VerifyJob = unseal(stamp, sealed, VERIFY_CLASSES)
    from mirror_lib.verify import to_arrow

    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield to_arrow(verify_bin(job, number))
