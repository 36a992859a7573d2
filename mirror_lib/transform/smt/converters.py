"""Bytes to values and back, as Connect's converters do it.

MM2 never decodes: its task hands out keys and values as bytes, and a converter only writes them. Decoding with the same
converter is what gives transforms fields to work on; `chain` says when it is done.
"""

from __future__ import annotations

from mirror_lib.transform.smt.data import (
    OPTIONAL_BYTES,
    OPTIONAL_STRING,
    DataError,
    Schema,
    SchemaType,
    Value,
    class_name,
)
from mirror_lib.transform.smt.java_text import connect_text, java_text
from mirror_lib.transform.smt.json_data import schema_from_json, schema_to_json, value_from_json, value_to_json
from mirror_lib.transform.smt.json_text import read_json, schemaless_json, write_json
from mirror_lib.transform.smt.model import ConverterKind, ConverterSettings

_NO_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional fields;'
    " for plain JSON set schemas.enable=false"
)


def decode(settings: ConverterSettings, data: bytes | None) -> tuple[Schema | None, Value]:
    """Schema and value of a key or value (`Converter.toConnectData`).

    Raises:
        DataError: the bytes are not of the converter's form. Where Java would lose something, such as characters that
            are not UTF-8, that is an error too.
    """
    if settings.kind is ConverterKind.STRING:
        return OPTIONAL_STRING, None if data is None else _decoded_text(data)
    if settings.kind is not ConverterKind.JSON:
        return OPTIONAL_BYTES, data
    if data is None:
        return None, None
    node = read_json(data)
    if not settings.schemas_enable:
        return None, node
    if not isinstance(node, dict) or set(node) != {"schema", "payload"}:
        raise DataError(_NO_ENVELOPE)
    schema = schema_from_json(node["schema"], settings)
    return schema, value_from_json(schema, node["payload"], settings)


def encode(settings: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    """The bytes of a key, value or header (`Converter.fromConnectData`, `HeaderConverter.fromConnectHeader`).

    Raises:
        DataError: the converter has no bytes for such a value.
    """
    if settings.kind is ConverterKind.JSON:
        return _encoded_json(settings, schema, value)
    if settings.kind is ConverterKind.BYTES:
        return _checked_bytes(schema, value)
    if value is None:
        return None
    text = java_text(value) if settings.kind is ConverterKind.STRING else connect_text(value)
    # As Java, which has a question mark for half a character.
    return text.encode("utf-8", "replace")


def _encoded_json(settings: ConverterSettings, schema: Schema | None, value: Value) -> bytes | None:
    if schema is None and value is None:
        return None
    if schema is None and not settings.schemas_enable and (text := schemaless_json(value)) is not None:
        return text
    payload = value_to_json(schema, value, settings)
    if not settings.schemas_enable:
        return write_json(payload)
    return write_json({"schema": schema_to_json(schema, settings), "payload": payload})


def _checked_bytes(schema: Schema | None, value: Value) -> bytes | None:
    if schema is not None and schema.type is not SchemaType.BYTES:
        raise DataError(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
    if value is not None and not isinstance(value, bytes):
        raise DataError(f"ByteArrayConverter is not compatible with objects of type class {class_name(value)}")
    return value


def _decoded_text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"the text is not UTF-8: {error.reason} at byte {error.start}") from error
