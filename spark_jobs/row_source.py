"""Records of a flow as a DataFrame, from the fetches of the raw copy, without a JVM client.

Workers import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from mirror_lib.cluster.rows import READ_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: As `row_tasks.read_rows` and `verify_row_tasks.read_rows`.
ReadRows = Callable[[str, bytes, int], Iterator[Any]]


def read_frame(
    spark: SparkSession, sealed: tuple[str, bytes], bins: int, read: ReadRows, columns: str = READ_DDL
) -> DataFrame:
    """The rows of all bins, each of which is one partition of Spark.

    Args:
        sealed: the job, with its stamp.
        read: given the stamp, the job and the number of a bin, its rows; workers import it.
        columns: of these rows.
    """
    # Not a Python data source, which Spark has from 4.0 on only, and for which it starts a process that plans.
    return spark.range(0, bins, 1, bins).mapInArrow(partial(rows_of, read, *sealed), columns)


def rows_of(read: ReadRows, stamp: str, sealed: bytes, numbers: Iterable[Any]) -> Iterator[Any]:
    """The rows of bins, one batch at a time: no more is made than Spark takes.

    Args:
        read: gives the rows of a bin.
        stamp: the first argument of `read`, as all others.
        numbers: of the bins, as Arrow batches.
    """
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            rows = read(stamp, sealed, number)
            try:
                yield from rows
            finally:
                # Reading goes on ahead of its rows: it is to end when nobody takes them any more.
                if isinstance(rows, Generator):
                    rows.close()
