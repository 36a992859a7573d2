"""Connect's transforms in the Python workers: before Spark gets the rows, and without Spark if there are no others.

Workers import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from typing import Any, NamedTuple

import pyarrow as pa

from mirror_lib.copy.transfer.result_rows import to_arrow
from mirror_lib.features.transforms.copy.model import RowJob
from mirror_lib.features.transforms.copy.row_sink import write_bin
from mirror_lib.features.transforms.copy.row_source import read_bin
from mirror_lib.features.transforms.rows.layout import READ_DDL, SOURCE_COLUMN
from mirror_lib.features.transforms.smt.chain import SmtChain
from spark_jobs.bins import bin_numbers
from spark_jobs.sealing import seal, unseal, unsealed
from spark_jobs.task_place import task_place
from spark_jobs.transforms.hidden_columns import TOPIC
from spark_jobs.transforms.tasks import SmtStage, TargetTopicOf

#: Schema of rows after Connect's transforms in the reading worker: with the topic that these have set, or null.
READ_THROUGH_SMTS_DDL = f"{READ_DDL}, {TOPIC} string"
_PARTITION = "partition"
_WRITTEN_AS_READ = ("key", "value", "headers", "timestamp")


class SealedSmts(NamedTuple):
    """A chain of Connect's transforms for the workers.

    Attributes:
        stamp: result of `spark_jobs.sealing.seal`.
        chain: the sealed chain.
        target_topics: the remote topic of each source topic.
    """

    stamp: str
    chain: bytes
    target_topics: TargetTopicOf

    def open(self) -> SmtStage:
        """The chain, ready for rows.

        Raises:
            ConfigurationError: the driver has another version of this package.
        """
        return SmtStage(unseal(self.stamp, self.chain), self.target_topics)


def sealed_smts(chain: SmtChain, target_topics: TargetTopicOf) -> SealedSmts:
    """A sealed chain for the workers, with the target topics."""
    return SealedSmts(*seal(chain), target_topics)


def read_through_smts(
    read: Callable[[str, bytes, int], Iterator[Any]], smts: SealedSmts, stamp: str, sealed: bytes, number: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a bin after Connect's transforms (`READ_THROUGH_SMTS_DDL`).

    Args:
        read: returns the rows of a bin as they were read (`rows.layout.READ_SCHEMA`).
        smts: the transforms.
        stamp: the first argument of `read`; `sealed` is the second.

    Raises:
        UntransformableRecordError: an SMT fails for a record; the error has the record's mark.
        ConfigurationError: the driver has another version of this package.
    """
    return _through(smts.open(), read(stamp, sealed, number))


@unsealed
def copy_rows(job: RowJob, smts: SealedSmts | None, numbers: Iterable[Any]) -> Iterator[pa.RecordBatch]:
    """Read, transform and write bins in this worker; yield a row of results for each (`copy.transfer.result_rows`).

    Args:
        smts: all transforms of its records; None if they stay unchanged.
        numbers: numbers of the bins.

    Raises:
        UntransformableRecordError: an SMT fails for a record; the error has the record's mark.
        ConfigurationError: the driver has another version of this package.
    """
    stage, attempt = None if smts is None else smts.open(), task_place().attempt
    for number in bin_numbers(numbers):
        made = _through(stage, read_bin(job, number, attempt))
        with closing(made):
            yield to_arrow(write_bin(job, number, attempt, map(_to_written, made)))


def _through(stage: SmtStage | None, rows: Iterator[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
    try:
        for batch in rows:
            with_topic = _with_topic(batch)
            made = with_topic if stage is None else stage.run(with_topic)
            # An empty batch would be a needless round trip to Spark.
            if made.num_rows:
                yield made
    finally:
        # Reading runs ahead of its rows: it must end when no more rows are taken.
        if isinstance(rows, Generator):
            rows.close()


def _with_topic(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column(TOPIC, pa.nulls(batch.num_rows, pa.string()))


def _to_written(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows for the writing half (`rows.layout.WRITTEN_DDL`)."""
    columns = {name: rows.column(name) for name in _WRITTEN_AS_READ}
    columns["topic"] = rows.column(TOPIC)
    columns[_PARTITION] = pa.nulls(rows.num_rows, pa.int32())
    columns[SOURCE_COLUMN] = rows.column(SOURCE_COLUMN)
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
