"""Records as frames of Spark's Kafka source, and what a chain of transforms makes of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mirror_lib.features.transforms.arrow.rows import KAFKA_SCHEMA
from mirror_lib.features.transforms.model import (
    ColumnExpressions,
    DataFormat,
    DecodeSettings,
    Decoding,
    FunctionKind,
    FunctionReference,
    SelectStatement,
    Transform,
    TransformChain,
)
from spark_jobs.spark_versions import from_arrow_table, to_arrow
from spark_jobs.transforms.frame import frame_of

_PROJECT = Path(__file__).resolve().parents[3]
_SOURCE = pa.struct([pa.field("place", pa.int32()), pa.field("offset", pa.int64())])
NOON = datetime(2026, 1, 2, 12, 0, 0, 678000, tzinfo=UTC)
#: The place of all records in their bin.
PLACE = 7
FIRST_OFFSET = 100


@dataclass(frozen=True, slots=True)
class Given:
    """A record as it was read."""

    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    topic: str = "orders"
    partition: int = 1
    timestamp: datetime = NOON


@dataclass(frozen=True, slots=True)
class Made:
    """A record as it is to be written."""

    offset: int
    value: bytes | None = None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: datetime = NOON
    topic: str | None = None
    partition: int | None = None


def like(given: Given, offset: int = FIRST_OFFSET) -> Made:
    """What becomes of a record that no transform changes."""
    return Made(offset, given.value, given.key, given.headers, given.timestamp)


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """A small Spark of its own, whose workers can import what tests import."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = str(_PROJECT)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.driver.memory": "600m",
        "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "1",
    }
    session = SparkSession.builder.master("local[1]").appName("tests").config(map=settings).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def frame(spark: SparkSession, *records: Given) -> DataFrame:
    """Records with the offsets from `FIRST_OFFSET` on."""
    rows = [
        {
            "key": each.key,
            "value": each.value,
            "topic": each.topic,
            "partition": each.partition,
            "offset": offset,
            "timestamp": each.timestamp,
            "timestampType": 0,
            "headers": [{"key": name, "value": content} for name, content in each.headers] or None,
            "__mirror_source": {"place": PLACE, "offset": offset},
        }
        for offset, each in enumerate(records, FIRST_OFFSET)
    ]
    schema = KAFKA_SCHEMA.append(pa.field("__mirror_source", _SOURCE))
    return from_arrow_table(spark, pa.Table.from_pylist(rows, schema))


def made_of(source: DataFrame, chain: TransformChain, target_topic_of: Any = None) -> list[Made]:
    """What a chain makes of records."""
    table = to_arrow(frame_of(source, chain, target_topic_of=target_topic_of or {"orders": "A.orders"}))
    assert table.column_names == ["key", "value", "headers", "timestamp", "topic", "partition", "__mirror_source"]
    return [
        Made(
            row["__mirror_source"]["offset"],
            row["value"],
            row["key"],
            tuple((header["key"], header["value"]) for header in row["headers"] or ()),
            row["timestamp"],
            row["topic"],
            row["partition"],
        )
        for row in table.to_pylist()
        if row["__mirror_source"]["place"] == PLACE
    ]


def transformed(spark: SparkSession, records: Sequence[Given], *transforms: Transform) -> list[Made]:
    """What transforms make of records."""
    return made_of(frame(spark, *records), TransformChain(transforms))


def decoding(value: str | Decoding = "none", key: str | Decoding = "none") -> DecodeSettings:
    """How keys and values are read, by the names of formats."""

    def one(form: str | Decoding) -> Decoding:
        return form if isinstance(form, Decoding) else Decoding(DataFormat(form))

    return DecodeSettings(one(key), one(value))


def json_by(schema: str) -> Decoding:
    """JSON by a schema in Spark's DDL."""
    return Decoding(DataFormat.JSON, schema)


def expressions(
    decode: DecodeSettings = DecodeSettings(),  # noqa: B008 - a value
    filter: str | None = None,
    name: str = "change",
    **columns: str,
) -> Transform:
    """A transform by a filter and columns, of which it is not known what they read."""
    return Transform(name, decode=decode, filter=filter, columns=ColumnExpressions(**columns), reads=None)


def select(text: str, decode: DecodeSettings = DecodeSettings()) -> Transform:  # noqa: B008 - a value
    """A transform by a SELECT."""
    return Transform("change", decode=decode, select=SelectStatement("change.sql", text), reads=None)


def function(
    called: Callable[..., Any],
    kind: FunctionKind = FunctionKind.DATAFRAME,
    decode: DecodeSettings = DecodeSettings(),  # noqa: B008 - a value
) -> Transform:
    """A transform by a Python function of a module."""
    return named_function(f"{called.__module__}.{called.__name__}", kind, decode)


def named_function(path: str, kind: FunctionKind, decode: DecodeSettings = DecodeSettings()) -> Transform:  # noqa: B008
    """The same by the function's path."""
    module, _, name = path.rpartition(".")
    return Transform("change", decode=decode, function=FunctionReference(module, name, kind), reads=None)
