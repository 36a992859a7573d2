"""Users' Python functions: their arguments, their required results, and the conversion of these results.

The arguments are the columns of Spark's Kafka source, decoded, and `__mirror_source`, which identifies the record of a
row. Functions return at least key, value, headers, timestamp and `__mirror_source`; topic and partition count as set if
they differ from the arguments. A decoded side that is returned unchanged keeps its bytes.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import SOURCE_COLUMNS, TARGET_COLUMNS, FunctionReference, Transform
from spark_jobs.transforms.columns import is_document, set_column, to_bytes
from spark_jobs.transforms.hidden_columns import BYTES, FROM, NEW, PARTITION, SOURCE, TOPIC
from spark_jobs.transforms.registry import RegistrySides
from spark_jobs.transforms.state import (
    CARRIED,
    SIDES,
    close_frame,
    old,
    old_name,
    speaking_of,
    types_of,
)
from spark_jobs.transforms.tasks import apply_arrow_function, import_function

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_SEEN, _SAME = "__mirror_seen_", "__mirror_same_"
_MUST_RETURN = ("key", "value", "headers", "timestamp")
#: Physical operators that process one row at a time, and keep the rows of a Spark partition in order.
_NARROW = frozenset(
    [
        "AdaptiveSparkPlan",
        "WholeStageCodegen",
        "InputAdapter",
        "Project",
        "Filter",
        "Generate",
        "BatchEvalPython",
        "ArrowEvalPython",
        "MapInArrow",
        "PythonMapInArrow",
        "MapInPandas",
        "BatchEvalPythonUDTF",
        "ArrowEvalPythonUDTF",
        "MapPartitions",
        "MapElements",
        "AppendColumns",
        "DeserializeToObject",
        "SerializeFromObject",
        "ColumnarToRow",
        "RowToColumnar",
        "Sample",
        "CollectMetrics",
        "Range",
        "LocalTableScan",
    ]
)
_OPERATOR = re.compile(r"^[\s:+\-*]*(?:\(\d+\)\s*)?([A-Z]\w*)")


def apply_dataframe_function(
    read: DataFrame, transform: Transform, reference: FunctionReference, registry: RegistrySides
) -> DataFrame:
    """Apply a function of DataFrames to the records.

    Args:
        read: result of `transform_state.opened`.

    Raises:
        ConfigurationError: the function fails, returns what cannot be written, or does not process one record at a
            time.
    """
    read_types = types_of(read)
    sides = _documents(read_types, registry.needed_sides(transform.decode))
    function = import_function(reference.module, reference.name)
    given = _pack(read, sides)
    with speaking_of(transform, "function"):
        try:
            result = function(given)
        except ConfigurationError:
            raise
        except Exception as error:
            if _is_analysis(error):
                raise
            raise _wrong(
                reference, f"failed with {type(error).__name__}: {error}", "Try it with `mirror transform preview`."
            ) from error
        if not isinstance(result, DataFrame):
            raise _wrong(reference, f"returns {type(result).__name__}", "It must return a DataFrame.")
        types = types_of(result)
    _check_columns(reference, types, types_of(given))
    _check_plan(reference, given, result)
    made = _unpack(result, sides, types)
    return _close(made, transform, [name for name in TARGET_COLUMNS if name in types], sides, registry)


def apply_batch_function(
    read: DataFrame, transform: Transform, reference: FunctionReference, registry: RegistrySides
) -> DataFrame:
    """Apply a function of record batches to the records; it is imported only in Spark's workers.

    Raises:
        ConfigurationError: a decoded side cannot be encoded.
    """
    types = types_of(read)
    sides = _documents(types, registry.needed_sides(transform.decode))
    given = read.select("*", *(sf.col(side).alias(f"{_SEEN}{side}") for side in sides))
    carried = (*CARRIED, *(f"{_SEEN}{side}" for side in sides))
    plain = [side for side in SIDES if side not in sides]
    schema = given.select(
        *carried,
        *(
            sf.col(name).cast("binary" if name in plain else types[name]).alias(f"{NEW}{name}")
            for name in TARGET_COLUMNS
        ),
        *(sf.lit(None).cast("struct<content:binary>").alias(f"{BYTES}{side}") for side in sides),
    ).schema
    task = partial(
        apply_arrow_function, reference.module, reference.name, (*SOURCE_COLUMNS, SOURCE), carried, tuple(sides)
    )
    result = given.mapInArrow(task, schema)
    return _close(result, transform, TARGET_COLUMNS, sides, registry)


def _documents(types: Mapping[str, DataType], by_registry: Collection[str]) -> tuple[str, ...]:
    """The sides that are decoded into more than the text of their bytes."""
    return tuple(side for side in SIDES if is_document(types[side]) or side in by_registry)


def _pack(read: DataFrame, sides: Sequence[str]) -> DataFrame:
    """The argument of a function of DataFrames: all that must be returned with a row is in one column."""
    packed = [
        sf.col(f"{SOURCE}.place").alias("place"),
        sf.col(f"{SOURCE}.offset").alias("offset"),
        old("timestampType").alias("timestampType"),
        sf.col(FROM).alias("from"),
        old("topic").alias("topic"),
        old("partition").alias("partition"),
        sf.col(TOPIC).alias("target_topic"),
        sf.col(PARTITION).alias("target_partition"),
        old("value").isNotNull().alias("has_value"),
    ]
    for side in sides:
        packed += [old(side).alias(side), sf.col(side).alias(f"seen_{side}")]
    return read.select(*SOURCE_COLUMNS, sf.struct(*packed).alias(SOURCE))


def _unpack(result: DataFrame, sides: Sequence[str], types: Mapping[str, DataType]) -> DataFrame:
    """The result of a function, with the hidden columns that `close_frame` needs."""

    def kept_column(name: str) -> Column:
        return sf.col(f"{SOURCE}.{name}")

    # A side that was not decoded has only the returned value.
    present = sf.when(kept_column("has_value"), sf.lit(b""))
    before = {
        "key": kept_column("key") if "key" in sides else sf.lit(None).cast("binary"),
        "value": kept_column("value") if "value" in sides else present,
        **{name: kept_column(name) for name in ("topic", "partition", "offset", "timestampType")},
        "timestamp": sf.col("timestamp"),
        "headers": sf.col("headers"),
    }
    return result.select(
        sf.struct(kept_column("place").alias("place"), kept_column("offset").alias("offset")).alias(SOURCE),
        kept_column("from").alias(FROM),
        kept_column("target_topic").alias(TOPIC),
        kept_column("target_partition").alias(PARTITION),
        *(before[name].alias(old_name(name)) for name in SOURCE_COLUMNS),
        *(kept_column(f"seen_{side}").alias(f"{_SEEN}{side}") for side in sides),
        *(sf.col(name).alias(f"{NEW}{name}") for name in TARGET_COLUMNS if name in types),
    )


def _close(
    made: DataFrame,
    transform: Transform,
    returned: Collection[str],
    sides: Sequence[str],
    registry: RegistrySides,
) -> DataFrame:
    """The frame after a function: unchanged columns are not set."""
    types = types_of(made)
    # Compare first: afterwards it is bytes.
    same = {side: _is_same(types, side).alias(f"{_SAME}{side}") for side in sides}
    made = made.select("*", *same.values())
    for side in sides:
        # An unchanged value need not match the schema.
        made = made.withColumn(f"{NEW}{side}", sf.when(~sf.col(f"{_SAME}{side}"), sf.col(f"{NEW}{side}")))
    made = registry.encode(made, transform, {side: f"{NEW}{side}" for side in SIDES}, replaces=False)
    types = types_of(made)
    columns = {}
    for name in returned:
        found, kind = sf.col(f"{NEW}{name}"), types[f"{NEW}{name}"]
        what = f"the {name} that the transform {transform.name} returns"
        if name in SIDES:
            found = to_bytes(found, kind, what)
            if f"{BYTES}{name}" in types:
                content = sf.col(f"{BYTES}{name}")
                found = sf.when(content.isNotNull(), content.content).otherwise(found)
            if name in sides:
                found = sf.when(sf.col(f"{_SAME}{name}"), old(name)).otherwise(found)
        else:
            found = set_column(found, kind, name, what)
            if name in ("topic", "partition"):
                found = sf.when(~found.eqNullSafe(old(name)), found)
        columns[name] = found
    with speaking_of(transform, "function"):
        after = made.select(*CARRIED, *(column.alias(f"{NEW}{name}") for name, column in columns.items()))
    return close_frame(after, transform, {name: f"{NEW}{name}" for name in columns})


def _is_same(types: Mapping[str, DataType], side: str) -> Column:
    """True if a decoded side was returned unchanged."""
    given, returned = types[f"{_SEEN}{side}"], types[f"{NEW}{side}"]
    if given.simpleString() != returned.simpleString():
        return sf.lit(False)
    columns = [sf.col(f"{_SEEN}{side}"), sf.col(f"{NEW}{side}")]
    if is_document(given):
        # Spark cannot compare maps.
        columns = [to_bytes(column, given, side) for column in columns]
    is_same = columns[0].eqNullSafe(columns[1])
    return is_same & sf.col(f"{BYTES}{side}").isNull() if f"{BYTES}{side}" in types else is_same


def _check_columns(reference: FunctionReference, types: Mapping[str, DataType], given: Mapping[str, DataType]) -> None:
    if SOURCE not in types:
        raise _wrong(
            reference,
            f"does not return the column {SOURCE}",
            "Keep that column: it identifies the record of a row. withColumn keeps all columns, select only the "
            "listed ones.",
        )
    if types[SOURCE].simpleString() != given[SOURCE].simpleString():
        raise _wrong(reference, f"changes {SOURCE}", "Return that column unchanged.")
    missing = [name for name in _MUST_RETURN if name not in types]
    if missing:
        raise _wrong(reference, f"does not return the columns {', '.join(missing)}", "Return unchanged columns too.")


def _check_plan(reference: FunctionReference, given: DataFrame, result: DataFrame) -> None:
    """Refuse a plan that uses more than one record at a time, or changes the order or the Spark partition of rows."""
    found = Counter(_operators(result)) - Counter(_operators(given))
    wide = sorted(name for name in found if name not in _NARROW)
    if wide:
        raise _wrong(
            reference,
            f"does not process records one by one: Spark's plan has {', '.join(wide)}",
            "Remove joins, aggregates, windows, sorting, limits, unions and repartitioning; a transform sees one "
            "record at a time.",
        )


def _operators(frame: DataFrame) -> list[str]:
    """The names of the physical operators of a frame's plan."""
    plan = explain(frame).partition("== Physical Plan ==")[2].splitlines()
    return [found[1] for line in plan if (found := _OPERATOR.match(line)) is not None]


def explain(frame: DataFrame) -> str:
    """The output of `DataFrame.explain`."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()


def _is_analysis(error: Exception) -> bool:
    return isinstance(error, AnalysisException)


def _wrong(reference: FunctionReference, what: str, action: str) -> ConfigurationError:
    return ConfigurationError(f"the function {reference} {what}.", action=action)
