"""Users' functions, good and bad, as tests of transforms name them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

#: The calls of `nothing_at_first_sight`, of which whoever uses it makes an empty list.
sights: list[DataFrame] = []


def unchanged(records: DataFrame) -> DataFrame:
    return records


def through_arrow(records: DataFrame) -> DataFrame:
    def batches(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from given

    return records.mapInArrow(batches, records.schema)  # type: ignore[arg-type]


def countries(records: DataFrame) -> DataFrame:
    return records.withColumn("value", F.upper(F.col("value.country"))).filter("value IS NOT NULL")


def lower_countries(records: DataFrame) -> DataFrame:
    return records.withColumn("value", F.expr("named_struct('country', lower(value.country), 'card', value.card)"))


def rerouted(records: DataFrame) -> DataFrame:
    return records.withColumn("topic", F.lit("elsewhere")).withColumn("partition", F.col("partition") + 1)


def doubled(records: DataFrame) -> DataFrame:
    return records.withColumn("partition", F.explode(F.array(F.lit(0), F.lit(5))))


def without_source(records: DataFrame) -> DataFrame:
    return records.select("key", "value", "headers", "timestamp")


def without_headers(records: DataFrame) -> DataFrame:
    return records.drop("headers")


def other_source(records: DataFrame) -> DataFrame:
    return records.withColumn("__mirror_source", F.lit(1))


def ordered(records: DataFrame) -> DataFrame:
    return records.orderBy("offset")


def limited(records: DataFrame) -> DataFrame:
    return records.limit(1)


def distinct(records: DataFrame) -> DataFrame:
    return records.dropDuplicates(["key"])


def numbered(records: DataFrame) -> DataFrame:
    return records.withColumn("partition", F.row_number().over(Window.orderBy("offset")))


def joined(records: DataFrame) -> DataFrame:
    return records.join(records.select(F.col("offset").alias("other")), F.col("offset") == F.col("other"))


def united(records: DataFrame) -> DataFrame:
    return records.union(records)


def repartitioned(records: DataFrame) -> DataFrame:
    return records.repartition(2)


def coalesced(records: DataFrame) -> DataFrame:
    return records.coalesce(1)


def no_frame(records: DataFrame) -> int:
    return 5


def failing(records: DataFrame) -> DataFrame:
    raise KeyError("country")


def unknown_column(records: DataFrame) -> DataFrame:
    return records.withColumn("value", F.col("nothing"))


def same_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


def even_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(pc.equal(pc.bit_wise_and(batch.column("offset"), 1), 0))


def country_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    texts = [None if value is None else value["country"] for value in batch.column("value").to_pylist()]
    return batch.set_column(batch.schema.get_field_index("value"), "value", pa.array(texts, pa.string()))


def upper_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", pc.utf8_upper(batch.column("value")))


def rerouted_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    topics = pa.array(["elsewhere"] * len(batch), pa.string())
    kept = batch.drop_columns(["offset", "timestampType", "partition"])
    return kept.set_column(kept.schema.get_field_index("topic"), "topic", topics)


def doubled_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.take(pa.array([row for row in range(len(batch)) for _ in range(2)], pa.int32()))


def reversed_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.take(pa.array(range(len(batch) - 1, -1, -1), pa.int32()))


def batch_without_source(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns(["__mirror_source"])


def batch_without_value(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.drop_columns(["value"])


def numbers_as_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(0, "key", pa.array([1] * len(batch), pa.int64()))


def table(batch: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([batch])


def no_tombstones(batch: pa.RecordBatch) -> pa.RecordBatch:
    if batch.column("value").null_count:
        raise ValueError("there is a tombstone")
    return batch


def one_at_a_time(batch: pa.RecordBatch) -> pa.RecordBatch:
    if len(batch) > 1:
        raise ValueError("too many")
    return batch


def nothing_at_first_sight(records: DataFrame) -> DataFrame:
    """No records when it is called for the first time, and all of them afterwards, as a clock may have it."""
    sights.append(records)
    return records.filter(F.lit(len(sights) > 1))


def fails_at_last(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows as they are, and then a failure."""
    yield from batches
    raise ValueError("no more")
