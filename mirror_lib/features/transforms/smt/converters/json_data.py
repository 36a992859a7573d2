"""Connect's schemas and values as JSON: the rules of `org.apache.kafka.connect.json.JsonConverter`.

If a payload does not fit its schema, Java uses a zero, a null or a part of the number and continues. Here the record is
rejected, because nothing may be lost silently.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from mirror_lib.features.transforms.smt.conversions import encoded_moment
from mirror_lib.features.transforms.smt.model import ConverterSettings
from mirror_lib.features.transforms.smt.values.data import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataError,
    Field,
    Float64,
    Moment,
    Schema,
    SchemaType,
    Struct,
    Value,
    class_name,
    schema_type_of,
    struct_schema,
)
from mirror_lib.features.transforms.smt.values.numbers import WIDTHS, fits, integer_of, nearest_float32, scale

_MILLISECONDS_PER_DAY = 86_400_000
_LOGICAL_TYPES = {DECIMAL_NAME: Decimal, DATE_NAME: Moment, TIME_NAME: Moment, TIMESTAMP_NAME: Moment}


def value_from_json(schema: Schema | None, node: Any, settings: ConverterSettings) -> Value:
    """Return a payload as a value of its schema; without one, as written.

    Raises:
        DataError: it does not fit.
    """
    if schema is None:
        return node
    if node is None:
        if schema.default is not None and settings.replace_null_with_default:
            return schema.default
        if schema.optional:
            return None
        raise DataError(f"Invalid null value for required {schema.type.name} field")
    if schema.name in _LOGICAL_TYPES:
        return _logical_from_json(schema, node)
    return _plain_from_json(schema, node, settings)


def _plain_from_json(schema: Schema, node: Any, settings: ConverterSettings) -> Value:
    kind = schema.type
    if kind in WIDTHS and _is_integer(node) and fits(kind, node):
        return integer_of(kind, node)
    if kind in (SchemaType.FLOAT32, SchemaType.FLOAT64) and (_is_integer(node) or isinstance(node, Float64)):
        text = (node.text if isinstance(node, Float64) else None) or str(node)
        return nearest_float32(Decimal(text), text) if kind is SchemaType.FLOAT32 else Float64(float(text), text)
    if (kind is SchemaType.BOOLEAN and isinstance(node, bool)) or (kind is SchemaType.STRING and isinstance(node, str)):
        return node
    if kind is SchemaType.BYTES and isinstance(node, str):
        return _bytes_from_json(node)
    if kind is SchemaType.ARRAY and isinstance(node, list):
        return [value_from_json(schema.values, member, settings) for member in node]
    if kind is SchemaType.STRUCT and isinstance(node, dict):
        pairs = ((each.name, value_from_json(each.schema, node.get(each.name), settings)) for each in schema.fields)
        return Struct.of(schema, pairs)
    if kind is SchemaType.MAP:
        return _map_from_json(schema, node, settings)
    raise _misfit(schema, node)


def _map_from_json(schema: Schema, node: Any, settings: ConverterSettings) -> Value:
    """Read an object if keys are texts, else a list of pairs."""
    if schema.keys is None or schema.keys.type is SchemaType.STRING:
        if not isinstance(node, dict):
            raise DataError("Maps with string fields should be encoded as JSON objects")
        return {key: value_from_json(schema.values, member, settings) for key, member in node.items()}
    if not isinstance(node, list) or any(not isinstance(entry, list) or len(entry) != 2 for entry in node):
        raise DataError("Maps with non-string fields should be encoded as JSON array of tuples")
    if schema.keys.type in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT):
        raise DataError(f"maps with keys of type {schema.keys.type.name} are not supported here")
    return {
        value_from_json(schema.keys, key, settings): value_from_json(schema.values, member, settings)
        for key, member in node
    }


def _logical_from_json(schema: Schema, node: Any) -> Value:
    if schema.name == DECIMAL_NAME:
        if isinstance(node, str):
            digits = int.from_bytes(_bytes_from_json(node), "big", signed=True)
            return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -_scale_of(schema)))
        if _is_integer(node):
            return Decimal(node)
        if isinstance(node, Float64):
            return Decimal(node.text or repr(float(node)))
    elif _is_integer(node) and fits(SchemaType.INT64 if schema.name == TIMESTAMP_NAME else SchemaType.INT32, node):
        if schema.name == TIME_NAME and not 0 <= node <= _MILLISECONDS_PER_DAY:
            raise DataError("Time values must use number of milliseconds greater than 0 and less than 86400000")
        return Moment(node * _MILLISECONDS_PER_DAY if schema.name == DATE_NAME else node)
    raise _misfit(schema, node)


def value_to_json(schema: Schema | None, value: Value, settings: ConverterSettings) -> Value:
    """Return a value as JSON; bytes are base64.

    Raises:
        DataError: it does not fit its schema, or has no form without one.
    """
    if schema is None:
        return None if value is None else _schemaless_to_json(value, settings)
    if value is None:
        if schema.default is not None and settings.replace_null_with_default:
            return value_to_json(schema, schema.default, settings)
        if schema.optional:
            return None
        raise DataError("Conversion error: null value for field that is required and has no default value")
    if schema.name in _LOGICAL_TYPES:
        return _logical_to_json(schema, value, settings)
    if schema_type_of(value) is not schema.type:
        raise DataError(f"Invalid type for {schema.type.name}: class {class_name(value)}")
    if isinstance(value, Struct):
        if value.schema != schema:
            raise DataError("Mismatching schema.")
        return {each.name: value_to_json(each.schema, value.values.get(each.name), settings) for each in schema.fields}
    if isinstance(value, list):
        return [value_to_json(schema.values, member, settings) for member in value]
    if isinstance(value, dict):
        pairs = [
            (value_to_json(schema.keys, key, settings), value_to_json(schema.values, member, settings))
            for key, member in value.items()
        ]
        as_object = schema.keys is None or schema.keys.type is SchemaType.STRING
        return dict(pairs) if as_object else [list(pair) for pair in pairs]
    return _bytes_to_json(value) if isinstance(value, bytes) else value


def _schemaless_to_json(value: Value, settings: ConverterSettings) -> Value:
    if isinstance(value, str | int | float):
        return value
    if schema_type_of(value) is None:
        raise DataError(f"Java class class {class_name(value)} does not have corresponding schema type.")
    if isinstance(value, Struct):
        raise DataError("Mismatching schema.")
    if isinstance(value, list):
        return [value_to_json(None, member, settings) for member in value]
    if isinstance(value, dict):
        pairs = [(key, value_to_json(None, member, settings)) for key, member in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key in value) else [list(pair) for pair in pairs]
    return _bytes_to_json(value) if isinstance(value, bytes) else value


def _logical_to_json(schema: Schema, value: Value, settings: ConverterSettings) -> Value:
    expected = _LOGICAL_TYPES[schema.name or ""]
    if isinstance(value, Moment) and expected is Moment:
        return encoded_moment(schema, value)
    if not isinstance(value, Decimal) or expected is not Decimal:
        short = (schema.name or "").rpartition(".")[2]
        raise DataError(
            f"Invalid type for {short}, expected {class_name(_SAMPLES[expected])} but was {class_name(value)}"
        )
    if settings.numeric_decimals:
        return value
    if scale(value) != _scale_of(schema):
        raise DataError(
            "Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {_scale_of(schema)}, value has scale {scale(value)}."
        )
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    # `BigInteger.toByteArray`: the fewest bytes that leave room for the sign.
    length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length()) // 8 + 1
    return _bytes_to_json(unscaled.to_bytes(length, "big", signed=True))


_SAMPLES: dict[type, Value] = {Decimal: Decimal(0), Moment: Moment(0)}


def schema_from_json(node: Any, settings: ConverterSettings) -> Schema | None:
    """Return the schema of an envelope; None for a null.

    Raises:
        DataError: it is not a schema.
    """
    if node is None:
        return None
    kind_name = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind_name, str):
        raise DataError("Schema must contain 'type' field")
    if kind_name not in SchemaType.__members__.values():
        raise DataError(f"Unknown schema type: {kind_name}")
    schema = _bare_schema(SchemaType(kind_name), node, settings)
    version, parameters = node.get("version"), node.get("parameters")
    if isinstance(parameters, dict) and not all(isinstance(text, str) for text in parameters.values()):
        raise DataError("Schema parameters must have string values.")
    made = Schema(
        schema.type,
        optional=node.get("optional") is True,
        name=_text(node.get("name")),
        version=version if _is_integer(version) else None,
        doc=_text(node.get("doc")),
        parameters=tuple(parameters.items()) if isinstance(parameters, dict) else (),
        fields=schema.fields,
        keys=schema.keys,
        values=schema.values,
    )
    return made if "default" not in node else made.with_default(value_from_json(made, node["default"], settings))


def _bare_schema(kind: SchemaType, node: Mapping[str, Any], settings: ConverterSettings) -> Schema:
    if kind is SchemaType.ARRAY:
        if node.get("items") is None:
            raise DataError("Array schema did not specify the element type")
        return Schema(kind, values=schema_from_json(node["items"], settings))
    if kind is SchemaType.MAP:
        for member, what in (("keys", "key"), ("values", "value")):
            if member not in node:
                raise DataError(f"Map schema did not specify the {what} type")
        keys, values = (schema_from_json(node[name], settings) for name in ("keys", "values"))
        return Schema(kind, keys=keys, values=values)
    if kind is not SchemaType.STRUCT:
        return Schema(kind)
    if not isinstance(node.get("fields"), list):
        raise DataError('Struct schema\'s "fields" argument is not an array.')
    fields = []
    for each in node["fields"]:
        name = each.get("field") if isinstance(each, dict) else None
        schema = schema_from_json(each, settings)
        if not isinstance(name, str) or schema is None:
            raise DataError("Struct schema's field name not specified properly")
        fields.append(Field(name, schema))
    return struct_schema(fields)


def schema_to_json(schema: Schema | None, settings: ConverterSettings) -> dict[str, Value] | None:
    """Return the schema of an envelope, with its members in the order of `JsonConverter`.

    Raises:
        DataError: the default does not fit.
    """
    if schema is None:
        return None
    node: dict[str, Value] = {"type": schema.type.value}
    if schema.type is SchemaType.ARRAY:
        node["items"] = schema_to_json(schema.values, settings)
    elif schema.type is SchemaType.MAP:
        node["keys"] = schema_to_json(schema.keys, settings)
        node["values"] = schema_to_json(schema.values, settings)
    elif schema.type is SchemaType.STRUCT:
        node["fields"] = [
            {**(schema_to_json(each.schema, settings) or {}), "field": each.name} for each in schema.fields
        ]
    node["optional"] = schema.optional
    further = {"name": schema.name, "version": schema.version, "doc": schema.doc}
    node.update({name: value for name, value in further.items() if value is not None})
    if schema.parameters:
        node["parameters"] = dict(schema.parameters)
    if schema.default is not None:
        node["default"] = value_to_json(schema, schema.default, settings)
    return node


def _scale_of(schema: Schema) -> int:
    text = dict(schema.parameters).get("scale")
    if text is None:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(text)
    except ValueError:
        raise DataError(f"Invalid scale parameter found in Decimal schema: {text}") from None


def _is_integer(node: Any) -> bool:
    return isinstance(node, int) and not isinstance(node, bool)


def _text(node: Any) -> str | None:
    return node if isinstance(node, str) else None


def _bytes_from_json(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise DataError("Invalid bytes field: it is not base64") from None


def _bytes_to_json(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _misfit(schema: Schema, node: Any) -> DataError:
    shown = "a number" if isinstance(node, int | float) and not isinstance(node, bool) else type(node).__name__
    words = {"str": "a string", "bool": "a boolean", "list": "an array", "dict": "an object"}
    return DataError(
        f"the payload does not match its schema: {words.get(shown, shown)} for {schema.name or schema.type.name}"
    )
