"""Keys and values on their way into Spark's types and back to bytes, and the columns that a transform may set.

What a transform sets is written so:

- binary as it is, text as UTF-8, numbers and booleans as their text;
- structs, maps, arrays and variants as JSON, with every null, and with timestamps in UTC to the microsecond;
- everything else is refused: which text a date or an interval becomes is the user's to say, by a CAST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mirror_lib.errors import ConfigurationError
from mirror_lib.transform import DataFormat, Decoding, mark
from spark_jobs.hidden_columns import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

#: Before the names of sides on their way through a decoder.
_TEXT, _PARSED, _DOCUMENTS = "__mirror_text_", "__mirror_parsed_", "__mirror_documents_"
#: What goes around a document while it is parsed: the field that it is in, and the one for what cannot be parsed.
_WRAPPED, _CORRUPT = "__mirror_document", "__mirror_corrupt"
HEADERS_DDL = "array<struct<key:string,value:binary>>"
#: Timestamps as they mean the same everywhere, without the loss of microseconds that Spark's own default has.
_TO_JSON = {"ignoreNullFields": "false", "timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_FROM_JSON = {
    # Unlike FAILFAST, this lets us say which record is meant.
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "timeZone": "UTC",
    # As deep as Jackson allows by itself, behind the array that a document is the only element of.
    "maxNestingDepth": "1001",
}
_AS_JSON = frozenset({"struct", "map", "array", "variant"})
_AS_TEXT = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal", "boolean"})


def decoded(frame: DataFrame, decoding: Decoding, side: str) -> tuple[DataFrame, Column]:
    """Bytes as expressions see them; null stays null, and what is not of the format fails.

    Args:
        frame: has the side as binary.
        decoding: of any format that needs no registry.
        side: `key` or `value`.

    Returns:
        The frame, maybe with more columns, and the decoded side.
    """
    from pyspark.sql import functions as F  # noqa: N812

    if decoding.format is DataFormat.NONE:
        return frame, F.col(side)
    text = F.col(side).cast("string")
    # As a Java text, bytes that are no UTF-8 would become question marks without a word.
    checked = F.when(text.isNull() | F.is_valid_utf8(text), text).otherwise(_raised(side, "no UTF-8 text"))
    # In a projection of its own, since what stands beside the parser of JSON is interpreted as that is.
    texts = f"{_TEXT}{side}"
    frame = frame.withColumn(texts, _once(checked))
    if decoding.format is DataFormat.STRING:
        return frame, F.col(texts)
    return _from_json(frame, F.col(texts), decoding.schema, side)


def _from_json(frame: DataFrame, text: Column, schema: str | None, side: str) -> tuple[DataFrame, Column]:
    """JSON by its schema, as a variant without one.

    Left to itself Spark reads an empty text as null, does not look at what stands behind a document, and takes the
    first element of an array for the object that it expects. As the only element of an array, a document can be none of
    these.
    """
    from pyspark.sql import functions as F  # noqa: N812

    only = F.concat(F.lit("["), text, F.lit("]"))
    if schema is None or schema.strip().lower() == "variant":
        malformed = F.when(only.isNotNull(), _raised(side, "no JSON"))
        documents = F.coalesce(F.try_parse_json(only).cast("array<variant>"), malformed)
    else:
        frame, documents = _by_schema(frame, only, _as_type(schema), side)
    name = f"{_DOCUMENTS}{side}"
    found = F.col(name)
    document = F.when(F.size(found) == 1, found[0]).otherwise(
        F.when(found.isNotNull(), _raised(side, "no JSON")),
    )
    return frame.withColumn(name, _once(documents)), document


def _by_schema(frame: DataFrame, array: Column, kind: str, side: str) -> tuple[DataFrame, Column]:
    """The elements of an array, all of which must be of a type.

    Spark tells apart what it cannot parse, and what is null, in an object alone. Where any part of that is not of its
    type, the whole is told to be corrupt, as FAILFAST fails for it.
    """
    from pyspark.sql import functions as F  # noqa: N812

    wrapped = F.concat(F.lit(f'{{"{_WRAPPED}":'), array, F.lit("}"))
    schema = f"struct<{_WRAPPED}: array<{kind}>, {_CORRUPT}: string>"
    name = f"{_PARSED}{side}"
    found = F.col(name)
    malformed = _raised(side, "no JSON of its schema")
    elements = F.when(found[_CORRUPT].isNull(), found[_WRAPPED]).otherwise(malformed)
    # Only what is computed in a projection of its own is computed for each record, whatever a filter asks for.
    return frame.withColumn(name, _once(F.from_json(wrapped, schema, _FROM_JSON))), elements


def _once(column: Column) -> Column:
    """The same, as something that Spark computes once for each row.

    It would push a filter below the decoding otherwise, and decode each record that is kept a second time. What is not
    deterministic stays where it is; the number of a partition is never below zero, which Spark does not know.
    """
    from pyspark.sql import functions as F  # noqa: N812

    return F.when(F.spark_partition_id() >= 0, column)


def _as_type(schema: str) -> str:
    is_type = schema.strip().lower().startswith(("struct<", "array<", "map<"))
    return schema.strip() if is_type else f"struct<{schema}>"


def _raised(side: str, what: str) -> Column:
    """An error with the record's mark, in an expression of any type."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.raise_error(F.concat(_mark_column(), F.lit(f" the {side} is {what}.")))


def _mark_column() -> Column:
    """`record_mark.mark` in Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    before, between, after = mark(-1, -2).replace("-1", "\0").replace("-2", "\0").split("\0")
    place, offset = (F.col(f"{SOURCE}.{name}").cast("string") for name in ("place", "offset"))
    return F.concat(F.lit(before), place, F.lit(between), offset, F.lit(after))


def written(column: Column, kind: DataType, what: str) -> Column:
    """What a transform has set, as bytes.

    Args:
        kind: of the column.
        what: for messages: whose column it is.

    Raises:
        ConfigurationError: there is more than one way to write such values.
    """
    from pyspark.sql import functions as F  # noqa: N812

    name = kind.typeName()
    if name == "binary":
        return column
    if name in ("string", "void") or name.startswith(("char", "varchar")):
        return column.cast("string").cast("binary")
    if name in _AS_JSON:
        return F.to_json(column, _TO_JSON).cast("binary")
    if name in _AS_TEXT:
        return column.cast("string").cast("binary")
    raise ConfigurationError(
        f"{what} is of the type {kind.simpleString()}, which can be written in more than one way.",
        action="Say which by CAST(... AS STRING) or date_format, or put it into a struct to have it as JSON.",
    )


def is_document(kind: DataType) -> bool:
    """Whether values of a type are written as documents: as JSON, or by a schema."""
    return kind.typeName() in _AS_JSON


def set_column(column: Column, kind: DataType, name: str, what: str) -> Column:
    """What a transform has set for headers, timestamp, topic or partition, in the type that these have.

    Raises:
        ConfigurationError: it cannot be meant so.
    """
    from pyspark.sql import functions as F  # noqa: N812

    found = kind.typeName()
    if name == "timestamp" and found in _AS_TEXT:
        raise ConfigurationError(
            f"{what} is a number, and nothing says of what unit.",
            action="Write timestamp_millis(...), timestamp_micros(...) or timestamp_seconds(...).",
        )
    if name == "headers" and found == "map":
        column = F.map_entries(column)
    return column.cast({"headers": HEADERS_DDL, "timestamp": "timestamp", "topic": "string", "partition": "int"}[name])
