"""Records of a flow as a DataFrame: a Python data source over the fetches of the raw copy, without a JVM client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from mirror_lib.cluster.rows.layout import READ_DDL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: As `row_tasks.read_rows` and `verify_row_tasks.read_rows`.
ReadRows = Callable[[str, bytes, int], Iterator[Any]]


class RowReader(DataSourceReader):  # type: ignore[misc]  # PySpark is not typed here.
    """Reads the bins of a job, each as one partition of Spark."""

    def __init__(self, stamp: str, sealed: bytes, bins: int, read: ReadRows) -> None:
        """Args:
        stamp: as `spark_jobs.sealing.seal` gives it for the job.
        sealed: the job.
        bins: how many it has.
        read: gives the rows of a bin.
        """
        self._stamp, self._sealed, self._bins, self._read = stamp, sealed, bins, read

    def partitions(self) -> Sequence[InputPartition]:
        """The numbers of the bins."""
        return [InputPartition(number) for number in range(self._bins)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a bin, as Arrow batches."""
        return self._read(self._stamp, self._sealed, partition.value)


def read_frame(
    spark: SparkSession,
    name: str,
    sealed: tuple[str, bytes],
    bins: int,
    read: ReadRows,
    columns: str = READ_DDL,
) -> DataFrame:
    """The rows of all bins.

    Args:
        name: of the source in the session; reading it again under the same name replaces it.
        sealed: the job, with its stamp.
        read: given the stamp, the job and the number of a bin, its rows; workers import it.
        columns: of these rows.
    """

    # Made here, so that it takes the job with it to the workers: options would be shown by Spark, and the job holds
    # credentials.
    class RowSource(DataSource):  # type: ignore[misc]
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> str:
            return columns

        def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002 - Spark's interface
            return RowReader(*sealed, bins, read)

    spark.dataSource.register(RowSource)
    return spark.read.format(name).load()
