"""`ExtractField`, `HoistField`, `Flatten` and `ValueToKey`: they change the structure of a key or value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.record import Side, SmtRecord, require_map, require_struct
from mirror_lib.features.transforms.smt.values.data import (
    DataError,
    Field,
    Schema,
    SchemaType,
    Struct,
    Value,
    class_name,
    schema_type_of,
    struct_schema,
)

_EXTRACTION, _FLATTENING, _NESTED = "field extraction", "flattening", "nested field access"
_KEY_FROM_VALUE = "copying fields from value to key"


def extract_field(setting: model.ExtractField, record: SmtRecord) -> SmtRecord:
    """Extract a field. A null stays null, and so does a field that a map does not have.

    Raises:
        DataError: the side is no map or struct, or a struct has no such field.
    """
    schema, value = record.part(setting.side)
    if schema is None:
        found = None if value is None else _from_map(require_map(value, _EXTRACTION), setting.path)
        return record.with_part(setting.side, None, found)
    whole = None if value is None else require_struct(value, _EXTRACTION)
    new_schema = _schema_at(schema, setting.path)
    if new_schema is None:
        raise DataError(f"Unknown field: {setting.field}")
    found = None if whole is None else _from_struct(whole, setting)
    return record.with_part(setting.side, new_schema, found)


def _from_map(value: dict[str, Any], path: tuple[str, ...]) -> Value:
    for step in path[:-1]:
        inner = value.get(step)
        if inner is None:
            return None
        value = require_map(inner, _NESTED)
    return value.get(path[-1])


def _schema_at(schema: Schema, path: tuple[str, ...]) -> Schema | None:
    for step in path:
        found = schema.field(step)
        if found is None:
            return None
        schema = found.schema
    return schema


def _from_struct(whole: Struct, setting: model.ExtractField) -> Value:
    for step in setting.path[:-1]:
        inner = whole.get(step)
        if inner is None:
            return None
        whole = require_struct(inner, _NESTED)
    return whole.get(setting.path[-1], default=setting.replace_null_with_default)


def hoist_field(setting: model.HoistField, record: SmtRecord) -> SmtRecord:
    """Wrap the whole in a field. A null is wrapped like any value: a tombstone is no longer one.

    Raises:
        DataError: the value is null, which its schema does not allow.
    """
    schema, value = record.part(setting.side)
    if schema is None:
        return record.with_part(setting.side, None, {setting.field: value})
    new_schema = struct_schema([Field(setting.field, schema)])
    return record.with_part(setting.side, new_schema, Struct.of(new_schema, [(setting.field, value)]))


def value_to_key(setting: model.ValueToKey, record: SmtRecord) -> SmtRecord:
    """Build the key. A field that a map does not have is null in the key. A null value fails.

    Raises:
        DataError: the value is no map or struct, or a struct has no such field.
    """
    if record.value_schema is None:
        fields = require_map(record.value, _KEY_FROM_VALUE)
        return record.with_part(Side.KEY, None, {name: fields.get(name) for name in setting.fields})
    whole = require_struct(record.value, _KEY_FROM_VALUE)
    taken = []
    for name in setting.fields:
        found = whole.schema.field(name)
        if found is None:
            raise DataError(f"Field does not exist: {name}")
        taken.append(found)
    schema = struct_schema(taken)
    pairs = ((name, whole.get(name, default=setting.replace_null_with_default)) for name in setting.fields)
    return record.with_part(Side.KEY, schema, Struct.of(schema, pairs))


def flatten(setting: model.Flatten, record: SmtRecord) -> SmtRecord:
    """Flatten maps and structs. Lists and nulls are unchanged; the fields of a null struct are null.

    Raises:
        DataError: the side is no map or struct, a struct holds a map, or two fields would have one name.
    """
    schema, value = record.part(setting.side)
    if value is None:
        return record
    if schema is None:
        return record.with_part(setting.side, None, dict(_flat_map(require_map(value, _FLATTENING), setting, "")))
    whole = require_struct(value, _FLATTENING)
    default = schema.default if isinstance(schema.default, Struct) else None
    fields = _flat_fields(schema, setting, "", optional=schema.optional, default=default)
    new_schema = struct_schema(fields, like=schema)
    return record.with_part(setting.side, new_schema, Struct.of(new_schema, _flat_struct(whole, setting, "")))


def _name(setting: model.Flatten, prefix: str, name: str) -> str:
    return prefix + setting.delimiter + name if prefix else name


def _flat_map(value: dict[str, Any], setting: model.Flatten, prefix: str) -> Iterator[tuple[str, Value]]:
    for key, member in value.items():
        name = _name(setting, prefix, key)
        if isinstance(member, dict):
            yield from _flat_map(member, setting, name)
        elif member is not None and schema_type_of(member) is None:
            raise DataError(
                f"Flatten transformation was passed a value of type class {class_name(member)}"
                " which is not supported by Connect's data API"
            )
        elif isinstance(member, Struct):
            raise DataError(
                f"Flatten transformation does not support class {class_name(member)}"
                f" for record without schemas (for field {name})."
            )
        else:
            yield name, member


def _flat_fields(
    schema: Schema, setting: model.Flatten, prefix: str, *, optional: bool, default: Struct | None
) -> Iterator[Field]:
    for each in schema.struct_fields():
        name = _name(setting, prefix, each.name)
        is_optional = optional or each.schema.optional
        own = each.schema.default
        if own is None and default is not None:
            own = default.get(each.name)
        if each.schema.type is SchemaType.STRUCT:
            inner = own if isinstance(own, Struct) else None
            yield from _flat_fields(each.schema, setting, name, optional=is_optional, default=inner)
        elif each.schema.type is SchemaType.MAP:
            raise DataError(f"Flatten transformation does not support MAP for record with schemas (for field {name}).")
        else:
            flat = replace(each.schema.basics(values=each.schema.values), optional=is_optional)
            yield Field(name, flat if own is None else flat.with_default(own))


def _flat_struct(whole: Struct, setting: model.Flatten, prefix: str) -> Iterator[tuple[str, Value]]:
    for each in whole.schema.fields:
        name = _name(setting, prefix, each.name)
        if each.schema.type is SchemaType.STRUCT:
            # Java does not use the default of a struct here.
            inner = whole.values.get(each.name)
            if isinstance(inner, Struct):
                yield from _flat_struct(inner, setting, name)
        else:
            yield name, whole.get(each.name)
