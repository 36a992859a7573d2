"""What runs on a Spark executor. Workers import this module, so it imports nothing that only the driver needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.relay.copy import copy_attempt

if TYPE_CHECKING:
    import pyarrow as pa

    from mirror_lib.relay.model import CopyJob


def copy_bins(job: CopyJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Copy the bins whose numbers arrive as Arrow batches; gives one row per partition (`relay.rows`)."""
    from mirror_lib.relay.rows import to_arrow

    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield to_arrow(copy_attempt(job, number, _attempt()))


def _attempt() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.attemptNumber() if context is not None else 0
