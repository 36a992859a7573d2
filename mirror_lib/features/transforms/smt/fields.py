"""`InsertField`, `MaskField` and `ReplaceField`: single fields added, masked, dropped or renamed.

Fields keep the source's order and new ones come last. With a schema Java does the same; without one it keeps them in a
`HashMap`, whose order has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.record import SmtRecord, require_map, require_struct
from mirror_lib.features.transforms.smt.schema_cache import SchemaCache
from mirror_lib.features.transforms.smt.values.data import (
    OPTIONAL_STRING,
    STRING,
    TIMESTAMP,
    DataError,
    Field,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Moment,
    Schema,
    SchemaType,
    Struct,
    Value,
    class_name,
    struct_schema,
)
from mirror_lib.features.transforms.smt.values.numbers import masking_number

_INSERTED: SchemaCache[Schema] = SchemaCache()
_REPLACED: SchemaCache[Schema] = SchemaCache()
_INSERTION, _MASKING, _REPLACEMENT = "field insertion", "mask fields", "field replacement"


def insert_field(setting: model.InsertField, record: SmtRecord) -> SmtRecord:
    """Insert fields. A null stays null. The timestamp is a number without a schema, a Connect timestamp with one.

    Raises:
        DataError: the side is no map or struct, or a struct has such a field already.
    """
    schema, value = record.part(setting.side)
    if value is None:
        return record
    if schema is None:
        updated = dict(require_map(value, _INSERTION))
        updated.update((name, member) for name, _, member in _insertions(setting, record) if member is not None)
        return record.with_part(setting.side, None, updated)
    whole = require_struct(value, _INSERTION)
    insertions = list(_insertions(setting, record))
    added = (Field(name, each) for name, each, _ in insertions)
    new_schema = _INSERTED.get(
        setting, whole.schema, lambda: struct_schema((*whole.schema.fields, *added), like=whole.schema)
    )
    kept = ((each.name, _value(whole, each, setting.replace_null_with_default)) for each in whole.schema.fields)
    put = (
        (name, Moment(member) if each.name == TIMESTAMP.name and isinstance(member, int) else member)
        for name, each, member in insertions
        if member is not None
    )
    return record.with_part(setting.side, new_schema, Struct.of(new_schema, (*kept, *put)))


def _insertions(setting: model.InsertField, record: SmtRecord) -> Iterator[tuple[str, Schema, Value]]:
    """Yield name, schema and value of the inserted fields; a value of None if the record does not have it."""
    if (topic := setting.topic) is not None:
        yield topic.name, OPTIONAL_STRING if topic.optional else STRING, record.topic
    if (partition := setting.partition) is not None:
        number = None if record.partition is None else Int32(record.partition)
        yield partition.name, Schema(SchemaType.INT32, optional=partition.optional), number
    if (timestamp := setting.timestamp) is not None:
        schema = Schema(TIMESTAMP.type, optional=timestamp.optional, name=TIMESTAMP.name, version=TIMESTAMP.version)
        yield timestamp.name, schema, record.timestamp
    if (static := setting.static) is not None:
        yield static.name, OPTIONAL_STRING if static.optional else STRING, setting.static_value


def mask_field(setting: model.MaskField, record: SmtRecord) -> SmtRecord:
    """Mask fields. A null in a field stays null; a field that a map does not have appears as null. A null record fails.

    Raises:
        DataError: the side is no map or struct, or a value cannot be masked.
    """
    schema, value = record.part(setting.side)
    if schema is None:
        fields = require_map(value, _MASKING)
        masked = {name: _mask(fields.get(name), setting.replacement) for name in setting.fields}
        return record.with_part(setting.side, None, {**fields, **masked})
    whole = require_struct(value, _MASKING)
    pairs = []
    for each in whole.schema.fields:
        member = _value(whole, each, setting.replace_null_with_default)
        pairs.append((each.name, _mask(member, setting.replacement) if each.name in setting.fields else member))
    return record.with_part(setting.side, schema, Struct.of(whole.schema, pairs))


def _mask(value: Value, replacement: str | None) -> Value:
    if value is None:
        return None
    if replacement is not None:
        return masking_number(value, replacement)
    empty = _EMPTY_OF.get(type(value))
    if empty is None:
        empty = next((made for kind, made in _EMPTY if isinstance(value, kind)), None)
    if empty is None:
        raise DataError(f"Cannot mask value of type: class {class_name(value)}")
    return empty


#: The mask of a value; the first type that fits applies.
_EMPTY: tuple[tuple[type, Value], ...] = (
    (bool, False),
    (Int8, Int8(0)),
    (Int16, Int16(0)),
    (Int32, Int32(0)),
    (int, 0),
    (Float32, Float32(0)),
    (float, Float64(0)),
    (Decimal, Decimal(0)),
    (Moment, Moment(0)),
    (str, ""),
    (list, []),
    (dict, {}),
)
#: The same for values of exactly that type, as nearly all are.
_EMPTY_OF: Mapping[type, Value] = dict(_EMPTY)


def replace_field(setting: model.ReplaceField, record: SmtRecord) -> SmtRecord:
    """Exclusion has priority over inclusion; both refer to the old names. A null stays null.

    Raises:
        DataError: the side is no map or struct, or two fields of a struct would have one name.
    """
    schema, value = record.part(setting.side)
    if value is None:
        return record
    if schema is None:
        fields = require_map(value, _REPLACEMENT)
        kept = {setting.renames.get(name, name): each for name, each in fields.items() if _is_kept(setting, name)}
        return record.with_part(setting.side, None, kept)
    whole = require_struct(value, _REPLACEMENT)
    renamed = (
        Field(setting.renames.get(each.name, each.name), each.schema)
        for each in whole.schema.fields
        if _is_kept(setting, each.name)
    )
    new_schema = _REPLACED.get(setting, whole.schema, lambda: struct_schema(renamed, like=whole.schema))
    # Java looks up the value under the name before a rename, even if that rename did not apply.
    old_names = {new: old for old, new in setting.renames.items()}
    pairs = (
        (each.name, whole.get(old_names.get(each.name, each.name), default=setting.replace_null_with_default))
        for each in new_schema.fields
    )
    return record.with_part(setting.side, new_schema, Struct.of(new_schema, pairs))


def _is_kept(setting: model.ReplaceField, name: str) -> bool:
    return name not in setting.exclude and (not setting.include or name in setting.include)


def _value(whole: Struct, each: Field, replace_null_with_default: bool) -> Value:
    """Return the value of one of the struct's own fields (`Struct.get`, which looks up the field first)."""
    value = whole.values.get(each.name)
    return each.schema.default if value is None and replace_null_with_default else value
