"""A structured streaming query of the installed Spark whose source keeps offsets as Spark's Kafka source does.

The source is written in Python, since the Kafka source is a jar of its own: its records are their offsets. Run it as
`python kafka_shaped_query.py TOPIC FIRST END CHECKPOINT OUT`: it reads what is new up to END and ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
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


def main(topic: str, first: str, end: str, checkpoint: str, out: str) -> None:
    """Read once."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.memory", "512m").getOrCreate()
    spark.dataSource.register(_Source)
    read = spark.readStream.format("kafka-shaped").option("topic", topic).option("first", first).option("end", end)
    written = read.load().writeStream.format("json").option("path", out).option("checkpointLocation", checkpoint)
    written.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
