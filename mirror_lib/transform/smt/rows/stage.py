"""A chain over the rows of batch after batch, by columns where that can be."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa

from mirror_lib.transform.smt.chain import SmtChain
from mirror_lib.transform.smt.rows.columnar import ColumnarChain, runs_by_columns
from mirror_lib.transform.smt.rows.model import MadeRows, NeedsRecordsError
from mirror_lib.transform.smt.rows.records import RecordChain


class SmtRows:
    """A chain made ready for many batches."""

    def __init__(self, chain: SmtChain, target_topic: Callable[[str], str]) -> None:
        """Args:
        chain: of all their topics.
        target_topic: what a source topic is called on the target; it is asked once for each.
        """
        self._by_columns = ColumnarChain(chain) if runs_by_columns(chain) else None
        self._by_records = RecordChain(chain)
        self._target_topic = lru_cache(maxsize=None)(target_topic)

    def run(self, batch: pa.RecordBatch) -> MadeRows:
        """What the chain makes of rows with the columns of Spark's Kafka source.

        Raises:
            RefusedRowError: it cannot take one of them.
        """
        if self._by_columns is not None:
            try:
                return self._by_columns.run(batch, self._target_topic)
            except NeedsRecordsError:
                # Which record is the first that fails, and of what, is what one after the other tells.
                pass
        return self._by_records.run(batch, self._target_topic)
