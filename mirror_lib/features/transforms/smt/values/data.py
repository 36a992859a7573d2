"""Connect's data: schemas, structs, and Python values that represent Java's (`org.apache.kafka.connect.data`).

Transforms check the Java class of a value, so the widths of numbers are kept: a plain `int` is a Java `Long`, a plain
`float` a `Double`; the narrower ones have their own classes. `bytes` are `byte[]`, `Decimal` is `BigDecimal`, `Moment`
is `java.util.Date`, `list` and `dict` are `List` and `Map`. Values are never changed in place.
"""

from __future__ import annotations

import math
import struct as binary
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import Self, TypeAlias

#: Any of the Python types that the module's first lines name, or None.
Value: TypeAlias = object


class DataError(ValueError):
    """Connect's `DataException`: this record cannot be transformed or converted; the message is one clause."""


class SchemaType(StrEnum):
    """`Schema.Type`; the values are the names that `JsonConverter` writes."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


class Int8(int):
    """A Java `Byte`."""

    __slots__ = ()


class Int16(int):
    """A Java `Short`."""

    __slots__ = ()


class Int32(int):
    """A Java `Integer`."""

    __slots__ = ()


class Float64(float):
    """A Java `Double` with its original text, so that an unchanged number is written letter by letter."""

    __slots__ = ("text",)
    text: str | None

    def __new__(cls, value: float, text: str | None = None) -> Self:
        made = super().__new__(cls, value)
        made.text = text
        return made


class Float32(float):
    """A Java `Float`, rounded to its 32 bits; `text` as in `Float64`."""

    __slots__ = ("text",)
    text: str | None

    def __new__(cls, value: float, text: str | None = None) -> Self:
        made = super().__new__(cls, as_float32(value))
        made.text = text
        return made


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """A `java.util.Date`: milliseconds since 1970 in UTC."""

    milliseconds: int


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct's schema."""

    name: str
    schema: Schema


@dataclass(frozen=True, slots=True)
class Schema:
    """`org.apache.kafka.connect.data.Schema`."""

    type: SchemaType
    optional: bool = False
    #: Used for a null; None without one.
    default: Value = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()
    #: Of a struct, in their order.
    fields: tuple[Field, ...] = ()
    #: Of a map.
    keys: Schema | None = None
    #: Of a map or an array.
    values: Schema | None = None

    def struct_fields(self) -> tuple[Field, ...]:
        """Return the fields.

        Raises:
            DataError: it is no struct.
        """
        if self.type is not SchemaType.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        return self.fields

    def field(self, name: str) -> Field | None:
        """Return the field of that name.

        Raises:
            DataError: it is no struct.
        """
        if self.type is not SchemaType.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        return next((each for each in self.fields if each.name == name), None)

    def basics(self, **changes: object) -> Schema:
        """Return name, version, doc and parameters, not `optional` and not the default
        (`SchemaUtil.copySchemaBasics`).
        """
        bare = Schema(self.type, name=self.name, version=self.version, doc=self.doc, parameters=self.parameters)
        return replace(bare, **changes)  # type: ignore[arg-type]

    def with_default(self, default: Value) -> Schema:
        """Return the schema with a default value.

        Raises:
            DataError: the default does not fit.
        """
        validate(self, default, "default value")
        return replace(self, default=default)

    def __str__(self) -> str:
        return f"Schema{{{self.name or self.type.name}}}"


@dataclass(frozen=True, slots=True)
class Struct:
    """`org.apache.kafka.connect.data.Struct`; fields that are absent in `values` are null."""

    schema: Schema
    values: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema, pairs: Iterable[tuple[str, Value]]) -> Self:
        """Return a struct whose given fields are checked as in `Struct.put`.

        Raises:
            DataError: the schema is no struct's, has no such field, or a value does not fit.
        """
        if schema.type is not SchemaType.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        schemas = {each.name: each.schema for each in schema.fields}
        values: dict[str, Value] = {}
        for name, value in pairs:
            if name not in schemas:
                raise DataError(f"{name} is not a valid field name")
            validate(schemas[name], value, f'field: "{name}"')
            values[name] = value
        return cls(schema, values)

    def get(self, name: str, *, default: bool = True) -> Value:
        """Return the value of a field; for a null its schema's default, unless `default` is false.

        Raises:
            DataError: there is no such field.
        """
        found = self.schema.field(name)
        if found is None:
            raise DataError(f"{name} is not a valid field name")
        value = self.values.get(name)
        return found.schema.default if value is None and default else value


def struct_schema(fields: Iterable[Field], like: Schema | None = None) -> Schema:
    """Return a struct's schema, with the basics of another one.

    Raises:
        DataError: two fields have one name.
    """
    kept = tuple(fields)
    names: set[str] = set()
    for each in kept:
        if not each.name:
            raise DataError("fieldName cannot be null.")
        if each.name in names:
            raise DataError(f"Cannot create field because of field name duplication {each.name}")
        names.add(each.name)
    return Schema(SchemaType.STRUCT, fields=kept) if like is None else like.basics(type=SchemaType.STRUCT, fields=kept)


DECIMAL_NAME = "org.apache.kafka.connect.data.Decimal"
DATE_NAME = "org.apache.kafka.connect.data.Date"
TIME_NAME = "org.apache.kafka.connect.data.Time"
TIMESTAMP_NAME = "org.apache.kafka.connect.data.Timestamp"

STRING = Schema(SchemaType.STRING)
OPTIONAL_STRING = Schema(SchemaType.STRING, optional=True)
BYTES = Schema(SchemaType.BYTES)
OPTIONAL_BYTES = Schema(SchemaType.BYTES, optional=True)
DATE = Schema(SchemaType.INT32, name=DATE_NAME, version=1)
TIME = Schema(SchemaType.INT32, name=TIME_NAME, version=1)
TIMESTAMP = Schema(SchemaType.INT64, name=TIMESTAMP_NAME, version=1)

_LOGICAL: Mapping[str, type] = {DECIMAL_NAME: Decimal, DATE_NAME: Moment, TIME_NAME: Moment, TIMESTAMP_NAME: Moment}
#: Python type, Java class, type of its schema; the first that fits applies. Logical types have none without a schema.
_CLASSES: tuple[tuple[type, str, SchemaType | None], ...] = (
    (bool, "java.lang.Boolean", SchemaType.BOOLEAN),
    (Int8, "java.lang.Byte", SchemaType.INT8),
    (Int16, "java.lang.Short", SchemaType.INT16),
    (Int32, "java.lang.Integer", SchemaType.INT32),
    (int, "java.lang.Long", SchemaType.INT64),
    (Float32, "java.lang.Float", SchemaType.FLOAT32),
    (float, "java.lang.Double", SchemaType.FLOAT64),
    (str, "java.lang.String", SchemaType.STRING),
    (bytes, "[B", SchemaType.BYTES),
    (list, "java.util.ArrayList", SchemaType.ARRAY),
    (dict, "java.util.HashMap", SchemaType.MAP),
    (Struct, "org.apache.kafka.connect.data.Struct", SchemaType.STRUCT),
    (Decimal, "java.math.BigDecimal", None),
    (Moment, "java.util.Date", None),
)


#: The same for values of exactly that type, as nearly all are: records have many.
_SCHEMA_TYPES: Mapping[type, SchemaType | None] = {kind: found for kind, _, found in _CLASSES}


def class_name(value: Value) -> str:
    """Return the name of the Java class that a value represents, `null` for None."""
    return next((name for kind, name, _ in _CLASSES if isinstance(value, kind)), "null")


def schema_type_of(value: Value) -> SchemaType | None:
    """Return `ConnectSchema.schemaType` of a value's class: None for logical types, which need a schema."""
    if type(value) in _SCHEMA_TYPES:
        return _SCHEMA_TYPES[type(value)]
    return next((found for kind, _, found in _CLASSES if isinstance(value, kind)), None)


def validate(schema: Schema, value: Value, location: str = "value") -> None:
    """Check that a value fits a schema (`ConnectSchema.validateValue`).

    Raises:
        DataError: it does not.
    """
    if value is None:
        if not schema.optional:
            raise DataError(f"Invalid value: null used for required {location}, schema type: {schema.type.name}")
        return
    logical = _LOGICAL.get(schema.name or "")
    if not (schema_type_of(value) is schema.type if logical is None else isinstance(value, logical)):
        name = "" if schema.name is None else f' "{schema.name}"'
        raise DataError(
            f"Invalid Java object for schema{name} with type {schema.type.name}: "
            f"class {class_name(value)} for {location}"
        )
    if isinstance(value, Struct):
        _validate_struct(schema, value)
    elif isinstance(value, list) and schema.values is not None:
        for member in value:
            validate(schema.values, member, f"element of array {location}")
    elif isinstance(value, dict) and schema.keys is not None and schema.values is not None:
        for key, member in value.items():
            validate(schema.keys, key, f"key of map {location}")
            validate(schema.values, member, f"value of map {location}")


def _validate_struct(schema: Schema, value: Struct) -> None:
    if value.schema != schema:
        raise DataError("Struct schemas do not match.")
    for each in schema.fields:
        member = value.values.get(each.name)
        if member is not None or not (each.schema.optional or each.schema.default is not None):
            validate(each.schema, member, f'field: "{each.name}"')


def as_float32(value: float) -> float:
    """Return the nearest number that a Java `float` holds."""
    try:
        return float(binary.unpack("<f", binary.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
