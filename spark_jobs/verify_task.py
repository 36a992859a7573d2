"""The verification task on a Spark executor. Workers import this module, so it imports nothing more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.features.verify.raw.task import verify_bin
from spark_jobs.bins import bin_numbers
from spark_jobs.sealing import unsealed

if TYPE_CHECKING:
    import pyarrow as pa

    from mirror_lib.features.verify.model import VerifyJob


@unsealed
def verify_bins(job: VerifyJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare the bins whose numbers arrive as Arrow batches; yield one row for each bin (`verify.result_rows`)."""
    from mirror_lib.features.verify.result_rows import to_arrow

    for number in bin_numbers(numbers):
        yield to_arrow(verify_bin(job, number))
