"""The copy task on a Spark executor. Workers import this module, so it imports nothing that only the driver needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.copy.transfer.task import copy_attempt
from spark_jobs.bins import bin_numbers
from spark_jobs.sealing import unsealed
from spark_jobs.task_place import task_place

if TYPE_CHECKING:
    import pyarrow as pa

    from mirror_lib.planning.model import CopyJob


@unsealed
def copy_bins(job: CopyJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Copy the bins whose numbers arrive as Arrow batches; yield one row per bin (`copy.transfer.result_rows`)."""
    from mirror_lib.copy.transfer.result_rows import to_arrow

    for number in bin_numbers(numbers):
        yield to_arrow(copy_attempt(job, number, task_place().attempt))
