"""One Spark task for each bin of a job. Workers import this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def map_bins(spark: SparkSession, count: int, task: Callable[[Iterable[Any]], Iterator[Any]], ddl: str) -> DataFrame:
    """The rows of a task for each bin.

    Args:
        count: number of bins.
        task: takes the numbers of bins, as `bin_numbers` reads them; workers import it.
        ddl: schema of its rows.
    """
    return spark.range(0, count, 1, count).mapInArrow(task, ddl)


def bin_numbers(batches: Iterable[Any]) -> Iterator[int]:
    """The numbers of the bins that a task works on, from Arrow batches."""
    for batch in batches:
        yield from batch.column(0).to_pylist()
