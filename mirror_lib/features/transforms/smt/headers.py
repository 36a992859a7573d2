"""`InsertHeader`, `DropHeaders` and `HeaderFrom`."""

from __future__ import annotations

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.record import Header, SmtRecord, require_map, require_struct
from mirror_lib.features.transforms.smt.values.data import DataError, Schema, Struct, Value, struct_schema


def insert_header(setting: model.InsertHeader, record: SmtRecord) -> SmtRecord:
    """Add a header as the last one; others of its name stay."""
    return record.with_headers((*record.headers, Header(setting.header, setting.value, setting.schema)))


def drop_headers(setting: model.DropHeaders, record: SmtRecord) -> SmtRecord:
    """Remove all headers of the names."""
    return record.with_headers(tuple([each for each in record.headers if each.name not in setting.headers]))


def header_from(setting: model.HeaderFrom, record: SmtRecord) -> SmtRecord:
    """Add headers in the order of the settings. A null record fails; a missing field of a map gives a null.

    Raises:
        DataError: the side is no map or struct, or a struct has no such field.
    """
    schema, value = record.part(setting.side)
    purpose = f"header {'move' if setting.move else 'copy'}"
    taken = {name for name, _ in setting.headers}
    if schema is None:
        fields = require_map(value, purpose)
        added = [Header(header, fields.get(name)) for name, header in setting.headers]
        kept = {name: member for name, member in fields.items() if name not in taken}
        changed = record.with_part(setting.side, None, kept) if setting.move else record
    else:
        whole = require_struct(value, purpose)
        added = [_from_struct(setting, whole, name, header) for name, header in setting.headers]
        changed = record.with_part(setting.side, *_without(setting, whole, taken)) if setting.move else record
    return changed.with_headers((*record.headers, *added))


def _from_struct(setting: model.HeaderFrom, whole: Struct, name: str, header: str) -> Header:
    found = whole.schema.field(name)
    if found is None:
        # Java fails on the null in place of a schema.
        raise DataError(f"{name} is not a field of the struct")
    value = whole.get(name, default=setting.replace_null_with_default)
    if value is None and not found.schema.optional:
        raise DataError(f"A null value requires an optional schema but was {found.schema}")
    return Header(header, value, found.schema)


def _without(setting: model.HeaderFrom, whole: Struct, taken: set[str]) -> tuple[Schema, Value]:
    schema = struct_schema((each for each in whole.schema.fields if each.name not in taken), like=whole.schema)
    pairs = ((each.name, whole.get(each.name, default=setting.replace_null_with_default)) for each in schema.fields)
    return schema, Struct.of(schema, pairs)
