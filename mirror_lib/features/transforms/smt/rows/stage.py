"""A chain over the rows of batch after batch, by columns where possible."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.rows.columnar import ColumnarChain, runs_by_columns
from mirror_lib.features.transforms.smt.rows.model import MadeRows, NeedsRecordsError
from mirror_lib.features.transforms.smt.rows.records import RecordChain


class SmtRows:
    """A chain prepared for many batches."""

    def __init__(self, chain: SmtChain, target_topic: Callable[[str], str]) -> None:
        """Args:
        chain: of all their topics.
        target_topic: what a source topic is called on the target; it is asked once for each.
        """
        self._by_columns = ColumnarChain(chain) if runs_by_columns(chain) else None
        self._by_records = RecordChain(chain)
        self._target_topic = lru_cache(maxsize=None)(target_topic)

    def run(self, batch: pa.RecordBatch) -> MadeRows:
        """Return the result of the chain for rows with the columns of Spark's Kafka source.

        Raises:
            RefusedRowError: it rejects one of them.
        """
        if self._by_columns is not None:
            try:
                return self._by_columns.run(batch, self._target_topic)
            except NeedsRecordsError:
                # Processing record by record finds the first one that fails, and its error.
                pass
        return self._by_records.run(batch, self._target_topic)
