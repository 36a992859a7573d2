"""Protobuf messages in columns: the column type of a message, and messages from rows.

Messages are structs, including well-known ones: a `Timestamp` is a struct of `seconds` and `nanos`, because a timestamp
of Spark would lose nanoseconds. Enums are texts, unsigned numbers the next wider type. A field with presence is null if
it is not set, others have their default. Messages of other versions are read by field name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from mirror_lib.features.transforms.schemas.errors import SchemaFormatError
from mirror_lib.features.transforms.schemas.typed_column import TypedColumn, list_of, map_of, optional, plain

_UNSIGNED_LONG = pa.decimal128(20, 0)
_KINDS = {
    "INT32 SINT32 SFIXED32": pa.int32(),
    "UINT32 FIXED32 INT64 SINT64 SFIXED64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOL": pa.bool_(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
}
_PLAIN = {getattr(FieldDescriptor, f"TYPE_{name}"): kind for names, kind in _KINDS.items() for name in names.split()}
_UNSIGNED = (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64)


def protobuf_column(message_class: type[Message]) -> TypedColumn:
    """The column of a message type; it returns dicts, which `fill` converts to messages.

    Raises:
        SchemaFormatError: no column can have the type, for example because it contains itself.
    """
    return _message(message_class.DESCRIPTOR, frozenset())


def fill(message: Message, value: Mapping[str, Any]) -> None:
    """Set the fields of a message to a column's values; None stays unset.

    Raises:
        ValueError: the message has no such field, or the value does not fit.
    """
    fields = message.DESCRIPTOR.fields_by_name
    for name, found in value.items():
        if name not in fields:
            raise ValueError(f"{message.DESCRIPTOR.full_name} has no field {name}")
        if found is None:
            continue
        try:
            _set(message, fields[name], found)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"the field {name}: {error}") from error


def _set(message: Message, field: FieldDescriptor, value: Any) -> None:
    name = field.name
    if _is_map(field):
        holder = getattr(message, name)
        for key, each in value.items():
            if field.message_type.fields_by_name["value"].message_type is None:
                holder[key] = each
            else:
                fill(holder[key], each)
    elif field.is_repeated:
        holder = getattr(message, name)
        for each in value:
            if field.message_type is None:
                holder.append(each)
            else:
                fill(holder.add(), each)
    elif field.message_type is not None:
        inner = getattr(message, name)
        inner.SetInParent()
        fill(inner, value)
    else:
        setattr(message, name, value)


def _message(descriptor: Descriptor, inside: frozenset[str]) -> TypedColumn:
    name = descriptor.full_name
    if name in inside or not descriptor.fields:
        what = "is recursive" if name in inside else "has no fields"
        raise SchemaFormatError(
            f"the message type {name} {what}, which a column cannot represent.",
            action="Transform such records with a Python function that decodes them itself (decode: none).",
        )
    columns = {field.name: _field(field, inside | {name}) for field in descriptor.fields}
    outs = [(field.name, field.has_presence, optional(columns[field.name].out)) for field in descriptor.fields]
    backs = {each: optional(column.back) for each, column in columns.items()}

    def out(message: Message) -> dict[str, Any]:
        known = message.DESCRIPTOR.fields_by_name
        return {
            each: None
            if each not in known or (presence and known[each].has_presence and not message.HasField(each))
            else read(getattr(message, each))
            for each, presence, read in outs
        }

    def back(value: Mapping[str, Any]) -> dict[str, Any]:
        return {each: backs[each](found) if each in backs else found for each, found in value.items()}

    return TypedColumn(pa.struct([pa.field(each, column.kind) for each, column in columns.items()]), out, back)


def _field(field: FieldDescriptor, inside: frozenset[str]) -> TypedColumn:
    if _is_map(field):
        entry = field.message_type.fields_by_name
        return map_of(_one(entry["key"], inside), _one(entry["value"], inside))
    return list_of(_one(field, inside)) if field.is_repeated else _one(field, inside)


def _one(field: FieldDescriptor, inside: frozenset[str]) -> TypedColumn:
    """One value of a field, repeated or not."""
    if field.message_type is not None:
        return _message(field.message_type, inside)
    if field.enum_type is not None:
        return TypedColumn(pa.string(), _name_of(field), _number_of(field))
    if field.type in _UNSIGNED:
        return TypedColumn(_UNSIGNED_LONG, Decimal, int)
    kind = _PLAIN[field.type]
    return TypedColumn(kind, float, float) if pa.types.is_floating(kind) else plain(kind)


def _name_of(field: FieldDescriptor) -> Callable[[int], str]:
    names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
    # A number without a name in this version.
    return lambda number: names.get(number, str(number))


def _number_of(field: FieldDescriptor) -> Callable[[str], int]:
    numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

    def number(text: str) -> int:
        if text in numbers:
            return int(numbers[text])
        if text.lstrip("-").isdecimal():
            return int(text)
        raise ValueError(f"{text!r} is not one of {', '.join(numbers)}")

    return number


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)
