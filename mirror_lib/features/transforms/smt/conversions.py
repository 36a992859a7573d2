"""`Cast` and `TimestampConverter`: the same content in another type."""

from __future__ import annotations

import base64
from dataclasses import replace

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.model import TimestampType, UnixPrecision
from mirror_lib.features.transforms.smt.record import SmtRecord, require_map, require_struct
from mirror_lib.features.transforms.smt.schema_cache import SchemaCache
from mirror_lib.features.transforms.smt.values.data import (
    DATE,
    DATE_NAME,
    STRING,
    TIME,
    TIME_NAME,
    TIMESTAMP,
    TIMESTAMP_NAME,
    DataError,
    Field,
    Moment,
    Schema,
    SchemaType,
    Struct,
    Value,
    class_name,
    schema_type_of,
    struct_schema,
)
from mirror_lib.features.transforms.smt.values.java_strings import java_text, moment_text
from mirror_lib.features.transforms.smt.values.numbers import (
    WIDTHS,
    NotANumberError,
    cast_to_boolean,
    cast_to_float,
    cast_to_integer,
)

_CASTING, _CONVERTING = "cast types", "converting timestamp formats"
_CAST: SchemaCache[Schema] = SchemaCache()
_CASTABLE = (
    *(SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64, SchemaType.FLOAT32),
    *(SchemaType.FLOAT64, SchemaType.BOOLEAN, SchemaType.STRING, SchemaType.BYTES),
)
_MILLISECONDS_PER_DAY = 86_400_000
_LONG_MAX = (1 << 63) - 1


def cast(setting: model.Cast, record: SmtRecord) -> SmtRecord:
    """Cast the whole or fields. A null stays null; a field that a map does not have appears as null.

    Raises:
        DataError: the side is no map or struct, or a value cannot be cast.
    """
    schema, value = record.part(setting.side)
    if value is None:
        return record
    if schema is None:
        if setting.whole is not None:
            return record.with_part(setting.side, None, _cast(None, value, setting.whole))
        fields = require_map(value, _CASTING)
        changed = {name: _cast(None, fields.get(name), kind) for name, kind in setting.fields.items()}
        return record.with_part(setting.side, None, {**fields, **changed})
    new_schema = _CAST.get(setting, schema, lambda: _cast_schema(setting, schema))
    if setting.whole is not None:
        return record.with_part(setting.side, new_schema, _cast(schema, value, setting.whole))
    whole = require_struct(value, _CASTING)
    pairs = []
    for each in whole.schema.fields:
        member = whole.get(each.name, default=setting.replace_null_with_default)
        kind = setting.fields.get(each.name)
        pairs.append((each.name, member if kind is None else _cast(each.schema, member, kind)))
    return record.with_part(setting.side, new_schema, Struct.of(new_schema, pairs))


def _cast_schema(setting: model.Cast, schema: Schema) -> Schema:
    if setting.whole is not None:
        made = replace(schema.basics(type=setting.whole), optional=schema.optional)
        return made if schema.default is None else made.with_default(_cast(schema, schema.default, setting.whole))
    fields = []
    for each in schema.struct_fields():
        kind = setting.fields.get(each.name)
        if kind is None:
            fields.append(each)
            continue
        made = Schema(kind, optional=each.schema.optional)
        default = each.schema.default
        fields.append(
            Field(each.name, made if default is None else made.with_default(_cast(each.schema, default, kind)))
        )
    made = replace(struct_schema(fields, like=schema), optional=schema.optional)
    if schema.default is not None:
        # Java casts the default to the type of the builder, a struct, which Cast does not know.
        raise DataError("Cast transformation does not support casting from STRUCT")
    return made


def _cast(schema: Schema | None, value: Value, kind: SchemaType) -> Value:
    if value is None:
        return None
    found = schema_type_of(value) if schema is None else schema.type
    if found is None:
        raise DataError(
            f"Cast transformation was passed a value of type class {class_name(value)}"
            " which is not supported by Connect's data API"
        )
    if found not in _CASTABLE:
        names = ", ".join(each.name for each in _CASTABLE)
        raise DataError(
            f"Cast transformation does not support casting from {found.name}; supported types are [{names}]"
        )
    if schema is not None and isinstance(value, Moment) and kind is not SchemaType.STRING:
        value = encoded_moment(schema, value)
    try:
        if kind in WIDTHS:
            return cast_to_integer(kind, value)
        if kind in (SchemaType.FLOAT32, SchemaType.FLOAT64):
            return cast_to_float(kind, value)
        return cast_to_boolean(value) if kind is SchemaType.BOOLEAN else _cast_to_string(value)
    except NotANumberError as error:
        raise DataError(f"Value ({error}) was out of range for requested data type") from None


def _cast_to_string(value: Value) -> str:
    if isinstance(value, Moment):
        return moment_text(value)
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else java_text(value)


def encoded_moment(schema: Schema, value: Moment) -> int:
    """Return the number that represents a moment in its schema (`Date.fromLogical` and the like).

    Raises:
        DataError: a date has a time of day, or a time a date.
    """
    if schema.name == DATE_NAME:
        if value.milliseconds % _MILLISECONDS_PER_DAY:
            raise DataError("Kafka Connect Date type should not have any time fields set to non-zero values.")
        return value.milliseconds // _MILLISECONDS_PER_DAY
    if schema.name == TIME_NAME and not 0 <= value.milliseconds <= _MILLISECONDS_PER_DAY:
        raise DataError("Kafka Connect Time type should not have any date fields set to non-zero values.")
    return value.milliseconds


def timestamp_converter(setting: model.TimestampConverter, record: SmtRecord) -> SmtRecord:
    """Convert a moment. A null stays null; a field that a map does not have appears as null.

    Raises:
        DataError: the side is no map or struct, or the value is no moment.
    """
    schema, value = record.part(setting.side)
    if schema is None:
        if value is None or setting.field is None:
            return record.with_part(setting.side, None, _convert(setting, None, value))
        fields = require_map(value, _CONVERTING)
        moment = _convert(setting, None, fields.get(setting.field))
        return record.with_part(setting.side, None, {**fields, setting.field: moment})
    if setting.field is None:
        new_schema = _moment_schema(setting, optional=schema.optional)
        return record.with_part(setting.side, new_schema, _convert(setting, schema, value))
    whole = None if value is None else require_struct(value, _CONVERTING)
    new_schema = _with_moment(setting, schema)
    changed = None if whole is None else _convert_struct(setting, whole, new_schema)
    return record.with_part(setting.side, new_schema, changed)


def _with_moment(setting: model.TimestampConverter, schema: Schema) -> Schema:
    fields = (
        Field(each.name, _moment_schema(setting, optional=each.schema.optional)) if each.name == setting.field else each
        for each in schema.struct_fields()
    )
    made = replace(struct_schema(fields, like=schema), optional=schema.optional)
    if isinstance(schema.default, Struct):
        made = replace(made, default=_convert_struct(setting, schema.default, made))
    return made


def _convert_struct(setting: model.TimestampConverter, whole: Struct, schema: Schema) -> Struct:
    pairs = []
    for each in whole.schema.fields:
        member = whole.get(each.name, default=setting.replace_null_with_default)
        pairs.append((each.name, _convert(setting, each.schema, member) if each.name == setting.field else member))
    return Struct.of(schema, pairs)


def _moment_schema(setting: model.TimestampConverter, *, optional: bool) -> Schema:
    made = {
        TimestampType.STRING: STRING,
        TimestampType.UNIX: Schema(SchemaType.INT64),
        TimestampType.DATE: DATE,
        TimestampType.TIME: TIME,
        TimestampType.TIMESTAMP: TIMESTAMP,
    }[setting.target]
    return replace(made, optional=optional)


def _convert(setting: model.TimestampConverter, schema: Schema | None, value: Value) -> Value:
    if schema is not None and not _is_moment(schema):
        raise DataError(f"Schema {schema} does not correspond to a known timestamp type format")
    if value is None:
        return None
    milliseconds = _milliseconds(setting, value)
    if setting.target is TimestampType.UNIX:
        return _in_precision(milliseconds, setting.precision)
    if setting.target is TimestampType.STRING:
        assert setting.format is not None, "settings without a format are refused"
        return setting.format.format(milliseconds)
    if setting.target is TimestampType.DATE:
        milliseconds -= milliseconds % _MILLISECONDS_PER_DAY
    elif setting.target is TimestampType.TIME:
        milliseconds %= _MILLISECONDS_PER_DAY
    return Moment(milliseconds)


def _is_moment(schema: Schema) -> bool:
    named = schema.name in (TIMESTAMP_NAME, DATE_NAME, TIME_NAME)
    return named or schema.type in (SchemaType.STRING, SchemaType.INT64)


def _milliseconds(setting: model.TimestampConverter, value: Value) -> int:
    if isinstance(value, Moment):
        return value.milliseconds
    if isinstance(value, str):
        if setting.format is None:
            raise DataError("the value is a string, but no format is set to parse it")
        return setting.format.parse(value)
    if schema_type_of(value) is SchemaType.INT64 and isinstance(value, int):
        return _from_precision(value, setting.precision)
    raise DataError(f"TimestampConverter does not support class {class_name(value)} objects as timestamps")


def _from_precision(value: int, precision: UnixPrecision) -> int:
    if precision is UnixPrecision.SECONDS:
        return max(-_LONG_MAX - 1, min(_LONG_MAX, value * 1000))
    if precision is UnixPrecision.MILLISECONDS:
        return value
    return _truncate(value, 1000 if precision is UnixPrecision.MICROSECONDS else 1_000_000)


def _in_precision(milliseconds: int, precision: UnixPrecision) -> int:
    if precision is UnixPrecision.SECONDS:
        return _truncate(milliseconds, 1000)
    factors = {UnixPrecision.MILLISECONDS: 1, UnixPrecision.MICROSECONDS: 1000, UnixPrecision.NANOSECONDS: 1_000_000}
    return max(-_LONG_MAX - 1, min(_LONG_MAX, milliseconds * factors[precision]))


def _truncate(value: int, divisor: int) -> int:
    """Divide like Java, rounding towards zero."""
    return value // divisor if value >= 0 else -(-value // divisor)
