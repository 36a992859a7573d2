"""Keys and values decoded to Spark's types and encoded to bytes, and the columns that a transform may set.

Values that a transform sets are encoded as follows:

- binary unchanged, strings as UTF-8, numbers and booleans as their text;
- structs, maps, arrays and variants as JSON, with every null, and with timestamps in UTC to the microsecond;
- all other types are refused: for a date or an interval, the user chooses the text with a CAST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.transforms.model import DataFormat, Decoding
from mirror_lib.features.transforms.record_mark import mark
from spark_jobs.spark_versions import is_valid_utf8, try_parse_json
from spark_jobs.transforms.hidden_columns import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

#: Prefixes of the names of sides during decoding.
_TEXT, _PARSED, _DOCUMENTS = "__mirror_text_", "__mirror_parsed_", "__mirror_documents_"
#: Fields around a document during parsing: the field of the document, and the one for unparsable input.
_WRAPPED, _CORRUPT = "__mirror_document", "__mirror_corrupt"
HEADERS_DDL = "array<struct<key:string,value:binary>>"
#: Unambiguous timestamps, without the loss of microseconds of Spark's default.
_TO_JSON = {"ignoreNullFields": "false", "timeZone": "UTC", "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
_FROM_JSON = {
    # Unlike FAILFAST, this allows an error that names the record.
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "timeZone": "UTC",
    # Jackson's own default, plus one for the array around the document.
    "maxNestingDepth": "1001",
}
_AS_JSON = frozenset({"struct", "map", "array", "variant"})
_AS_TEXT = frozenset({"byte", "short", "integer", "long", "float", "double", "decimal", "boolean"})


def decode(frame: DataFrame, decoding: Decoding, side: str) -> tuple[DataFrame, Column]:
    """Decode bytes for expressions; null stays null, and bytes that are not of the format fail.

    Args:
        frame: a frame with the side as binary.
        decoding: any format that needs no registry.
        side: `key` or `value`.

    Returns:
        The frame, maybe with more columns, and the decoded side.
    """
    if decoding.format is DataFormat.NONE:
        return frame, sf.col(side)
    text = sf.col(side).cast("string")
    # As a Java string, invalid UTF-8 would silently become question marks.
    checked = sf.when(text.isNull() | is_valid_utf8(sf.col(side)), text).otherwise(_raise_error(side, "not UTF-8 text"))
    # In its own projection, since expressions in the same projection as the JSON parser are interpreted, not compiled.
    texts = f"{_TEXT}{side}"
    frame = frame.withColumn(texts, _once(checked))
    if decoding.format is DataFormat.STRING:
        return frame, sf.col(texts)
    return _from_json(frame, sf.col(texts), decoding.schema, side)


def _from_json(frame: DataFrame, text: Column, schema: str | None, side: str) -> tuple[DataFrame, Column]:
    """JSON by its schema, as a variant without one.

    By default Spark reads an empty text as null, ignores text after a document, and takes the first element of an array
    for the expected object. As the only element of an array, a document has none of these problems.
    """
    only = sf.concat(sf.lit("["), text, sf.lit("]"))
    if schema is None or schema.strip().lower() == "variant":
        malformed = sf.when(only.isNotNull(), _raise_error(side, "not JSON"))
        documents = sf.coalesce(try_parse_json(only).cast("array<variant>"), malformed)
    else:
        frame, documents = _by_schema(frame, only, _as_type(schema), side)
    name = f"{_DOCUMENTS}{side}"
    found = sf.col(name)
    document = sf.when(sf.size(found) == 1, found[0]).otherwise(
        sf.when(found.isNotNull(), _raise_error(side, "not JSON")),
    )
    return frame.withColumn(name, _once(documents)), document


def _by_schema(frame: DataFrame, array: Column, kind: str, side: str) -> tuple[DataFrame, Column]:
    """The elements of an array, all of which must be of a type.

    Spark distinguishes unparsable input from null only in an object. If any part of it has another type, the whole is
    reported as corrupt, as FAILFAST fails for it.
    """
    wrapped = sf.concat(sf.lit(f'{{"{_WRAPPED}":'), array, sf.lit("}"))
    schema = f"struct<{_WRAPPED}: array<{kind}>, {_CORRUPT}: string>"
    name = f"{_PARSED}{side}"
    found = sf.col(name)
    malformed = _raise_error(side, "not JSON of its schema")
    elements = sf.when(found[_CORRUPT].isNull(), found[_WRAPPED]).otherwise(malformed)
    # Only expressions in their own projection are computed for each record, regardless of a filter.
    return frame.withColumn(name, _once(sf.from_json(wrapped, schema, _FROM_JSON))), elements


def _once(column: Column) -> Column:
    """The same column, computed once for each row.

    Otherwise Spark would push a filter below the decoding, and decode each kept record a second time. A
    non-deterministic expression is not moved; the partition number is never below zero, which Spark does not know.
    """
    return sf.when(sf.spark_partition_id() >= 0, column)


def _as_type(schema: str) -> str:
    is_type = schema.strip().lower().startswith(("struct<", "array<", "map<"))
    return schema.strip() if is_type else f"struct<{schema}>"


def _raise_error(side: str, what: str) -> Column:
    """An error with the record's mark, in an expression of any type."""
    return sf.raise_error(sf.concat(_mark_column(), sf.lit(f" the {side} is {what}.")))


def _mark_column() -> Column:
    """`record_mark.mark` as a Spark expression."""
    before, between, after = mark(-1, -2).replace("-1", "\0").replace("-2", "\0").split("\0")
    place, offset = (sf.col(f"{SOURCE}.{name}").cast("string") for name in ("place", "offset"))
    return sf.concat(sf.lit(before), place, sf.lit(between), offset, sf.lit(after))


def to_bytes(column: Column, kind: DataType, what: str) -> Column:
    """A value that a transform has set, as bytes.

    Args:
        kind: type of the column.
        what: name of the column, for messages.

    Raises:
        ConfigurationError: there is more than one way to encode such values.
    """
    name = kind.typeName()
    if name == "binary":
        return column
    if name in ("string", "void") or name.startswith(("char", "varchar")):
        return column.cast("string").cast("binary")
    if name in _AS_JSON:
        return sf.to_json(column, _TO_JSON).cast("binary")
    if name in _AS_TEXT:
        return column.cast("string").cast("binary")
    raise ConfigurationError(
        f"{what} has the type {kind.simpleString()}, which has several text forms.",
        action="Use CAST(... AS STRING) or date_format, or put it into a struct to write it as JSON.",
    )


def is_document(kind: DataType) -> bool:
    """True if values of a type are encoded as documents: as JSON, or by a schema."""
    return kind.typeName() in _AS_JSON


def set_column(column: Column, kind: DataType, name: str, what: str) -> Column:
    """Headers, timestamp, topic or partition that a transform has set, in the required type.

    Raises:
        ConfigurationError: the column has an unsuitable type.
    """
    found = kind.typeName()
    if name == "timestamp" and found in _AS_TEXT:
        raise ConfigurationError(
            f"{what} is a number without a unit.",
            action="Use timestamp_millis(...), timestamp_micros(...) or timestamp_seconds(...).",
        )
    if name == "headers" and found == "map":
        column = sf.map_entries(column)
    return column.cast({"headers": HEADERS_DDL, "timestamp": "timestamp", "topic": "string", "partition": "int"}[name])
