"""A structured streaming query of the installed Spark whose source keeps offsets as Spark's Kafka source does.

The source is written in Python, since the Kafka source is a jar of its own: its records are their offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition


class _Reader(DataSourceStreamReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._topic, self._first, self._end = options["topic"], int(options["first"]), int(options["end"])

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark calls it
        return {self._topic: {"0": self._first}}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802
        return {self._topic: {"0": self._end}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition((start[self._topic]["0"], end[self._topic]["0"]))]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        first, end = partition.value
        for offset in range(first, end):
            yield (offset,)


class _Source(DataSource):
    @classmethod
    def name(cls) -> str:
        return "kafka-shaped"

    def schema(self) -> str:
        return "offset long"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return _Reader(self.options)


def read_new(spark: SparkSession, topic: str, offsets: range, *, checkpoint: Path, out: Path) -> None:
    """Read what is new of some offsets, and end.

    Args:
        offsets: of partition 0; the first one counts as long as there is no checkpoint.
    """
    spark.dataSource.register(_Source)
    source = spark.readStream.format("kafka-shaped").option("topic", topic)
    read = source.option("first", offsets.start).option("end", offsets.stop).load()
    written = read.writeStream.format("json").option("path", str(out)).option("checkpointLocation", str(checkpoint))
    written.trigger(availableNow=True).start().awaitTermination()
