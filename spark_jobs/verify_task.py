"""The verification task on a Spark executor. Workers import this module, so it imports nothing more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.cluster import Connection
from mirror_lib.features.verify import PartitionVerdict, VerifyJob
from mirror_lib.features.verify.raw import verify_bin
from spark_jobs.bins import bin_numbers
from spark_jobs.sealing import unseal_for

if TYPE_CHECKING:
    import pyarrow as pa

#: Classes that are sent to the workers, and back.
VERIFY_CLASSES = (VerifyJob, PartitionVerdict, Connection)


@unseal_for(VERIFY_CLASSES)
def verify_bins(job: VerifyJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare the bins whose numbers arrive as Arrow batches; yield one row for each bin (`verify.result_rows`)."""
    from mirror_lib.features.verify import to_arrow

    for number in bin_numbers(numbers):
        yield to_arrow(verify_bin(job, number))
