"""What a verification runs on a Spark executor. Workers import this module, so it imports nothing more than needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from mirror_lib.verify.run import verify_bin

if TYPE_CHECKING:
    import pyarrow as pa

    from mirror_lib.verify.model import VerifyJob


def verify_bins(job: VerifyJob, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Compare the bins whose numbers arrive as Arrow batches; gives one row for each bin (`verify.rows`)."""
    from mirror_lib.verify.rows import to_arrow

    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield to_arrow(verify_bin(job, number))
