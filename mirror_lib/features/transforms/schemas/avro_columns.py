"""Avro values in columns: the column type of a schema, and conversion of values of older versions.

Types are those of Spark's own `from_avro`: records are structs, enums texts, unions with null nullable, a union of an
int and a long a long, of a float and a double a double, and other unions structs of `member0`, `member1`, ... of which
one is not null. Times of day stay the numbers that they are written as. Values of other versions are converted to this
one by Avro's rules for schema resolution: by field names, with defaults for missing fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from mirror_lib.features.transforms.schemas.avro import AvroSchema
from mirror_lib.features.transforms.schemas.avro_types import RECORDS, kind_of
from mirror_lib.features.transforms.schemas.avro_values import AvroValues
from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.typed_column import TypedColumn, list_of, map_of, optional, plain

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_OWN_PREFIX = "mirror-"
#: Microseconds of a unit.
_UNITS = {"millis": 1000, "micros": 1}
_MOST_DIGITS = 38
_PLAIN = {
    "null": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "enum": pa.string(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
}
#: Unions that have a single type in a column.
_WIDER = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}


def avro_column(schema: AvroSchema) -> TypedColumn:
    """The column of a schema's values.

    Raises:
        SchemaFormatError: no column can have the type, for example because it contains itself.
    """
    return _Columns(schema.values).of(schema.definition, frozenset())


class _Columns:
    """Columns by the named types of one schema."""

    def __init__(self, values: AvroValues) -> None:
        self._values = values

    def of(self, schema: Any, inside: frozenset[str]) -> TypedColumn:
        """The column of a type."""
        schema = self._values.definition(schema)
        kind = kind_of(schema)
        if kind == "union":
            return self._union(schema, inside)
        if kind in RECORDS:
            return self._record(schema, inside)
        if kind == "array":
            return list_of(self.of(schema["items"], inside))
        if kind == "map":
            return map_of(plain(pa.string()), self.of(schema["values"], inside))
        if kind in ("float", "double"):
            return TypedColumn(pa.float32() if kind == "float" else pa.float64(), float, float)
        logical = schema.get("logicalType") if isinstance(schema, Mapping) else None
        if isinstance(logical, str) and logical.startswith(_OWN_PREFIX):
            return _logical(kind, logical.removeprefix(_OWN_PREFIX), schema)
        return plain(_PLAIN[kind])

    def _record(self, schema: Mapping[str, Any], inside: frozenset[str]) -> TypedColumn:
        name = schema["name"]
        if name in inside:
            raise SchemaFormatError(
                f"the type {name} is recursive, which a column cannot represent.",
                action="Transform such records with a Python function that decodes them itself (decode: none).",
            )
        fields = {each["name"]: each for each in schema["fields"]}
        if not fields:
            raise SchemaFormatError(
                f"the type {name} has no fields, which a column cannot represent.", action="Do not decode such records."
            )
        columns = {each: self.of(field["type"], inside | {name}) for each, field in fields.items()}
        outs = [(each, fields[each], optional(column.out)) for each, column in columns.items()]
        backs = {each: optional(column.back) for each, column in columns.items()}

        def out(value: Mapping[str, Any]) -> dict[str, Any]:
            return {each: read(self._field(value, field)) for each, field, read in outs}

        def back(value: Mapping[str, Any]) -> dict[str, Any]:
            # Fields that the schema does not know are rejected when the value is encoded.
            return {each: backs[each](found) if each in backs else found for each, found in value.items()}

        kind = pa.struct([pa.field(each, column.kind) for each, column in columns.items()])
        required = frozenset(each for each, field in fields.items() if "default" not in field)
        return TypedColumn(kind, out, back, required)

    def _field(self, value: Mapping[str, Any], field: Mapping[str, Any]) -> Any:
        for name in (field["name"], *field.get("aliases", ())):
            if name in value:
                return value[name]
        try:
            return self._values.default_of(field)
        except KeyError:
            raise ValueError(f"the field {field['name']} is missing, and has no default") from None

    def _union(self, union: Sequence[Any], inside: frozenset[str]) -> TypedColumn:
        branches = [each for each in union if kind_of(self._values.definition(each)) != "null"]
        kinds = frozenset(kind_of(self._values.definition(each)) for each in branches)
        if not branches:
            return plain(pa.string())
        if len(branches) == 1 or (kinds in _WIDER and all(isinstance(each, str) for each in branches)):
            column = self.of(branches[0] if len(branches) == 1 else _WIDER[kinds], inside)
            inner = optional(column.out)
            return TypedColumn(
                column.kind, lambda value: inner(_without_type_name(value)), column.back, column.required
            )
        return self._members(branches, inside)

    def _members(self, branches: Sequence[Any], inside: frozenset[str]) -> TypedColumn:
        columns = [self.of(each, inside) for each in branches]
        names = [f"member{number}" for number in range(len(branches))]
        labels = [self._values.label(each) for each in branches]

        def out(value: Any) -> dict[str, Any] | None:
            if _without_type_name(value) is None:
                return None
            branch, inner = self._values.branch_of(value, branches)
            number = next(place for place, each in enumerate(branches) if each is branch)
            return {names[number]: columns[number].out(inner)}

        def back(value: Mapping[str, Any]) -> Any:
            found = [number for number, name in enumerate(names) if value.get(name) is not None]
            if len(found) != 1:
                raise ValueError(f"of {', '.join(names)}, {len(found)} are not null, but exactly one must be")
            return labels[found[0]], columns[found[0]].back(value[names[found[0]]])

        fields = [pa.field(name, column.kind) for name, column in zip(names, columns, strict=True)]
        return TypedColumn(pa.struct(fields), out, back)


def _without_type_name(value: Any) -> Any:
    """A value without its type name in a union."""
    return value[1] if isinstance(value, tuple) else value


def _logical(kind: str, name: str, schema: Mapping[str, Any]) -> TypedColumn:
    if name == "decimal":
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > _MOST_DIGITS:
            raise SchemaFormatError(
                f"a decimal of {precision} digits does not fit into a column.",
                action=f"Spark's decimals have {_MOST_DIGITS} digits; do not decode such records.",
            )
        return TypedColumn(pa.decimal128(precision, scale), _as_decimal, _as_decimal)
    if name == "date":
        return TypedColumn(pa.date32(), _days, _same_date)
    if name == "uuid":
        back: Callable[[Any], Any] = UUID if kind == "fixed" else str
        return TypedColumn(pa.string(), str, back)
    unit = _UNITS[name.rpartition("-")[2]]
    if name.startswith("time-"):
        return TypedColumn(pa.int32() if kind == "int" else pa.int64(), lambda value: _of_day(value, unit), int)
    local = name.startswith("local-")
    return TypedColumn(
        pa.timestamp("us") if local else pa.timestamp("us", tz="UTC"),
        lambda value: _microseconds(value, unit),
        lambda value: value,
    )


def _as_decimal(value: Any) -> Decimal:
    if not isinstance(value, Decimal):
        raise ValueError(f"{value!r} is not a decimal")  # noqa: TRY004 - of a record, not of the code
    return value


def _days(value: Any) -> int:
    return value if isinstance(value, int) else value.toordinal() - _EPOCH_DAY


def _same_date(value: Any) -> Any:
    return value


def _of_day(value: Any, unit: int) -> int:
    if not isinstance(value, time):
        return int(value)
    return (((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond) // unit


def _microseconds(value: Any, unit: int) -> int:
    """Of a moment; a moment that Python cannot represent is the number in its unit."""
    if isinstance(value, datetime):
        return (value.replace(tzinfo=UTC) - _EPOCH if value.tzinfo is None else value - _EPOCH) // _MICROSECOND
    return int(value) * unit
