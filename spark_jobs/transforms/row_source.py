"""Records of a flow as a DataFrame, from the fetches of the raw copy, without a JVM client.

Workers import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from mirror_lib.features.transforms.rows.layout import READ_DDL
from spark_jobs.bins import bin_numbers, map_bins

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Such as `row_tasks.read_rows` and `verify_row_tasks.read_rows`.
ReadRows = Callable[[str, bytes, int], Iterator[Any]]


def read_frame(
    spark: SparkSession, sealed: tuple[str, bytes], bins: int, read: ReadRows, columns: str = READ_DDL
) -> DataFrame:
    """The rows of all bins, each of which is one Spark partition.

    Args:
        sealed: the stamp and the job.
        read: takes the stamp, the job and the number of a bin, and returns its rows; workers import it.
        columns: schema of these rows.
    """
    # Not a Python data source, which needs Spark 4.0, and for which Spark starts another process for planning.
    return map_bins(spark, bins, partial(rows_of, read, *sealed), columns)


def rows_of(read: ReadRows, stamp: str, sealed: bytes, numbers: Iterable[Any]) -> Iterator[Any]:
    """The rows of bins, one batch at a time: they are made only as fast as Spark takes them.

    Args:
        read: returns the rows of a bin.
        stamp: the first argument of `read`; `sealed` is the second.
        numbers: numbers of the bins, as Arrow batches.
    """
    for number in bin_numbers(numbers):
        rows = read(stamp, sealed, number)
        try:
            yield from rows
        finally:
            # Reading runs ahead of its rows: it must end when no more rows are taken.
            if isinstance(rows, Generator):
                rows.close()
