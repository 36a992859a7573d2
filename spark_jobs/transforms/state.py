"""The frame of a flow between two transforms, and how a transform's results are stored in it.

Between transforms the frame has the columns of Spark's Kafka source, as the next transform sees them, and hidden ones:
the record's identity, and the target topic and partition if a transform has set them. While a transform runs, hidden
columns also hold the record as it was before, so that unchanged columns keep their bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import SOURCE_COLUMNS, TARGET_COLUMNS, Transform
from spark_jobs.transforms.columns import set_column, to_bytes
from spark_jobs.transforms.hidden_columns import FROM, OLD, PARTITION, SOURCE, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
CARRIED = (SOURCE, FROM, TOPIC, PARTITION, *(f"{OLD}{name}" for name in SOURCE_COLUMNS))
SIDES = ("key", "value")


def begin(source: DataFrame, *, has_topic: bool = False) -> DataFrame:
    """The source's frame before the first transform.

    Args:
        has_topic: whether the source has a column `TOPIC`.
    """
    if type(source).__module__.startswith("pyspark.sql.connect."):
        # As PySpark's own session builder does: otherwise `pyspark.sql.functions`, which users' functions import as
        # well, assumes a Spark in this process.
        os.environ.setdefault(_CONNECT_MODE, "1")
    topic = sf.col(TOPIC) if has_topic else sf.lit(None).cast("string").alias(TOPIC)
    return source.select(
        *SOURCE_COLUMNS, SOURCE, sf.col("topic").alias(FROM), topic, sf.lit(None).cast("int").alias(PARTITION)
    )


def open_frame(frame: DataFrame, seen: Mapping[str, Column]) -> DataFrame:
    """The frame while a transform runs.

    Args:
        seen: columns that the transform sees in another form, such as decoded ones.
    """
    visible = (seen.get(name, sf.col(name)).alias(name) for name in SOURCE_COLUMNS)
    hidden = (sf.col(name).alias(f"{OLD}{name}") for name in SOURCE_COLUMNS)
    return frame.select(*visible, SOURCE, FROM, TOPIC, PARTITION, *hidden)


def old_name(name: str) -> str:
    """The name of the column with the value before the transform."""
    return f"{OLD}{name}"


def old(name: str) -> Column:
    """A column as it was before the transform."""
    return sf.col(old_name(name))


def types_of(frame: DataFrame) -> dict[str, DataType]:
    """The types of its columns; this makes Spark analyse the frame."""
    return {field.name: field.dataType for field in frame.schema.fields}


def close_frame(made: DataFrame, transform: Transform, new: Mapping[str, str]) -> DataFrame:
    """The frame after a transform.

    A tombstone stays a tombstone: it deletes the earlier record with its key, and would not if a transform made an
    empty document of it. A topic or partition that is null is not set.

    Args:
        made: has all of `CARRIED`, and the transform's results.
        new: the columns that the transform has set, with their names in `made`.

    Raises:
        ConfigurationError: a column was set to an unsuitable type.
    """
    types = types_of(made)
    with speaking_of(transform):
        columns = {name: old(name) for name in SOURCE_COLUMNS}
        target = {"topic": sf.col(TOPIC), "partition": sf.col(PARTITION)}
        for name in TARGET_COLUMNS:
            if name not in new:
                continue
            found, kind = sf.col(new[name]), types[new[name]]
            what = f"the {name} that the transform {transform.name} sets"
            if name in SIDES:
                columns[name] = to_bytes(found, kind, what)
            else:
                columns[name] = set_column(found, kind, name, what)
            if name == "value":
                columns[name] = sf.when(old("value").isNotNull(), columns[name])
            elif name in target:
                target[name] = sf.coalesce(columns[name], target[name])
                columns[name] = sf.coalesce(columns[name], old(name))
        result = made.select(
            *(columns[name].alias(name) for name in SOURCE_COLUMNS),
            SOURCE,
            FROM,
            target["topic"].alias(TOPIC),
            target["partition"].alias(PARTITION),
        )
        # Here and not at execution: a type error then belongs to this transform.
        types_of(result)
    return result


def outgoing_frame(frame: DataFrame) -> DataFrame:
    """The frame to be written."""
    target = (sf.col(TOPIC).alias("topic"), sf.col(PARTITION).alias("partition"))
    return frame.select("key", "value", "headers", "timestamp", *target, SOURCE)


@contextmanager
def speaking_of(transform: Transform, part: str = "") -> Iterator[None]:
    """Name the transform in Spark's error if Spark refuses one.

    Args:
        part: the setting of the transform.
    """
    try:
        yield
    except AnalysisException as error:
        setting = f"mirror.transform.{transform.name}{f'.{part}' if part else ''}"
        raise ConfigurationError(
            f"Spark rejects {setting}: {_first_line(error)}.",
            action="Correct it; test it with `mirror transform preview`.",
        ) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0].rstrip(".;")
