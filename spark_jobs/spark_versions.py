"""The differences between Spark 3.5 and 4, in one place: what 3.5 lacks, made from what it has.

Features without an equivalent (variants, and with them JSON without a schema) are refused with the version that has
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from mirror_lib.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


def to_arrow(frame: DataFrame) -> pa.Table:
    """Run the frame and return its rows."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    # Spark 3.5 has the same collection, which its own toPandas uses.
    return pa.Table.from_batches(frame._collect_as_arrow(), schema=to_arrow_schema(frame.schema))  # noqa: SLF001


def from_arrow_table(session: SparkSession, table: pa.Table) -> DataFrame:
    """Return a frame of a table's rows."""
    if hasattr(type(session.range(0)), "toArrow"):
        return session.createDataFrame(table)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    return session.createDataFrame(rows, from_arrow_schema(table.schema))


def is_valid_utf8(binary: Column) -> Column:
    """True for valid UTF-8, null for null."""
    if hasattr(sf, "is_valid_utf8"):
        return sf.is_valid_utf8(binary.cast("string"))
    # Java replaces invalid bytes, so the text of invalid UTF-8 has other bytes.
    return sf.encode(sf.decode(binary, "UTF-8"), "UTF-8") == binary


def try_parse_json(text: Column) -> Column:
    """Parse JSON as a variant; null if it is malformed.

    Raises:
        ConfigurationError: this Spark has no variants.
    """
    if not hasattr(sf, "try_parse_json"):
        raise ConfigurationError(
            "JSON without a schema is decoded as a variant, which Spark has since version 4.0.",
            action="Set the transform's schema.key or schema.value to the type of the JSON, or use Spark 4.0 or newer.",
        )
    return sf.try_parse_json(text)
