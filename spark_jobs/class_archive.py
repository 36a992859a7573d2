"""The program whose classes `mirror spark class-archive` stores: frames from Arrow, SQL, and a task in Python."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

_SETTINGS = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "1"}


def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass all batches on."""
    yield from batches


def main() -> None:
    """Run it."""
    spark = SparkSession.builder.appName("classes").config(map=_SETTINGS).getOrCreate()
    spark.range(2).mapInArrow(same, "id long").toArrow()
    records = spark.createDataFrame(pa.table({"key": ["a", "b"], "value": ['{"n": 1}', '{"n": 2}']}))
    records.selectExpr("upper(key) AS key", "from_json(value, 'n INT').n AS n").where("n > 1").groupBy(
        "key"
    ).sum().toArrow()
    spark.stop()


if __name__ == "__main__":
    main()
